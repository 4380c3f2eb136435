"""Garbage collection in a driver.

A window of ten thousand files makes a million objects that reference counts free. By default Python searches all
objects of the process for cycles each time that some of them live for a while, which took a quarter of the driver's
processor time.
"""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG = 10_000
"""How many more objects there are before the youngest are searched for cycles; Python's default is 700."""

_lock = threading.Lock()
_runs = 0
_before: tuple[int, int, int] = gc.get_threshold()
_froze = False


@contextmanager
def rarely_collected() -> Iterator[None]:
    """Search for cycles more rarely, and not among the objects that exist now. Runs of several threads may overlap.

    What was frozen before, and a threshold that is higher or turns the search off, stays as it is.
    """
    _begin()
    try:
        yield
    finally:
        _end()


def _begin() -> None:
    global _runs, _before, _froze  # noqa: PLW0603 - the state of the process
    with _lock:
        _runs += 1
        if _runs > 1:
            return
        _before, _froze = gc.get_threshold(), gc.get_freeze_count() == 0
        if 0 < _before[0] < YOUNG:
            gc.set_threshold(YOUNG, *_before[1:])
        if _froze:
            gc.freeze()


def _end() -> None:
    global _runs  # noqa: PLW0603 - the state of the process
    with _lock:
        _runs -= 1
        if _runs:
            return
        gc.set_threshold(*_before)
        if _froze:
            gc.unfreeze()
