"""Sessions: a local Spark for who has none, with the settings that short jobs want, or one at an address."""

import os
import re
import sys
from pathlib import Path
from typing import ClassVar

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dagkit.backends.spark.java import ensure_java
from dagkit.backends.spark.jobs import is_connect
from dagkit.errors import DagkitError

LOCAL = re.compile(r"local(?:\[(\*|\d+)(?:, *\d+)?\])?")
"""A master in this very process: its threads, and how often a task may fail."""
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


class OtherSession(DagkitError):
    """A session is wanted at one place, and this process has one at another; Spark would give that one."""

    exit_code: ClassVar[int] = 2

    def __init__(self, wanted: str, there: str) -> None:
        super().__init__(
            f"this process has a Spark session at {there}, and one at {wanted} is wanted; "
            "leave the master away to use the one that is there, or stop it first"
        )


def running_session(address: str | None = None) -> SparkSession | None:
    """The session that this process has already, whichever thread began it; it must be at the address, if one is given.

    Whoever asks Spark for another one is given this one, and would stop it.
    """
    try:
        session = SparkSession.active()
        if not is_connect(session):
            session.sparkContext.statusTracker()
    except (PySparkException, AttributeError):  # there is none, or its context was stopped and has no Java any more
        return None
    there = session.conf.get("spark.master") or "another place"
    if address is not None and address != there:
        raise OtherSession(address, there)
    return session


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
