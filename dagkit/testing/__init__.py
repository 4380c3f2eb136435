"""Tools for tests: an operator or an application in memory, a fake clock, crashes, and checks of contracts.

Its pytest plugin provides the fixtures `crashes` and `fake_clock`.
"""

from typing import Any

from dagkit.ground.deferred_names import deferred, homes_of

_HOMES = homes_of(__name__)
__all__ = [*_HOMES]  # noqa: PLE0604 - names are text


def __getattr__(name: str) -> Any:
    return deferred(__name__, _HOMES, name)
