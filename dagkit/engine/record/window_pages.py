"""Windows of a long history: a page of them, or a sample, without reading the others.

Only what a window's own block stores is read. What is carried from window to window, such as the queue, is left out.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from dagkit.engine.record.checkpoint import Checkpoint
from dagkit.engine.record.stored_checkpoint import own_of
from dagkit.ledger import Chain, ExecuteTransform, Record


@dataclass(frozen=True, slots=True)
class Window:
    """One committed window and its block."""

    record: Record
    checkpoint: Checkpoint
    """Its checkpoint without the parts that are carried."""

    @property
    def committed(self) -> datetime:
        return self.record.block.system_time


def windows_between(chain: Chain, first: int, last: int) -> Iterator[Window]:
    """Yield the windows of the blocks from `first` to `last`, both included, oldest first."""
    for record in chain.records(max(0, first), last):
        window = _window(chain, record)
        if window is not None:
            yield window


def window_at(chain: Chain, seq: int) -> Window | None:
    """The window of a block; None if the block is no window."""
    return _window(chain, chain.read(seq)) if 0 <= seq <= chain.head.seq else None


def block_of(chain: Chain, window_id: int) -> int | None:
    """The number of the block of a window, or None; a logarithmic number of reads, for window ids never decrease."""
    low, high = 0, chain.head.seq
    while low < high:
        middle = (low + high) // 2
        found = next(windows_between(chain, middle, high), None)
        if found is None or found.checkpoint.window >= window_id:
            high = middle
        else:
            low = found.record.seq + 1
    found = next(windows_between(chain, low, chain.head.seq), None)
    return found.record.seq if found is not None and found.checkpoint.window == window_id else None


def stride(blocks: int, points: int) -> int:
    """The least power of two that leaves at most so many of these blocks.

    The blocks whose numbers it divides stay a sample while the chain grows.
    """
    found = 1
    while blocks > points * found:
        found *= 2
    return found


def _window(chain: Chain, record: Record) -> Window | None:
    if not isinstance(record.block.event, ExecuteTransform):
        return None
    content = chain.checkpoint_at(record)
    return None if content is None else Window(record, Checkpoint.model_validate(own_of(json.loads(content))))
