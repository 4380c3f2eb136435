"""The Spark backend: windows as Spark jobs. Only this package imports pyspark.

A name's module is imported on first use, because workers need none of these modules.
"""

from typing import Any

from dagkit.ground.deferred_names import deferred, homes_of

_HOMES = homes_of(__name__)
__all__ = [*_HOMES]  # noqa: PLE0604 - names are text


def __getattr__(name: str) -> Any:
    # The modules of PySpark import each other, so two threads must not begin with different ones: importing the whole
    # package waits until another thread has imported it.
    import pyspark  # noqa: F401, PLC0415 - only now does a process need it

    return deferred(__name__, _HOMES, name)
