"""Where bytes come from: paths, folders, globs, memory and file objects.

In come names; out come sources, and the byte ranges that formats ask them for.

- `listing`: from what a user names to the files of a scan
- `hive`: folders named `key=value` as columns
- `origins`: from a path, bytes or a file object to its source
- `source`: what every source offers; `local`, `memory`, `file_object`: the sources
- `descriptor`: descriptors that live as long as anybody reads
- `requests`: what a format asks for, joined and driven to its result
- `footer_cache`: footers that are kept between scans
- `buffer_pool`: memory that is used again
"""
