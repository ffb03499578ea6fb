"""fretsaw on Spark: a data source to read from, and jobs that run on a cluster.

`register(spark)` makes `spark.read.format("fretsaw")` known to a session.
"""

from pyspark.sql import SparkSession

from fretsaw.spark.source import KEEPS_SCANS_APART, FilteringDataSource, FretsawDataSource


def register(spark: SparkSession, *, push_filters: bool = KEEPS_SCANS_APART) -> None:
    """Let a session read with `spark.read.format("fretsaw")`.

    With `push_filters`, the filters that Spark pushes are applied where the files are read. Spark
    before 5 then gives wrong rows if what was loaded once is used in more than one query or place,
    which is why it is off there: for each of them, load anew.
    """
    spark.dataSource.register(FilteringDataSource if push_filters else FretsawDataSource)
