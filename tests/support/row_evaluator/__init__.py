"""A row-by-row evaluator of predicates in plain Python, written from the contract alone.

`kinds`: types and rows. `trees`: expressions. `numbers`, `order`, `casts`, `texts`, `calendar`: the
rules, one subject each. `functions`: operations on values. `evaluator`: what a tree is for a row.
"""
