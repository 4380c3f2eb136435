"""Putting committed files in place: renames are the driver's, and what must be copied together is the executors'."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import SparkSession, types

from dagkit.backends.spark.worker import at_work
from dagkit.engine.files.open_folder import put_in_place
from dagkit.engine.files.pieces import Piece, PiecesLost
from dagkit.engine.files.publish import pieces_of
from dagkit.engine.files.staging import Part

MANY_BYTES = 256 << 20
"""What a driver copies itself in about the time that a job takes to begin and to end with cold caches."""
_LOST = types.StructType([types.StructField("number", types.LongType())])


@dataclass(frozen=True, slots=True)
class Placing:
    """Files of committed pieces on their way to where they belong."""

    durable: bool
    files: tuple[tuple[str, tuple[Piece, ...]], ...]

    @classmethod
    def of(cls, files: Mapping[str, Iterable[Part]], application_path: str, *, durable: bool) -> "Placing":
        """The files that have any piece."""
        found = [(file, tuple(pieces_of(parts, application_path))) for file, parts in files.items()]
        return cls(durable, tuple((file, pieces) for file, pieces in found if pieces))

    def divided(self, spark: SparkSession) -> "tuple[Placing, Placing]":
        """What the driver does, and what is worth a job."""
        copied = tuple((file, pieces) for file, pieces in self.files if len(pieces) > 1)
        if sum(piece.length for _, pieces in copied for piece in pieces) < MANY_BYTES or _speculates(spark):
            copied = ()
        rest = tuple(one for one in self.files if one not in copied)
        return replace(self, files=rest), replace(self, files=copied)

    def run_here(self) -> None:
        """Every file is in place."""
        for file, pieces in self.files:
            self.place(file, pieces)

    def run_as_job(self, spark: SparkSession) -> None:
        """Every file is in place, each by a task of its own: one that is run again finds its own work."""
        numbers = spark.range(0, len(self.files), 1, len(self.files))
        lost = numbers.mapInArrow(PlacingTask(self), _LOST).toArrow()
        for number in lost.column("number").to_pylist():
            raise PiecesLost(self.files[number][0])

    def place(self, file: str, pieces: Sequence[Piece]) -> None:
        """The file is in place."""
        put_in_place(pieces, file, durable=self.durable)


@dataclass(frozen=True, slots=True)
class PlacingTask:
    """Puts the files in place whose numbers come, and gives back those of files whose pieces are lost."""

    placing: Placing

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with at_work():
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    try:
                        self.placing.place(*self.placing.files[number])
                    except PiecesLost:
                        yield pa.record_batch([pa.array([number], pa.int64())], names=["number"])


def _speculates(spark: SparkSession) -> bool:
    """Whether Spark may run a task twice at the same time, which files that are being put together do not bear."""
    return str(spark.conf.get("spark.speculation", "false")).lower() == "true"
