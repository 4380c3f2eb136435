"""PySpark as its own guides show it: a filtered DataFrame of text, and an RDD with a Python function."""

import os
import shutil
import sys
from functools import cache
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.functions import col


@cache
def _session() -> SparkSession:
    """Spark on all cores with its own settings, but for the page and the log that nobody looks at."""
    if "JAVA_HOME" not in os.environ and shutil.which("java") is None:
        from dagkit.backends.spark.java import ensure_java  # noqa: PLC0415 - a peer stands without dagkit if it can

        ensure_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[*]").appName("bench")
    return builder.config("spark.ui.enabled", "false").config("spark.log.level", "ERROR").getOrCreate()


def native(source: Path, target: Path) -> None:
    """Read text, keep what a column expression says, write text: no Python near the records."""
    lines = _session().read.text(source.as_uri())
    lines.filter(~col("value").startswith(".")).write.mode("overwrite").text(target.as_uri())


def native_synced(source: Path, target: Path) -> None:
    """The same, and what was written survives a power cut."""
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
