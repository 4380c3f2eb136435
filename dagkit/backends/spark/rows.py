"""The rows that travel between levels, and on to the driver. The JVM moves blobs of about a megabyte, never records.

A task reports to every task that it may have sent to how many rows it sent, and which attempt it is. So a receiver
knows that nothing is missing, and the driver knows that all received from the same attempts.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import types

SPARK_SCHEMA = types.StructType(
    [
        types.StructField("slot", types.IntegerType(), nullable=False),
        types.StructField("level", types.IntegerType(), nullable=False),
        types.StructField("to", types.IntegerType(), nullable=False),
        types.StructField("kind", types.IntegerType(), nullable=False),
        types.StructField("payload", types.BinaryType(), nullable=False),
    ]
)
"""`slot` is the partition that a row goes to next; `level` and `to`, where it is opened."""
ARROW_SCHEMA = pa.schema(
    [
        *(pa.field(name, pa.int32(), nullable=False) for name in ("slot", "level", "to", "kind")),
        pa.field("payload", pa.binary(), nullable=False),
    ]
)

DRIVER = -1
"""A level without stages: its rows pass through all others and are collected by the driver."""


class Kind(IntEnum):
    """What a row carries; where rows are sorted, they come in this order."""

    GIVEN = 0
    """What the driver gives a slot, its state among it."""
    ITEMS = 1
    """Frames of items, for a slot of this window or of the next."""
    END = 2
    """A sender sends nothing more."""
    REPORT = 3
    FAILURE = 4


class Row(NamedTuple):
    """One row."""

    level: int
    to: int
    kind: Kind
    payload: Any
    """Anything with a buffer."""


@dataclass(frozen=True, slots=True)
class End:
    """What a task says last to each task of the next level."""

    sender: int
    attempt: bytes
    """Eight bytes of its own, whatever runs in its place."""
    rows: int
    failed: bool

    _FORM = struct.Struct("<i8sq?")

    @property
    def data(self) -> bytes:
        return self._FORM.pack(self.sender, self.attempt, self.rows, self.failed)

    @classmethod
    def of(cls, data: Any) -> "End":
        """What `data` gave."""
        return cls(*cls._FORM.unpack(data))


def rows_in(batch: pa.RecordBatch) -> Iterator[Row]:
    """The rows of a batch; their payloads lie where they lay."""
    numbers = [batch.column(name).to_pylist() for name in ("level", "to", "kind")]
    for level, to, kind, payload in zip(*numbers, batch.column("payload"), strict=True):
        yield Row(level, to, Kind(kind), payload.as_buffer())


def batch_of(rows: list[Row], slots: int) -> pa.RecordBatch:
    """The rows on their way to a level of so many slots, be it the last or one that passes them on."""
    numbers = [
        pa.array(column, pa.int32()) for column in zip(*((row.to % slots, *row[:3]) for row in rows), strict=True)
    ]
    return pa.RecordBatch.from_arrays([*numbers, _blobs([row.payload for row in rows])], schema=ARROW_SCHEMA)


def _blobs(payloads: list[Any]) -> pa.Array:
    if len(payloads) > 1:
        return pa.array([memoryview(payload).tobytes() for payload in payloads], pa.binary())
    data = pa.py_buffer(payloads[0])
    return pa.Array.from_buffers(pa.binary(), 1, [None, pa.py_buffer(struct.pack("<ii", 0, data.size)), data])
