"""Results as files, complete or absent.

- `files`: a result written to a place or a file object, in a format
- `partitions`: a result as a directory of Hive folders
- `options`: how it is written, where the user has a say
- `places`: where that may be, and how it is complete or absent
- `formats`: how each format is called and written
- `types`, `text`: the types that a format has, and values as text
- `json_lines`: values as JSON, a line for each row
"""
