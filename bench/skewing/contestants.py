"""The contestants: dagkit with and without splits, and Spark with fixed partitions, with and without speculation.

Each reads the file, calls the same Python function for each line, and writes the results.
"""

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from bench.skewing.work import DEAR_STRETCH, Work, burning
from dagkit import Block, Config, Dag, DagContext, PortContext, StreamingApplication
from dagkit.backends.spark.session.master import Master
from dagkit.backends.spark.session.session import local_session
from dagkit.backends.spark.session.session_settings import settings_for
from dagkit.launching import launch
from dagkit.ranges import OffsetRange, RestrictionTracker, UnsplittableRestrictionTracker
from dagkit_operators import FileSplitterInput, LineReader, Map, RecordWriter
from dagkit_operators.finding.scanner import DirectoryScanner


class WholeReader(LineReader):
    """Reads each block to its end, without splits."""

    kind = "bench.whole-reader/1"

    def tracker(self, element: Block, restriction: OffsetRange) -> RestrictionTracker[OffsetRange, int]:
        return UnsplittableRestrictionTracker(super().tracker(element, restriction))


class Burn(StreamingApplication):
    """Reads one file, burns each line, and writes a file for each block."""

    source: Path
    target: Path
    block_size: int
    slots: int
    rounds: int
    splits: bool

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        reader: LineReader = (LineReader if self.splits else WholeReader)(
            min_readers=self.slots, max_readers=self.slots
        )
        scanner = DirectoryScanner(files=(str(self.source),))
        splitter = dag.add_operator("Splitter", FileSplitterInput(scanner=scanner, block_size=self.block_size))
        read = dag.add_operator("Reader", reader)
        burn: Map[Any, Any] = dag.add_operator("Burn", Map(burning(self.rounds)))
        writer = dag.add_operator("Writer", RecordWriter(file_path=str(self.target)))
        for inlet in (burn.input, writer.input):
            dag.set_input_port_attribute(inlet, PortContext.PARTITION_PARALLEL, True)
        dag.set_attribute(DagContext.APPLICATION_PATH, str(self.target.with_suffix(".application")))
        dag.add_stream("blocks", splitter.blocks_metadata_output, read.blocks_metadata_input)
        dag.add_stream("lines", read.messages, burn.input)
        dag.add_stream("burnt", burn.output, writer.input)


@dataclass(frozen=True, slots=True)
class Contestant:
    """One way to do the work."""

    name: str
    about: str
    splits: bool | None = None
    """Whether dagkit splits its work; None: this is plain Spark."""
    speculates: bool = False

    def session(self, slots: int) -> SparkSession:
        """The session for this contestant. Speculation needs separate executors: a local session has none."""
        if not self.speculates:
            return local_session(slots)
        local_session(1).stop()  # starts Java
        builder = SparkSession.builder.master(f"local-cluster[{slots},1,1024]").appName("bench")
        for key, value in {**settings_for(Master.of("local"), {}), **SPECULATION}.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()

    def run(self, spark: SparkSession, work: Work, target: Path) -> float:
        """Do the work; return the seconds from the first call to the last file in its place."""
        began = time.perf_counter()
        if self.splits is None:
            _by_spark(spark, work, target)
        else:
            launch(_burn(work, target, splits=self.splits), spark=spark, until="once")
        return time.perf_counter() - began

    def warm_up(self, spark: SparkSession, folder: Path, slots: int) -> None:
        """Start the workers and let them import what they need."""
        source, target = folder / "warm.txt", folder / "warm"
        DEAR_STRETCH.write(source, 2000)
        for _ in range(2):
            self.run(spark, Work.of(DEAR_STRETCH, source, slots, 1), target)
            clear(target)
        source.unlink()


SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.1",
}
"""The most eager settings for speculation."""

CONTESTANTS = (
    Contestant("dagkit", "blocks are split while they are read", splits=True),
    Contestant(
        "dagkit, no splits", "the same application, with a reader that reads each block to its end", splits=False
    ),
    Contestant("Spark", "`read.text`, `mapInArrow`, `write.text`, a partition for each block"),
    Contestant("Spark, speculation", "the same with separate executors and eager speculation", speculates=True),
)


def clear(target: Path) -> None:
    """Delete the output of a run."""
    for place in (target, target.with_suffix(".application")):
        shutil.rmtree(place, ignore_errors=True)


def written(target: Path) -> Iterator[bytes]:
    """All lines that a contestant wrote."""
    for path in sorted(target.rglob("*")):
        if path.is_file() and not path.name.startswith((".", "_")):
            with path.open("rb") as lines:
                yield from lines


def _burn(work: Work, target: Path, *, splits: bool) -> Burn:
    return Burn(
        source=work.source,
        target=target,
        block_size=work.block_size,
        slots=work.slots,
        rounds=work.rounds,
        splits=splits,
    )


def _by_spark(spark: SparkSession, work: Work, target: Path) -> None:
    burn = burning(work.rounds)

    def burn_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"value": [burn(line) for line in batch.column(0).to_pylist()]})

    spark.conf.set("spark.sql.files.maxPartitionBytes", str(work.block_size))
    spark.conf.set("spark.sql.files.openCostInBytes", "0")
    spark.read.text(work.source.as_uri()).mapInArrow(burn_all, "value string").write.text(target.as_uri())
