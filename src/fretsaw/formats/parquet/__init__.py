"""Parquet: row groups, column chunks, pages.

- `metadata`: the thrift structures; `outline`: a footer, of which only what is asked for is decoded
- `footer`, `schema`, `fields`: what a file says about itself
- `writer`: what must be allowed for by the name of the library that wrote a file
- `pages`, `levels`, `index`: page headers, records in them, offset and column indexes
- `statistics`, `bloom`, `dictionary`: what can be known before values are decoded
- `chunk`, `chain`, `cut`: the pages of a leaf that hold the wanted rows
- `compiled`: these rows decoded, and searched, by the kernels
- `decompress`, `decode`: the pages as a small file for Arrow, for everything else
- `file`, `block`, `reader`: all of it as the answers of a format, of a file and of its row groups
"""
