"""One run of a scan: files opened, planned, filtered and decoded.

In comes a `ScanRequest`; out come pieces of the result, in whatever shape `results` asks for.

- `query`, `request`: what is asked for, before any file is opened
- `files`, `corrupt_files`: open files, opened in order and a few ahead; those that are left out
- `paths`, `target`, `columns`, `filling`: the columns asked for, and what each file gives to them
- `row_numbers`, `widened_tests`: predicates on what no file has, or files store differently
- `planner`, `plan`: which rows of which blocks of which files (`FilePlan`, `BlockPlan`)
- `pruning`, `verdicts`: what paths, folders, statistics, filters, dictionaries and page indexes
  drop, and why
- `pieces`: how much is decoded at a time
- `filter`, `decode`: the rows that match (late materialisation); their leaves, decoded
- `run`, `under_way`, `threads`: plans run piece by piece, in order and in bounded memory
- `parts`: plans cut up, to be run elsewhere
- `summary`, `explain`: plans in numbers and in words
"""
