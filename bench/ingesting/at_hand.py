"""Memory that is at hand: a virtual machine waits for its host when it takes memory that it never used or gave back.

That can take ten times as long as to write to memory that it has, and whoever comes first pays it for all. Some give
back what is free for a second or two, so to have used it before does not help for long.
"""

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager

HELD_APART = 64 << 10
"""Bytes in which one page is held: machines give back whole blocks, of no fewer bytes than twice these."""
SPARED = 2 << 30
"""Bytes of free memory that are left alone."""


@contextmanager
def memory_at_hand(count: int) -> Iterator[None]:
    """So many bytes of memory, or as many as are free, are used once and free again, and the machine keeps them."""
    count = min(count, os.sysconf("SC_AVPHYS_PAGES") * mmap.PAGESIZE - SPARED) // HELD_APART * HELD_APART
    if count <= 0 or not hasattr(mmap, "MAP_POPULATE"):
        yield
        return
    with mmap.mmap(-1, count, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE) as region:
        for start in range(0, count, HELD_APART):
            region.madvise(mmap.MADV_DONTNEED, start + mmap.PAGESIZE, HELD_APART - mmap.PAGESIZE)
        yield
