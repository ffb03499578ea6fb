"""What all rooms talk about: plain values, without I/O and without a format.

In come rows, names and places; out come the values that the other packages hand to each other.

- `selection`: which rows (`RowSelection`)
- `runs`, `row_arguments`: the algebra of runs of rows, and rows as users hand them over
- `schema`: the tree of a file's columns (`SchemaNode`), and paths into it
- `blocks`: row groups and stripes, their pages, and bounds of values
- `block_predicates`: blocks chosen by where they live (`byte_range`, `blocks`)
- `arrays`: rows picked out of Arrow arrays
- `nested`: leaves zipped into fields, and the layers around a leaf
- `widening`, `conversion`: one type for what files store in several, and arrays as that type
- `trace`: what was read, decoded and dropped
- `locks`: locks that survive a fork, and values that are made once
"""
