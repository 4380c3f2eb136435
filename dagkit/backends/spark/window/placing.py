"""Put committed files in place: the driver renames files of one piece, and executors join files of several pieces."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
        copied = tuple((file, pieces) for file, pieces in self.files if len(pieces) > 1)
        if sum(piece.length for _, pieces in copied for piece in pieces) < MANY_BYTES or speculates(spark):
            copied = ()
        rest = tuple(one for one in self.files if one not in copied)
        return replace(self, files=rest), replace(self, files=copied)

    def run_here(self) -> None:
        """Put every file in place, in this process."""
        for file, pieces in self.files:
            self.place(file, pieces)

    def run_as_job(self, spark: SparkSession) -> None:
        """Put every file in place, each by its own task, which Spark may repeat. Raise PiecesLost for lost pieces."""
        numbers = spark.range(0, len(self.files), 1, len(self.files))
        lost = numbers.mapInArrow(PlacingTask(self), _LOST).toArrow()
        for number in lost.column("number").to_pylist():
            raise PiecesLost(self.files[number][0])

    def place(self, file: str, pieces: Sequence[Piece]) -> None:
        """Put one file in place. Raise PiecesLost if a piece is missing."""
        put_in_place(pieces, file, durable=self.durable)


@dataclass(frozen=True, slots=True)
class PlacingTask:
    """Puts the files with the numbers that it receives in place, and returns those of files whose pieces are lost."""

    placing: Placing

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with at_work():
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    try:
                        self.placing.place(*self.placing.files[number])
                    except PiecesLost:
                        yield pa.record_batch([pa.array([number], pa.int64())], names=["number"])


def speculates(spark: SparkSession) -> bool:
    """Whether Spark may run a task twice at the same time. Both would then write the same file."""
    return str(spark.conf.get("spark.speculation", "false")).lower() == "true"
