"""Makes the archive of Java's classes: starts a Spark that records what windows load."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import SparkSession

from dagkit.backends.spark.session import class_archive
from dagkit.backends.spark.session.session import archive_of_driver, session_at
from dagkit.backends.spark.session.session_settings import JAVA_OPTIONS, users_settings
from dagkit.backends.spark.shipping.rows import SPARK_SCHEMA

_SLOTS = 2


def record(java_options: str = "") -> None:
    """Make the archive for launches of this environment with these options of Java, unless another process makes it."""
    settings = {JAVA_OPTIONS: java_options} if java_options else {}
    archive = archive_of_driver({**users_settings(), **settings})
    if archive is None:
        return
    with class_archive.being_made(archive) as part:
        if part is not None:
            write_archive(part, settings)


def write_archive(archive: Path, settings: Mapping[str, str]) -> None:
    """Run windows like those of an application in a Java that writes this archive when it ends."""
    session = session_at(f"local[{_SLOTS}]", settings, recording=archive)
    run_windows(session)
    gateway: Any = SparkContext._gateway  # noqa: SLF001 - Java must end before this process does
    session.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


def run_windows(session: SparkSession) -> None:
    """A window with one exchange, and one whose slots get their input as rows."""
    rows = [(slot, 0, slot, 0, b"") for slot in range(_SLOTS)]
    for first in (session.range(0, _SLOTS, 1, _SLOTS), session.createDataFrame(rows, SPARK_SCHEMA)):
        frame = first.mapInArrow(_row, SPARK_SCHEMA).repartitionById(_SLOTS, "slot").sortWithinPartitions("kind")
        frame.mapInArrow(_row, SPARK_SCHEMA).toArrow()


def _row(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        columns = [pa.array([0], pa.int32()) for _ in range(4)]
        yield pa.record_batch([*columns, pa.array([b"row"])], names=SPARK_SCHEMA.names)
