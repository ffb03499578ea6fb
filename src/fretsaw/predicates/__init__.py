"""What the user asks of values: from `col("fare") > 100`, or SQL, to a test of rows and of bounds.

In come expressions and literals; out come conditions bound to one file's schema.

- `expression`, `operations`, `type_names`, `logic`, `text`: what users write; `sql`, `sql_words`,
  `sql_reader`, `sql_values`, `sql_usage`, `sql_lists`, `sql_literals` as text
- `literals`: from what they write to keys, exactly, by the column's type
- `value_set`: sets of values as the places where they begin and end: every comparison is one
- `comparison`, `patterns`: the sets of values that tests stand for
- `computation`, `columns`, `functions`, `types`: expressions with their columns found and typed,
  as trees of what is in `bound`
- `condition`: checks of leaves under AND and OR, without negations
- `bind`: a predicate for the schema of one file
- `prune`: what bounds prove: none, some or all of a block or page
- `inverse`: what a test of a computed value says of its column
- `evaluate`: which decoded values are in a set
- `compute`, `arithmetic`, `casts`, `ordering`, `temporal`, `rounding`, `decimals`: what is computed
  of decoded columns
- `rows`: which decoded rows match
"""
