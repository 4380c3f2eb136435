"""The Spark backend: windows as Spark jobs. Only this package imports pyspark."""

from typing import Any

from dagkit.deferred_names import deferred

_HOMES = {
    "SparkBackend": "backend",
    "SparkFailed": "spark_errors",
    "has_kept_java": "session",
    "local_session": "session",
    "running_session": "session",
    "session_at": "session",
    "start_faster_next_time": "session",
    "stop_session": "session",
    "submitted_master": "session",
    "web_page": "session",
}
"""The module of each public name. It is imported on first use, because workers need none of these modules."""

__all__ = [
    "SparkBackend",
    "SparkFailed",
    "has_kept_java",
    "local_session",
    "running_session",
    "session_at",
    "start_faster_next_time",
    "stop_session",
    "submitted_master",
    "web_page",
]


def __getattr__(name: str) -> Any:
    # The modules of PySpark import each other, so two threads must not begin with different ones: importing the whole
    # package waits until another thread has imported it.
    import pyspark  # noqa: F401, PLC0415 - only now does a process need it

    return deferred(__name__, _HOMES, name)
