"""Settings that contestants share: the size of blocks and the number of cores."""

import os

BLOCK_SIZE = 64 << 20
"""Bytes of a block for dagkit and the hand-written loop."""


def cores() -> int:
    """The cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
