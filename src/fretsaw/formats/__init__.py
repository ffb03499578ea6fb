"""How a file is laid out. A format names byte ranges and is handed bytes; it never reads.

In come buffers and the rows that are wanted; out come blocks, pages, bounds and Arrow arrays.

- `interface`: what a format answers: for a file, for a block that was opened, for parts of it
- `shared`: errors and the search for what is wrong, alike in all formats
- `registry`: which format a file has, by its magic bytes
- `parquet`, `orc`: the two formats, with the same names for the same parts
"""
