"""A level as a job without Spark SQL, if all workers run on this machine."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from dagkit.backends.spark.shipping.level_files import LevelFiles, read_rows, write_rows
from dagkit.backends.spark.window.task import BroadcastTask, LevelTask


@dataclass(frozen=True, slots=True)
class LevelJob:
    """The task of a level: for each partition, its slot. It returns rows for the driver, or the path of a file."""

    task: LevelTask | BroadcastTask
    files: LevelFiles

    def __call__(self, slot: int, _: Iterable[int]) -> Iterator[bytes]:
        rows = self.task(self._arriving(slot))
        if self.files.folder is None:
            return (batch.serialize().to_pybytes() for batch in rows)
        return iter([write_rows(rows, self.files.folder).encode()])

    def _arriving(self, slot: int) -> Iterator[pa.RecordBatch]:
        if self.files.above is None:
            return iter([pa.record_batch([pa.array([slot])], names=["id"])])
        return read_rows(self.files.above, slot)
