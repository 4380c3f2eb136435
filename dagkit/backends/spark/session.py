"""Sessions: a local Spark for who has none, with the settings that short jobs want, or one at an address."""

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from dagkit.backends.spark.java import ensure_java

_SAYS_ERRORS = Path(__file__).with_name("log4j2.properties")

LOCAL_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_SAYS_ERRORS.as_uri()} -XX:TieredStopAtLevel=1",
}
"""One job for each window: nothing to adapt, and no page to keep. Java compiles its code once, and quickly: it moves
blobs and sees no record, so to compile it better costs more than it brings."""


def running_session() -> SparkSession | None:
    """The session that this process has already, if it has one."""
    return SparkSession.getActiveSession()


def local_session(cores: int | None = None) -> SparkSession:
    """A Spark session on this machine; the one that runs already, where there is one."""
    return session_at(f"local[{cores or '*'}]")


def session_at(address: str) -> SparkSession:
    """A session at a master, or behind a Spark Connect server where the address begins with `sc:`."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if address.startswith("sc:"):
        remote: SparkSession = SparkSession.builder.remote(address).getOrCreate()
        return remote
    ensure_java()
    builder = SparkSession.builder.master(address).appName("dagkit")
    for name, value in LOCAL_SETTINGS.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
