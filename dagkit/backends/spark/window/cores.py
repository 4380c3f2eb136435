"""Count the tasks that the cluster of a session runs at the same time, and the most that it could run."""

import os
import re
import time
from collections.abc import Callable

from pyspark.sql import SparkSession

from dagkit.backends.spark.failures.jobs import is_connect
from dagkit.backends.spark.session.master import LOCAL
from dagkit.engine.worker.protocol import Cores

LOOKED_EVERY_SECONDS = 5.0
"""How long a count is cached for a cluster that can grow."""
GROWTH = 2
"""How far a cluster without a limit is asked to grow, in multiples of the cores that it has."""
_REQUESTED = "spark.default.parallelism"
_SPLITS = re.compile(r"splits=(?:Some\()?(\d+)")

Settings = Callable[[str], str]
"""The value of a Spark setting; empty if it is not set."""


class CoresOf:
    """Counts the cores of one session, classic or Connect."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._known: Cores | None = None
        self._looked = 0.0

    def count(self) -> Cores:
        """The number of cores, at most a few seconds old."""
        if self._known is None or (self._grows() and time.monotonic() > self._looked + LOOKED_EVERY_SECONDS):
            self._known, self._looked = cores_of(self._setting, self._counted()), time.monotonic()
        return self._known

    def _grows(self) -> bool:
        return LOCAL.fullmatch(self._setting("spark.master")) is None

    def _counted(self) -> int | None:
        """Spark's default parallelism, which is the number of cores of all executors; None if the user has set it."""
        connect = is_connect(self._spark)
        # Users often set it to several tasks for each core.
        if self._setting(_REQUESTED) or (connect and self._setting("spark.sql.leafNodeDefaultParallelism")):
            return None
        if not connect:
            return max(1, self._spark.sparkContext.defaultParallelism)
        # A Connect client can only read it from the plan of a query, which is never run.
        plan = self._spark.sql("EXPLAIN SELECT count(*) FROM range(0, 1000000)").collect()[0][0]
        found = _SPLITS.search(plan)
        return max(1, int(found[1])) if found else 1

    def _setting(self, name: str) -> str:
        return str(self._spark.conf.get(name, None) or "").strip()


def cores_of(setting: Settings, counted: int | None) -> Cores:
    """The number of tasks that run at the same time, and the largest possible number.

    `counted` is the number of cores that Spark reports; None if it does not.
    """
    cpus = _number(setting, "spark.task.cpus") or 1
    local = LOCAL.fullmatch(setting("spark.master"))
    if local is not None:
        threads = counted or os.cpu_count() or 1 if local[1] == "*" else int(local[1] or 1)
        now = max(1, threads // cpus)
        return Cores(now, now)
    most = most_cores(setting)
    if counted is not None:
        cores_each = _number(setting, "spark.executor.cores") or counted
        # By executor: what is left over in several executors is not room for another task.
        now = max(1, counted // cores_each * (cores_each // cpus))
    elif most is not None and not _allocates(setting):
        now = most
    else:  # no other setting says how many cores there are
        now = _number(setting, _REQUESTED) or 1
        now = now if most is None else min(now, most)
    # A reader would get partitions for cores that may never exist. Each time Spark adds executors, the bound grows.
    if most is None and _allocates(setting):
        most = GROWTH * now
    return Cores(now, max(now, most or now))


def most_cores(setting: Settings) -> int | None:
    """The largest number of tasks at the same time, by the settings of a cluster; None if they do not limit it."""
    cores_each, cpus = _number(setting, "spark.executor.cores"), _number(setting, "spark.task.cpus") or 1
    tasks_each = max(1, (cores_each or 1) // cpus)
    if _allocates(setting):
        executors = _number(setting, "spark.dynamicAllocation.maxExecutors")
        return None if executors is None else executors * tasks_each
    cores, executors = _number(setting, "spark.cores.max"), _number(setting, "spark.executor.instances")
    if cores:
        return max(1, cores // cores_each * tasks_each if cores_each else cores // cpus)
    return None if executors is None else executors * tasks_each


def _allocates(setting: Settings) -> bool:
    """Whether Spark adds and removes executors with the load."""
    return setting("spark.dynamicAllocation.enabled").lower() == "true"


def _number(setting: Settings, name: str) -> int | None:
    text = setting(name)
    return int(text) if text.isdecimal() else None
