"""What the user asks of values: from `col("fare") > 100`, or SQL, to a test of rows and of bounds.

In come expressions and literals; out come conditions bound to one file's schema.

- `expression`, `sql`, `text`: what users write
- `literals`: from what they write to keys, exactly, by the column's type
- `value_set`: sets of values as the places where they begin and end: every comparison is one
- `condition`: checks of leaves under AND and OR, without negations
- `bind`: a predicate for the schema of one file
- `prune`: what bounds prove: none, some or all of a block or page
- `evaluate`: which decoded rows match
"""
