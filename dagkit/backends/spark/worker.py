"""A worker's process: what is done once in it, and not for each task."""

import ctypes
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import TextIO

LARGEST_FROM_HEAP = 32 << 20
"""Bytes of one piece of memory that the heap has; a larger one is the system's again once it is freed."""
KEPT_FREE = 64 << 20
"""Unused bytes at the end of the heap that stay with the process."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_SETTINGS = ("GLIBC_TUNABLES", "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_")

_settled_for = ""
"""The digest of the program that this worker has run before."""


_stderr = sys.stderr


@contextmanager
def at_work() -> Iterator[None]:
    """Pass on a task's output, and discard it between tasks: when Spark ends, a waiting worker's pipe breaks.

    PySpark traces that, at the end of runs in which nothing went wrong.
    """
    sys.stderr = _stderr
    try:
        yield
    finally:
        sys.stderr = _unheard()


@cache
def _unheard() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 - it stays open as long as the worker runs


@cache
def hold_memory() -> None:
    """Reuse the memory that one chunk of lines freed for the next one.

    The C library gives a megabyte back to the system at once, if nothing says otherwise, and has it given page by page
    again: that took longer than to find the lines in it. Settings of the C library that the user made take precedence.
    """
    if any(name in os.environ for name in _SETTINGS):
        return
    with suppress(OSError, AttributeError):  # another C library, with other ways
        library = ctypes.CDLL("libc.so.6")
        library.mallopt(_M_MMAP_THRESHOLD, LARGEST_FROM_HEAP)
        library.mallopt(_M_TRIM_THRESHOLD, KEPT_FREE)


def settle(digest: str) -> None:
    """Once for each program: what is loaded stays, so the collection after each task need not look at it."""
    global _settled_for  # noqa: PLW0603 - it is the worker process that is settled
    if _settled_for != digest:
        gc.collect()
        gc.freeze()
        _settled_for = digest
