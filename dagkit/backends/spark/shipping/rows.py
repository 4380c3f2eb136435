"""Rows between tasks, and from tasks to the driver. Java moves blobs of about a megabyte, never records.

Each task ends with a row to every task of the next level: the number of rows that it sent there, and its attempt. From
these, a receiver knows that no row is missing, and the driver knows that all tasks received from the same attempts.
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
"""`slot` is the next partition of a row; `level` and `to` are the level and slot that read its payload."""
ARROW_SCHEMA = pa.schema(
    [
        *(pa.field(name, pa.int32(), nullable=False) for name in ("slot", "level", "to", "kind")),
        pa.field("payload", pa.binary(), nullable=False),
    ]
)

DRIVER = -1
"""The level of rows for the driver. They pass through all later levels."""


class Kind(IntEnum):
    """The content of a row. Sorted rows have the order of these numbers."""

    INPUT = 0
    """The input of a slot from the driver: state, work and items."""
    ITEMS = 1
    """Frames of items, for a slot in this window or in the next one."""
    END = 2
    """The last row of a sender."""
    REPORT = 3
    FAILURE = 4


class Row(NamedTuple):
    """One row, without the partition that it is sent to."""

    level: int
    to: int
    kind: Kind
    payload: Any
    """An object with the buffer protocol."""


@dataclass(frozen=True, slots=True)
class End:
    """The last message of a task to each task of the next level."""

    sender: int
    attempt: bytes
    """Eight random bytes, which identify the attempt at the task."""
    rows: int
    failed: bool

    _FORM = struct.Struct("<i8sq?")

    @property
    def data(self) -> bytes:
        return self._FORM.pack(self.sender, self.attempt, self.rows, self.failed)

    @classmethod
    def of(cls, data: Any) -> "End":
        """The message, from its bytes in `data`."""
        return cls(*cls._FORM.unpack(data))


def rows_in(batch: pa.RecordBatch) -> Iterator[Row]:
    """The rows of a batch. Their payloads are views of its memory."""
    numbers = [batch.column(name).to_pylist() for name in ("level", "to", "kind")]
    for level, to, kind, payload in zip(*numbers, batch.column("payload"), strict=True):
        yield Row(level, to, Kind(kind), payload.as_buffer())


def batch_of(rows: list[Row], slots: int) -> pa.RecordBatch:
    """The rows as a batch for a next level with this number of slots."""
    # For the next level, the remainder is the slot itself. A row for a later level or the driver may pass through any
    # slot, and the remainder spreads such rows over all.
    numbers = [
        pa.array(column, pa.int32()) for column in zip(*((row.to % slots, *row[:3]) for row in rows), strict=True)
    ]
    return pa.RecordBatch.from_arrays([*numbers, _blobs([row.payload for row in rows])], schema=ARROW_SCHEMA)


def _blobs(payloads: list[Any]) -> pa.Array:
    if len(payloads) > 1:
        return pa.array([memoryview(payload).tobytes() for payload in payloads], pa.binary())
    # A large payload comes alone, and is not copied.
    data = pa.py_buffer(payloads[0])
    return pa.Array.from_buffers(pa.binary(), 1, [None, pa.py_buffer(struct.pack("<ii", 0, data.size)), data])
