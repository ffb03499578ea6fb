"""Seeded data files, made on first use and kept below `benchmarks/.data/`.

In: a `Scale` (full or quick) and, for `trips`, a codec; for `grids`, the shape itself. Out: a
`Sample`, the path of a complete file or folder and its shape. Tables are made block by block, one
row group at a time, so that memory stays low; a file or folder appears under its own name only
once it is whole. A new data set is a function that returns `keep(name, rows, schema, blocks, ...)`,
or `keep_folder(name, rows, files)` if it is many files.
"""
