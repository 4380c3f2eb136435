"""The rows that travel between levels: items on their way to a slot, and reports on their way to the driver.

A row carries many items at once as one blob, so that the JVM moves bytes and never records.
"""

import pickle
from collections.abc import Iterator
from dataclasses import dataclass

import cloudpickle
import pyarrow as pa
from pyspark.sql import types

from dagkit.engine.slot import Items, Report, Sent

SPARK_SCHEMA = types.StructType(
    [
        types.StructField("slot", types.IntegerType(), nullable=False),
        types.StructField("level", types.IntegerType(), nullable=False),
        types.StructField("to", types.IntegerType(), nullable=False),
        types.StructField("payload", types.BinaryType(), nullable=False),
    ]
)
ARROW_SCHEMA = pa.schema(
    [
        pa.field("slot", pa.int32(), nullable=False),
        pa.field("level", pa.int32(), nullable=False),
        pa.field("to", pa.int32(), nullable=False),
        pa.field("payload", pa.binary(), nullable=False),
    ]
)

DRIVER = -1
"""The level that nobody runs: what is for it goes through all others, and is collected."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row: the slot of the level it is for, and what it carries."""

    level: int
    to: int
    payload: bytes

    @classmethod
    def of(cls, carried: Sent | Report) -> "Row":
        """The row that carries items, or a report."""
        if isinstance(carried, Report) or carried.delayed:
            return cls(DRIVER, carried.slot, cloudpickle.dumps(carried))
        return cls(carried.level, carried.slot, cloudpickle.dumps((carried.wire, carried.items)))

    @property
    def items(self) -> tuple[int, Items]:
        """The wire and the items that the row carries to a slot."""
        wire, items = pickle.loads(self.payload)  # noqa: S301 - written by our own tasks, and never kept
        return wire, items

    @property
    def told(self) -> Sent | Report:
        """What the row carries to the driver."""
        told: Sent | Report = pickle.loads(self.payload)  # noqa: S301 - written by our own tasks, and never kept
        return told

    def batch(self, slots: int) -> pa.RecordBatch:
        """The row on its way to a level of so many slots, be it the last or one that passes it on."""
        return pa.record_batch([[self.to % slots], [self.level], [self.to], [self.payload]], schema=ARROW_SCHEMA)


def rows_in(batch: pa.RecordBatch | pa.Table) -> Iterator[Row]:
    """The rows of a batch."""
    levels, slots, payloads = batch.column("level"), batch.column("to"), batch.column("payload")
    for level, to, payload in zip(levels, slots, payloads, strict=True):
        yield Row(level.as_py(), to.as_py(), payload.as_py())
