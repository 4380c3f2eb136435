"""What contestants share: how large their blocks are, and how many cores they have."""

import os

BLOCK_SIZE = 64 << 20
"""Bytes of a block: dagkit and the hand-written loop cut the text into these."""


def cores() -> int:
    """The cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
