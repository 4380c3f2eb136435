"""The data source "dagkit" of Spark: the output of an application, and a stream of what an input operator finds.

from dagkit.dataframes import register

register(spark)
spark.read.format("dagkit").load("path/of/the/application")
spark.readStream.format("dagkit").option("ledger", "path/of/its/ledger").load("path/of/a/folder")
"""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from dagkit.dataframes.found_stream import FoundStream
from dagkit.dataframes.source_options import batch_options, stream_options
from dagkit.dataframes.written_files import LINES, WrittenFiles, schema_of
from dagkit.errors import RunFailure

P = ParamSpec("P")
R = TypeVar("R")
FORMAT = "dagkit"


def _briefly(method: Callable[P, R]) -> Callable[P, R]:
    """Raise the failures of a method without their traceback."""

    @wraps(method)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except RunFailure as failure:
            # Spark prints the traceback first, and the user reads what to do below it.
            raise failure.with_traceback(None) from None

    return called


class DagkitSource(DataSource):
    """Reads the files that an application has written, or streams the elements that an input operator finds."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    @_briefly
    def schema(self) -> StructType | str:
        """The columns of an application's files; those of a stream are declared by the query, else `value`."""
        return LINES if "ledger" in self.options else schema_of(batch_options(self.options))

    @_briefly
    def reader(self, schema: StructType) -> DataSourceReader:
        return WrittenFiles(batch_options(self.options), schema)

    @_briefly
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark calls it so
        return FoundStream(stream_options(self.options), schema)


def register(spark: SparkSession) -> None:
    """Make the format "dagkit" known to a session. Its driver and workers need dagkit installed."""
    spark.dataSource.register(DagkitSource)
