"""The output of a task: frames in rows of about a megabyte, and a last row to each task of the next level."""

import secrets
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from dagkit.backends.spark.shipping.frames import Frames
from dagkit.backends.spark.shipping.rows import DRIVER, End, Kind, Row, batch_of
from dagkit.engine.worker.outbox import Sent
from dagkit.schema.batch import Batch

FULL_BYTES = 1 << 20
"""A row of this size is sent."""
_SMALL_BYTES = 64 << 10
"""Smaller rows are sent together, in one batch."""


class Sending:
    """Collects and sends the rows of one task."""

    def __init__(self, frames: Frames, slot: int, next_slots: int) -> None:
        self.attempt = secrets.token_bytes(8)
        self._frames = frames
        self._slot = slot
        self._next_slots = next_slots
        self._open: defaultdict[tuple[int, int], _OpenRow] = defaultdict(_OpenRow)
        self._full: list[Row] = []
        self._sent: Counter[int] = Counter()
        self._last: tuple[Any, int, list[Any]] = (None, 0, [])

    def keep(self, sent: Sent) -> Sent:
        """Write a batch now, so that its memory may be reused. Return the sent batch without its content."""
        key = (DRIVER if sent.delayed else sent.level, sent.slot)
        for pieces in self._written(sent):
            row = self._open[key]
            row.pieces += pieces
            row.size += sum(memoryview(piece).nbytes for piece in pieces)
            if row.size >= FULL_BYTES:
                self._close(key)
        return Sent(sent.wire, sent.slot, sent.level, sent.delayed, _NOTHING)

    def _written(self, sent: Sent) -> list[list[Any]]:
        """The frames of a batch. A batch for many slots is written only once."""
        batch, wire, written = self._last
        # By identity: a batch for all slots comes here once for each of them, one after the other.
        if batch is not sent.batch or wire != sent.wire:
            written = [frame.pieces(sent.wire) for frame in self._frames.of(sent.batch, sent.wire, sent.element)]
            self._last = sent.batch, sent.wire, written
        return written

    def forget(self) -> None:
        """Drop the frames of the last batch, because its content may change from now on."""
        self._last = None, 0, []

    def add(self, row: Row) -> None:
        """Queue a complete row."""
        self._full.append(row)

    def ready(self) -> Iterator[pa.RecordBatch]:
        """The rows that are complete, as batches."""
        self.forget()
        full, self._full = self._full, []
        small: list[Row] = []
        for row in full:
            self._sent[row.to % self._next_slots] += 1
            if memoryview(row.payload).nbytes < _SMALL_BYTES:
                small.append(row)
            else:
                yield batch_of([row], self._next_slots)
        if small:
            yield batch_of(small, self._next_slots)

    def rest(self, *, failed: bool = False) -> Iterator[pa.RecordBatch]:
        """All remaining rows, as batches. After a failure, incomplete rows are dropped."""
        if failed:
            self._open.clear()
        for key in list(self._open):
            self._close(key)
        yield from self.ready()

    def ends(self, level: int, *, failed: bool) -> pa.RecordBatch:
        """The last row to each task of the next level."""
        slots = range(self._next_slots)
        ends = [End(self._slot, self.attempt, self._sent[slot], failed) for slot in slots]
        return batch_of(
            [Row(level, slot, Kind.END, end.data) for slot, end in zip(slots, ends, strict=True)], len(slots)
        )

    def _close(self, key: tuple[int, int]) -> None:
        self.add(Row(*key, Kind.ITEMS, b"".join(self._open.pop(key).pieces)))


@dataclass(slots=True)
class _OpenRow:
    """A row that is not complete."""

    pieces: list[Any] = field(default_factory=list)
    size: int = 0


_NOTHING: Batch[Any] = Batch.of([])
