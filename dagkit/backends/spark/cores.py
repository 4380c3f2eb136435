"""Cores: how many tasks the cluster of a session runs at the same time, and how many it could."""

import re
import time
from collections.abc import Callable

from pyspark.sql import SparkSession

from dagkit.backends.spark.jobs import is_connect
from dagkit.engine.assignment import Cores

LOOKED_EVERY_SECONDS = 5.0
"""How long a count of a cluster that can grow is taken for true."""
NO_LIMIT = 2**31 - 1
_SPLITS = re.compile(r"splits=(?:Some\()?(\d+)")

Settings = Callable[[str], str]
"""What a setting of Spark is; empty where nobody set it."""


class CoresOf:
    """Of one session, classic or Connect."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._known: Cores | None = None
        self._looked = 0.0

    def count(self) -> Cores:
        """As many as there are, as of a few seconds ago."""
        if self._known is None or (self._grows() and time.monotonic() > self._looked + LOOKED_EVERY_SECONDS):
            now = self._parallelism()
            self._known, self._looked = Cores(now, max(now, most_cores(self._setting) or now)), time.monotonic()
        return self._known

    def _grows(self) -> bool:
        return not self._setting("spark.master").startswith("local[")

    def _parallelism(self) -> int:
        """Into how many tasks Spark cuts what nobody said it of: the cores of all executors there are."""
        if not is_connect(self._spark):
            return max(1, self._spark.sparkContext.defaultParallelism)
        # there a plan says it, of a query that is never run
        plan = self._spark.sql("EXPLAIN SELECT count(*) FROM range(0, 1000000)").collect()[0][0]
        found = _SPLITS.search(plan)
        return max(1, int(found[1])) if found else 1

    def _setting(self, name: str) -> str:
        return str(self._spark.conf.get(name, None) or "").strip()


def most_cores(setting: Settings) -> int | None:
    """How many a cluster could have, as far as its settings say; none where they say nothing."""

    def number(name: str) -> int | None:
        text = setting(name)
        return int(text) if text.isdecimal() else None

    each = number("spark.executor.cores") or 1
    if setting("spark.dynamicAllocation.enabled").lower() == "true":
        executors = number("spark.dynamicAllocation.maxExecutors")
        return NO_LIMIT if executors is None else min(NO_LIMIT, executors * each)
    executors = number("spark.executor.instances")
    return number("spark.cores.max") or (None if executors is None else executors * each)
