"""Side-by-side benchmarks of fretsaw and its peers; run with `python -m benchmarks`.

In: seeded data (`data`), contestants (`field`: `ours`, `peers`, `on_spark`), the `conditions` they
are asked for, and the registry of `workloads`.
Out: timings (`measure`, by `race`), time against how much matches (`curve`), how cost grows
(`growth`), what a reader can not do without (`pages`, `strides`) and how long that takes to inflate
(`limit`), a `record` of runs, and tables with their pictures (`report`,
`pictures`). Importing the package limits every contestant to `THREADS` threads, because polars
and tokio look at the environment only once, when they start.
"""

import os

THREADS = 2

os.environ["POLARS_MAX_THREADS"] = str(THREADS)
os.environ["TOKIO_WORKER_THREADS"] = str(THREADS)
