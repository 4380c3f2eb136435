"""Prepares memory: a virtual machine waits for its host when it takes memory that it never used or gave back.

This can take ten times as long as writing to memory that it has, and the first contestant would pay for all. Some
machines give memory back after a second or two, so using it beforehand does not help for long.
"""

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager

HELD_APART = 64 << 10
"""One page is held in each stretch of this many bytes: machines give back whole blocks of at least twice this size."""
SPARED = 2 << 30
"""Bytes of free memory that are not touched."""


@contextmanager
def memory_at_hand(count: int) -> Iterator[None]:
    """Use this many bytes of memory, or all that are free, and free them so that the machine keeps them."""
    count = min(count, os.sysconf("SC_AVPHYS_PAGES") * mmap.PAGESIZE - SPARED) // HELD_APART * HELD_APART
    if count <= 0 or not hasattr(mmap, "MAP_POPULATE"):
        yield
        return
    with mmap.mmap(-1, count, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE) as region:
        for start in range(0, count, HELD_APART):
            region.madvise(mmap.MADV_DONTNEED, start + mmap.PAGESIZE, HELD_APART - mmap.PAGESIZE)
        yield
