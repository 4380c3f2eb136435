"""The operator library: readers, writers, filters, maps and counts.

A name's module is imported on first use: all of them take half a second, in each driver and each worker.
"""

from typing import Any

from dagkit.ground.deferred_names import deferred, homes_of

_HOMES = homes_of(__name__)
__all__ = [*_HOMES]  # noqa: PLE0604 - names are text


def __getattr__(name: str) -> Any:
    return deferred(__name__, _HOMES, name)
