"""PySpark as in its own guides: a filtered DataFrame of text, and an RDD with a Python function."""

import os
import shutil
import sys
from functools import cache
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.functions import col


@cache
def _session() -> SparkSession:
    """Spark on all cores with its own settings, except for the web page and the log."""
    if "JAVA_HOME" not in os.environ and shutil.which("java") is None:
        from dagkit.backends.spark.session.java import ensure_java  # noqa: PLC0415 - a peer uses dagkit only if necessary

        ensure_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[*]").appName("bench")
    return builder.config("spark.ui.enabled", "false").config("spark.log.level", "ERROR").getOrCreate()


def native(source: Path, target: Path) -> None:
    """Read text, filter by a column expression, write text: no Python code for each record."""
    lines = _session().read.text(source.as_uri())
    lines.filter(~col("value").startswith(".")).write.mode("overwrite").text(target.as_uri())


def native_synced(source: Path, target: Path) -> None:
    """The same, with synced output, which survives a power cut."""
    native(source, target)
    for path in [target.parent, target, *target.iterdir()]:
        file = os.open(path, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)


def rdd(source: Path, target: Path) -> None:
    """`textFile`, `filter` with a lambda, `saveAsTextFile`."""
    target.rmdir()  # Spark insists on making the folder
    lines = _session().sparkContext.textFile(source.as_uri())
    lines.filter(lambda line: not line.startswith(".")).saveAsTextFile(target.as_uri())
