"""Parquet: row groups, column chunks, pages.

- `metadata`: the thrift structures; `footer`, `schema`, `fields`: what a file says about itself
- `writer`: what must be allowed for by the name of the library that wrote a file
- `pages`, `levels`, `index`: page headers, records in them, offset and column indexes
- `statistics`, `bloom`, `dictionary`, `byte_search`: what can be known before values are decoded
- `chunk`, `chain`, `cut`, `decompress`, `decode`: the pages of a leaf as a small file for Arrow
- `file`, `block`, `reader`: all of it as the answers of a format, of a file and of its row groups
"""
