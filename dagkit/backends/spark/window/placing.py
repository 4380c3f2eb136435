"""Put committed files in place: the driver renames files of one piece, and executors join files of several pieces."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import SparkSession, types

from dagkit.backends.spark.window.worker import at_work
from dagkit.engine.files.folders import put_in_place
from dagkit.engine.files.pieces import Piece, PiecesLost
from dagkit.engine.files.publish import pieces_of
from dagkit.engine.files.staging import Part

MANY_BYTES = 256 << 20
"""The number of bytes that a driver can copy in about the time in which a job starts and ends with cold caches."""
_LOST = types.StructType([types.StructField("number", types.LongType())])


@dataclass(frozen=True, slots=True)
class Placing:
    """Files to put in place, each with its committed pieces."""

    durable: bool
    files: tuple[tuple[str, tuple[Piece, ...]], ...]

    @classmethod
    def of(cls, files: Mapping[str, Iterable[Part]], application_path: str, *, durable: bool) -> "Placing":
        """The files that have at least one piece."""
        found = [(file, tuple(pieces_of(parts, application_path))) for file, parts in files.items()]
        return cls(durable, tuple((file, pieces) for file, pieces in found if pieces))

    def divided(self, spark: SparkSession) -> "tuple[Placing, Placing]":
        """The files for the driver, and those for a job. Few bytes to copy are not worth a job."""
        # A file of one piece is renamed. In a session that runs tasks twice, two tasks could write the same file.
        copied = tuple((file, pieces) for file, pieces in self.files if len(pieces) > 1)
        if sum(piece.length for _, pieces in copied for piece in pieces) < MANY_BYTES or speculates(spark):
            copied = ()
        rest = tuple(entry for entry in self.files if entry not in copied)
        return replace(self, files=rest), replace(self, files=copied)

    def run_here(self) -> None:
        """Put every file in place, in this process. Raise PiecesLost if a piece is missing."""
        for file, pieces in self.files:
            put_in_place(pieces, file, durable=self.durable)

    def run_as_job(self, spark: SparkSession) -> None:
        """Put every file in place, each by its own task, which Spark may repeat. Raise PiecesLost for lost pieces."""
        numbers = spark.range(0, len(self.files), 1, len(self.files))
        lost = numbers.mapInArrow(self, _LOST).toArrow()
        for number in lost.column("number").to_pylist():
            raise PiecesLost(self.files[number][0])

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """In a task: put the files with these numbers in place, and yield the numbers of files with lost pieces."""
        with at_work():
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    file, pieces = self.files[number]
                    try:
                        put_in_place(pieces, file, durable=self.durable)
                    except PiecesLost:
                        # As a row: Spark would repeat a task that raises.
                        yield pa.record_batch([pa.array([number], pa.int64())], names=["number"])


def speculates(spark: SparkSession) -> bool:
    """Whether Spark may run a task twice at the same time."""
    return str(spark.conf.get("spark.speculation", "false")).lower() == "true"
