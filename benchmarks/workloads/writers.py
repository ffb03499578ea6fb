"""Files by other writers, a file without a page index, and columns of other kinds."""

from dataclasses import replace
from functools import partial

import pyarrow as pa

from benchmarks.contestant import Contestant
from benchmarks.data.kinds import kinds
from benchmarks.data.store import Sample
from benchmarks.data.trips import trips_without_index
from benchmarks.data.writers import WRITERS, trips_by
from benchmarks.workloads.trips import RANGE, SCAN, SPARSE
from benchmarks.workloads.workload import Workload

GOAL = 0.9


def _by(writer: str, workload: Workload) -> Workload:
    """The same on a file by another writer."""
    return replace(
        workload,
        name=f"by-{writer}-{workload.name}",
        what=f"{workload.what}, written by {writer}",
        goal=GOAL,
        sample=partial(trips_by, writer=writer),
    )


def _scan(kind: str, column: str) -> Workload:
    def run(reader: Contestant, sample: Sample) -> pa.Table:
        # Everyone has a type of its own for such sums.
        total = reader.sums(str(sample.path), (column,))
        return total.cast(pa.schema([(column, pa.float64())]))

    return replace(
        SCAN,
        name=f"scan-{kind}",
        what=f"sum of a column of {kind}s, streaming, full file",
        sample=kinds,
        run=run,
        columns=(column,),
    )


WRITTEN = (
    replace(
        RANGE,
        name="noindex",
        what=f"{RANGE.what}, without a page index",
        goal=0.8,
        sample=trips_without_index,
    ),
    *(_by(writer, workload) for writer in WRITERS for workload in (RANGE, SPARSE, SCAN)),
    _scan("decimal", "price"),
    _scan("boolean", "paid"),
    Workload(
        "scan-list",
        "sum of all elements of a column of lists of floats, streaming, full file",
        GOAL,
        kinds,
        lambda reader, sample: reader.sum_of_lists(str(sample.path), "samples"),
        columns=("samples",),
        tolerance=1e-4,  # some add floats of 32 bits
    ),
)
