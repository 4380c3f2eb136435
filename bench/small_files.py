"""Many small files: dagkit beside Spark's batch reader and its `readStream`, in one session and in turns.

Each contestant drops the lines that begin with a dot and writes the others to few files. All see files that exist when
they begin, and each output is checked.
"""

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from bench._chart import Bar, Chart
from bench._page import machine_in_words, write_part
from bench.ingesting.sizes import cores
from bench.ingesting.text import NOTHING, Text, age, left_in, write_text
from dagkit import Config, Dag, DagContext, PortContext, StreamingApplication
from dagkit.backends.spark import local_session
from dagkit.launching import launch
from dagkit_operators import FileSplitterInput, Filter, LineReader, PartWriter, value
from dagkit_operators.finding.scanner import DirectoryScanner

FILE_BYTES = 1024
IN_FOLDER = 1000
"""Files in one folder."""
DAGKIT, BATCH, STREAM = "dagkit", "Spark, batch", "Spark, `readStream`"
LEAST = {BATCH: 2.0, STREAM: 10.0}
"""How many times as fast as each of Spark's readers dagkit must be."""
MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of ours is made in it


class Ingest(StreamingApplication):
    """Reads all files of a folder with all cores, drops the lines that begin with a dot, writes files of parts."""

    source: Path
    target: Path

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        scanner = DirectoryScanner(files=(str(self.source),), recursive=True)
        splitter = dag.add_operator("File-splitter", FileSplitterInput(scanner=scanner))
        reader = dag.add_operator("Block-reader", LineReader(min_readers=cores()))
        keep = dag.add_operator("Filter", Filter(~value.starts_with(".")))
        writer = dag.add_operator("Part-writer", PartWriter(file_path=str(self.target)))
        for inlet in (keep.input, writer.input):
            dag.set_input_port_attribute(inlet, PortContext.PARTITION_PARALLEL, True)
        dag.set_attribute(DagContext.APPLICATION_PATH, str(self.target.with_suffix(".application")))
        dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("lines", reader.messages, keep.input)
        dag.add_stream("kept", keep.output, writer.input)


def with_dagkit(spark: SparkSession, source: Path, target: Path) -> None:
    """The application, from its compilation to the last file in its place."""
    launch(Ingest(source=source, target=target), spark=spark, until="once")


def with_batch(spark: SparkSession, source: Path, target: Path) -> None:
    """Spark's batch reader."""
    _kept(spark.read.option("recursiveFileLookup", "true").text(source.as_uri())).write.text(target.as_uri())


def with_stream(spark: SparkSession, source: Path, target: Path) -> None:
    """Structured Streaming, until it has read all files; like dagkit, it remembers the files that it has read."""
    lines = spark.readStream.option("recursiveFileLookup", "true").text(source.as_uri())
    writing = _kept(lines).writeStream.format("text").trigger(availableNow=True)
    query = writing.option("checkpointLocation", target.with_suffix(".checkpoint").as_uri()).start(target.as_uri())
    query.awaitTermination()


def _kept(lines: DataFrame) -> DataFrame:
    return lines.filter(~col("value").startswith("."))


CONTESTANTS: dict[str, Callable[[SparkSession, Path, Path], None]] = {
    DAGKIT: with_dagkit,
    BATCH: with_batch,
    STREAM: with_stream,
}


class WrongResult(RuntimeError):
    """The output of a contestant is wrong."""


def write_files(folder: Path, count: int) -> Text:
    """Write so many files of about a KiB, of whole lines, and return the text in all of them."""
    whole = write_text(folder.with_suffix(".txt"), count * FILE_BYTES)
    lines = whole.path.read_bytes().splitlines(keepends=True)
    whole.path.unlink()
    share, rest = divmod(len(lines), count)
    first = 0
    for number in range(count):
        if number % IN_FOLDER == 0:
            place = folder / f"day-{number // IN_FOLDER:04}"
            place.mkdir(parents=True)
        after = first + share + (number < rest)
        file = place / f"part-{number:08}.txt"
        file.write_bytes(b"".join(lines[first:after]))
        age(file)
        first = after
    return whole


def race(spark: SparkSession, folder: Path, count: int, rounds: int, names: Sequence[str]) -> dict[str, list[float]]:
    """The seconds of each contestant in each round, after a first one on a few files that is not counted."""
    few, many = folder / "few", folder / "many"
    warm, text = write_files(few, min(count, IN_FOLDER)), write_files(many, count)
    for _ in range(2):
        for name in names:
            _timed(spark, name, few, folder / "out", warm)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(rounds):
        for name, taken in seconds.items():
            taken.append(_timed(spark, name, many, folder / "out", text))
            print(f"{name}: {taken[-1]:.2f} s", file=sys.stderr, flush=True)
    return seconds


def _timed(spark: SparkSession, name: str, source: Path, target: Path, text: Text) -> float:
    began = time.perf_counter()
    CONTESTANTS[name](spark, source, target)
    took = time.perf_counter() - began
    left, dotted = left_in(target)
    if dotted != NOTHING or left != text.kept:
        raise WrongResult(f"{name} kept {left} and {dotted} of {text.kept}")
    for place in target.parent.glob(f"{target.name}*"):
        shutil.rmtree(place)
    return took


@dataclass(frozen=True, slots=True)
class Measured:
    """The seconds of each contestant, by name."""

    files: int
    seconds: dict[str, list[float]]

    def over(self, name: str) -> float:
        """How many times as fast as a contestant dagkit is: the median over the rounds."""
        return statistics.median(self.seconds[name]) / statistics.median(self.seconds[DAGKIT])

    @property
    def holds(self) -> bool:
        return all(self.over(name) >= least for name, least in LEAST.items() if name in self.seconds)


def page(measured: Measured) -> str:
    """This benchmark's part of the documents."""
    rounds = len(measured.seconds[DAGKIT])
    about = (
        f"{measured.files} files of about {FILE_BYTES} bytes in folders of {IN_FOLDER}, in memory. Each contestant "
        "drops the lines that begin with a dot and writes the others to few files; its output is checked. They take "
        f"turns in one session; rounds: {rounds}. Measured with {machine_in_words()}."
    )
    lines = ["## Small files", "", "```sh", "python -m bench small_files --write-docs", "```", "", about, ""]
    lines += [
        "|  | seconds | fastest to slowest | files/s | times the time of dagkit | wanted |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, taken in measured.seconds.items():
        middle, wanted = statistics.median(taken), f"{LEAST[name]:g}" if name in LEAST else ""
        spread = f"{min(taken):.2f} to {max(taken):.2f}"
        rate = f"{measured.files / middle:.0f}"
        lines.append(f"| {name} | {middle:.2f} | {spread} | {rate} | {measured.over(name):.1f} | {wanted} |")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Measure and print; return 1 if dagkit is too slow."""
    parser = argparse.ArgumentParser(prog="python -m bench small_files", description=__doc__)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument(
        "--against", choices=list(LEAST), action="append", help="run only this contestant beside dagkit"
    )
    parser.add_argument("--write-docs", action="store_true", help="write the results into docs/benchmarks.md")
    asked = parser.parse_args(arguments)
    names = [DAGKIT, *(LEAST if asked.against is None else asked.against)]
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        spark = local_session(cores())
        try:
            measured = Measured(asked.files, race(spark, Path(folder), asked.files, asked.rounds, names))
        finally:
            spark.stop()
    if asked.json:
        over = {name: measured.over(name) for name in names[1:]}
        head = {"schema": "dagkit.bench.small-files/1", **asdict(measured)}
        print(json.dumps({**head, "over": over, "least": LEAST, "holds": measured.holds}))
    else:
        print(page(measured))
    if asked.write_docs:
        bars = [Bar(name, [asked.files / each for each in taken]) for name, taken in measured.seconds.items()]
        write_part("small_files", page(measured), Chart("bench-small-files", "Small files, files/s", bars))
    return 0 if measured.holds else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
