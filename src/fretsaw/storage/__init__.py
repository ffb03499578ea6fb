"""Where bytes come from: paths, folders, globs, URLs, memory and file objects.

In come names; out come sources, and the byte ranges that formats ask them for.

- `listing`: from what a user names to the files of a scan
- `hive`: folders named `key=value` as columns
- `origins`: from a path, a URL, bytes or a file object to its source
- `location`: URLs, and what it takes to reach them; `stores`, `profiles`: the stores they are in
- `source`: what every source offers; `local`, `memory`, `file_object`, `remote`, `file_system`: the
  sources
- `remote_listing`, `uploads`: what stores list, and what is put into them
- `loop`, `attempts`, `interrupts`: requests that wait on one thread, are tried again, or given up
- `descriptor`: descriptors that live as long as anybody reads
- `requests`: what a format asks for, joined and driven to its result
- `footer_cache`: footers that are kept between scans
- `buffer_pool`: memory that is used again
"""
