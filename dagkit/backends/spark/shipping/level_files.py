"""Rows from one level to the next, in files that both read and write on one machine.

Each task writes one file: record batches, each for one slot, and at the end a table that says where they are.
"""

import secrets
import tempfile
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from pyspark import SparkContext

from dagkit.backends.spark.shipping.rows import ARROW_SCHEMA


class LevelFiles(NamedTuple):
    """The files of one level of a window."""

    above: tuple[str, ...] | None
    """Those with the rows of the level above, one from each of its slots; None: it is the first level."""
    folder: str | None
    """The folder for those that it writes; None: it is the last level, whose rows go to the driver."""


_NUMBER_BYTES = 8
_ALIGNED = 64
"""Batches start at a multiple of this."""


def write_rows(batches: Iterable[pa.RecordBatch], folder: str) -> str:
    """Write the rows of a task to a new file in a folder, and return its path."""
    # A name for each attempt: Spark may repeat a task, and the next level reads the file whose name the driver got.
    path, table = Path(folder, secrets.token_hex(8)), array("q")
    with path.open("xb") as file:
        for batch in batches:
            for slot, part in _by_slot(batch):
                written = part.serialize()
                table.extend((slot, file.tell(), written.size))
                file.write(written)
                file.write(bytes(-written.size % _ALIGNED))
        file.write(table.tobytes())
        file.write(array("q", [len(table)]).tobytes())
    return str(path)


def read_rows(paths: Iterable[str], slot: int) -> Iterator[pa.RecordBatch]:
    """The rows for a slot, in files. They are views of the files, and stay valid if these are deleted."""
    for path in paths:
        with pa.memory_map(path) as file:
            end = file.size() - _NUMBER_BYTES
            (length,) = array("q", file.read_at(_NUMBER_BYTES, end))
            table = array("q", file.read_at(length * _NUMBER_BYTES, end - length * _NUMBER_BYTES))
            for to, start, size in zip(table[::3], table[1::3], table[2::3], strict=True):
                if to == slot:
                    file.seek(start)
                    yield pa.ipc.read_record_batch(file.read_buffer(size), ARROW_SCHEMA)


def folder_in(context: SparkContext) -> "tempfile.TemporaryDirectory[str]":
    """A new folder for the files of one window, among Spark's temporary files, which Spark deletes when it ends."""
    place: str = context._temp_dir  # noqa: SLF001 - where the user lets Spark write
    # A task of an abandoned window may still write into it.
    return tempfile.TemporaryDirectory(prefix="window-", dir=place, ignore_cleanup_errors=True)


def _by_slot(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The parts of a batch, by the next slot of their rows."""
    slots = batch.column("slot").to_pylist()
    if len(set(slots)) == 1:
        yield slots[0], batch
        return
    rows: dict[int, list[int]] = {}
    for row, slot in enumerate(slots):
        rows.setdefault(slot, []).append(row)
    for slot, own in rows.items():
        yield slot, batch.take(own)
