"""The registry: every workload of reading.

Each is an entry that names its data, its goal and the call that every contestant answers. A new
workload is one entry in the module of its kind; if it asks something new of a reader, `contestant`
gets a method for it.
"""

from benchmarks.workloads.lakes import LAKES
from benchmarks.workloads.nested import NESTED
from benchmarks.workloads.orc import ORC
from benchmarks.workloads.predicates import PREDICATES
from benchmarks.workloads.remote import REMOTE
from benchmarks.workloads.spark import SPARK
from benchmarks.workloads.trips import TRIPS
from benchmarks.workloads.writers import WRITTEN

WORKLOADS = (*TRIPS, *WRITTEN, *PREDICATES, *NESTED, *LAKES, *ORC, *REMOTE, *SPARK)
