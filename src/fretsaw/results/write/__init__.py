"""Results as files, complete or absent.

- `files`: where a file may be written, and how each format is
- `json_lines`: values as JSON, a line for each row
"""
