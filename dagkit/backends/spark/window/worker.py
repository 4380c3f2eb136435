"""The worker process: its standard error, its memory and its garbage collection."""

import atexit
import ctypes
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import TextIO

# Lines are read in chunks of a megabyte. A freed megabyte that goes back to the system costs 490 page faults to get
# again: the same code ran at 1.2 GB/s in one process and at 0.6 in another. Rejected: buffers that are reused, since
# every operator would have to handle them. A worker may keep 64 MiB that it does not use.
LARGEST_FROM_HEAP = 32 << 20
"""The largest allocation, in bytes, from the heap. A larger one is returned to the system when it is freed."""
KEPT_FREE = 64 << 20
"""The number of unused bytes at the end of the heap that the process keeps."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_SETTINGS = ("GLIBC_TUNABLES", "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_")

_settled_for = ""
"""The digest of the program for which `settle` has run."""
_settled = 0
"""For how many programs it has run."""
MOST_LEFT = 16
"""What is left of so many programs is freed together: to look for it takes 80 ms, a fifth of a launch."""


_stderr = sys.stderr


@contextmanager
def at_work() -> Iterator[None]:
    """Keep standard error during a task, and discard it between tasks."""
    # When Spark ends, the pipe of an idle worker breaks, and PySpark would print a traceback after a successful run.
    sys.stderr = _stderr
    try:
        yield
    finally:
        sys.stderr = _null()


@cache
def _null() -> TextIO:
    null = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - it stays open
    atexit.register(null.close)
    return null


@cache
def hold_memory() -> None:
    """Keep the memory that one chunk of lines frees for the next one, unless the user has configured the C library."""
    # By default the C library returns a freed megabyte to the system at once, and gets it again page by page, which
    # took longer than finding the lines in it.
    if any(name in os.environ for name in _SETTINGS):
        return
    with suppress(OSError, AttributeError):  # another C library, without these settings
        library = ctypes.CDLL("libc.so.6")
        library.mallopt(_M_MMAP_THRESHOLD, LARGEST_FROM_HEAP)
        library.mallopt(_M_TRIM_THRESHOLD, KEPT_FREE)


def settle(digest: str) -> None:
    """Once for each program: exclude the loaded objects from later garbage collections, because they stay."""
    global _settled_for, _settled
    if _settled_for != digest:
        _settled_for, _settled = digest, _settled + 1
        # What is left of the programs before, such as tables of their modules, is garbage in cycles.
        if _settled % MOST_LEFT == 0:
            gc.unfreeze()
        gc.collect()
        gc.freeze()
