"""Sessions: a local Spark for who has none, with the settings that short jobs want."""

import os
import sys

from pyspark.sql import SparkSession

from dagkit.backends.spark.java import ensure_java

LOCAL_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "0",
    "spark.log.level": "ERROR",
}
"""One job for each window: nothing to adapt, and no page to keep."""


def local_session(cores: int | None = None) -> SparkSession:
    """A Spark session on this machine; the one that runs already, where there is one."""
    ensure_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(f"local[{cores or '*'}]").appName("dagkit")
    for name, value in LOCAL_SETTINGS.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
