"""Everyone who takes part, by what is read or where.

fretsaw comes first, with each of its decoders where both are shown; whoever is named otherwise is
a peer.
"""

from benchmarks.contestant import Contestant
from benchmarks.on_spark import FretsawOnSpark, Spark, SparkOrc
from benchmarks.ours import Fretsaw, FretsawByArrow
from benchmarks.peers.arrow import Dataset, ParquetFile
from benchmarks.peers.datafusion import DataFusion
from benchmarks.peers.duckdb import DuckDB
from benchmarks.peers.orc import PyarrowOrc, Pyorc
from benchmarks.peers.polars import Polars


def contestants() -> list[Contestant]:
    """fretsaw with each of its decoders, and then the"""
    return [
        Fretsaw(),
        FretsawByArrow(),
        ParquetFile(),
        Dataset(),
        Polars(),
        DuckDB(),
        DataFusion(),
        Spark(),
    ]


def orc_contestants() -> list[Contestant]:
    """fretsaw with each of its decoders, and then the peers that read ORC files."""
    return [Fretsaw(), FretsawByArrow(), PyarrowOrc(), Pyorc(), SparkOrc()]


def spark_contestants() -> list[Contestant]:
    """fretsaw as a source for Spark, and Spark's own."""
    return [FretsawOnSpark(), Spark()]
