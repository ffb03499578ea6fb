"""fretsaw on Spark: a data source to read from, and jobs that run on a cluster.

`register(spark)` makes `spark.read.format("fretsaw")` known to a session.
"""

from pyspark.sql import SparkSession

from fretsaw.spark.source import KEEPS_SCANS_APART, FilteringDataSource, FretsawDataSource
from fretsaw.spark.types import has_times
from fretsaw.spark.workers import require_workers


def register(spark: SparkSession, *, push_filters: bool = KEEPS_SCANS_APART) -> None:
    """Let a session read with `spark.read.format("fretsaw")`.

    With `push_filters`, the filters that Spark pushes are applied where the files are read. Spark
    before 5 then gives wrong rows if what was loaded once is used in more than one query or place,
    which is why it is off there: for each of them, load anew.
    """
    require_workers(spark)
    source = FilteringDataSource if push_filters else FretsawDataSource
    settled = type(source.__name__, (source,), {"has_times": has_times(spark)})
    spark.dataSource.register(settled)
