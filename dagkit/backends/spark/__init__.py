"""The Spark backend: one Spark job for each window. Only this package imports pyspark."""

from typing import Any

_HOMES = {
    "SparkBackend": "backend",
    "SparkFailed": "spark_errors",
    "local_session": "session",
    "running_session": "session",
    "session_at": "session",
    "start_faster_next_time": "session",
    "stop_session": "session",
}
"""The module of each public name. It is imported on first use, because workers need none of these modules."""

__all__ = [
    "SparkBackend",
    "SparkFailed",
    "local_session",
    "running_session",
    "session_at",
    "start_faster_next_time",
    "stop_session",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - see above

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
