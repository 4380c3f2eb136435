"""Reading JSON lines, CSV and Parquet with dagkit and with Spark's own readers: the same files, warm, by turns.

Each contestant reads all rows, keeps those with a price of at least 50, and takes two of five columns. Spark writes
them to its `noop` sink; dagkit sends them to an operator that counts them. Both use all cores of one machine.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet
from pyspark.sql import SparkSession
from pyspark.sql.functions import col

from bench._chart import Bar, Chart
from bench._page import machine_in_words, spread, write_part
from bench.ingesting.sizes import cores
from bench.ingesting.with_spark import _session as spark_session
from dagkit import Batch, Config, Dag, DagContext, InputPort, Operator, PortContext, StreamingApplication, auto_metric
from dagkit.backends.spark import local_session
from dagkit.launching import launch
from dagkit_operators import CsvReader, FileSplitterInput, JsonLinesReader, ParquetReader, Record, value

LEAST_RATIO = 1.5
"""The least rate of dagkit, in rates of Spark."""
MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of ours is made in it
WARMING = 8
"""Runs of each before those that count: Spark's virtual machine compiles code during the first ones."""
LEAST_PRICE = 50.0
TYPES = {"id": "int64", "name": "string", "price": "double", "sold": "bool", "note": "string"}
SPARK_TYPES = "id bigint, name string, price double, sold boolean, note string"
TAKEN = ("id", "price")
READERS = {"json": JsonLinesReader, "csv": CsvReader, "parquet": ParquetReader}


@dataclass(frozen=True, slots=True)
class Reading:
    """The rates of both for one format, in megabytes of the file a second."""

    format: str
    megabytes: float
    dagkit: Sequence[float]
    spark: Sequence[float]

    @property
    def ratio(self) -> float:
        """The median rate of dagkit, in those of Spark."""
        return median(self.dagkit) / median(self.spark)

    def bars(self) -> list[Bar]:
        return [Bar(f"dagkit, {self.format}", self.dagkit), Bar(f"Spark, {self.format}", self.spark)]


class CountRows(Operator):
    """Counts the records that arrive."""

    kind = "bench.count-rows/1"
    arriving = InputPort[Record[Any]]()
    counted = auto_metric(0)

    def process(self, item: Record[Any]) -> None:
        self.counted += 1

    def process_batch(self, batch: Batch[Record[Any]]) -> None:
        self.counted += len(batch)


class Read(StreamingApplication):
    """Reads a file with all cores, and counts the rows that are kept."""

    format: str
    source: Path
    folder: Path

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        context: dict[str, Any] = {"columns": TAKEN, "where": value.field("price") >= LEAST_PRICE}
        if self.format != "parquet":
            context["types"] = TYPES
        size = -(-self.source.stat().st_size // cores())
        splitter = dag.add_operator("Split", FileSplitterInput(scanner={"files": [str(self.source)]}, block_size=size))
        reader = dag.add_operator("Read", READERS[self.format](min_readers=cores(), reader_context=context))
        count = dag.add_operator("Count", CountRows())
        dag.set_input_port_attribute(count.arriving, PortContext.PARTITION_PARALLEL, True)
        dag.set_attribute(DagContext.APPLICATION_PATH, str(self.folder))
        dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("rows", reader.messages, count.arriving)


def table_of(rows: int) -> pa.Table:
    """The rows of all files."""
    chance = np.random.default_rng(7)
    numbers = chance.integers(0, 1000, rows)
    return pa.table(
        {
            "id": np.arange(rows),
            "name": pa.array([f"name {number}" for number in numbers.tolist()]),
            "price": np.round(chance.random(rows) * 100, 4),
            "sold": chance.random(rows) < 0.3,
            "note": pa.array([f"a note of some words, number {number}" for number in range(rows)]),
        }
    )


def write_files(folder: Path, rows: int) -> dict[str, Path]:
    """The same rows in a file of each format."""
    table = table_of(rows)
    paths = {name: folder / f"rows.{name}" for name in READERS}
    with paths["json"].open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in table.to_pylist())
    pa_csv.write_csv(table, paths["csv"])
    pa_parquet.write_table(table, paths["parquet"], row_group_size=max(1, rows // 8))
    return paths


@cache
def _session() -> SparkSession:
    return local_session()


def with_dagkit(name: str, path: Path, folder: Path) -> float:
    """Read a file as an application does, and return the seconds."""
    began = time.perf_counter()
    launch(Read(format=name, source=path, folder=folder), spark=_session(), until="once", durable=False)
    return time.perf_counter() - began


def with_spark(name: str, path: Path) -> float:
    """Read a file with the reader of Spark, and return the seconds. Runs in a process with Spark's own settings."""
    reading, began = spark_session().read, time.perf_counter()
    if name == "parquet":
        rows = reading.parquet(path.as_uri())
    elif name == "json":
        rows = reading.schema(SPARK_TYPES).json(path.as_uri())
    else:
        rows = reading.schema(SPARK_TYPES).option("header", value=True).csv(path.as_uri())
    rows.filter(col("price") >= LEAST_PRICE).select(*TAKEN).write.format("noop").mode("overwrite").save()
    return time.perf_counter() - began


def readings(paths: dict[str, Path], rounds: int) -> Iterator[Reading]:
    """The median rates of warm runs, by turns."""
    with ProcessPoolExecutor(1, get_context("spawn")) as spark:
        for name, path in paths.items():
            dagkit, native = [], []
            for number in range(WARMING + rounds):
                native.append(spark.submit(with_spark, name, path).result())
                dagkit.append(with_dagkit(name, path, path.parent / f"application-{name}-{number}"))
            size = path.stat().st_size / 1e6
            yield Reading(name, size, *([size / seconds for seconds in runs[WARMING:]] for runs in (dagkit, native)))


def main(arguments: Sequence[str]) -> int:
    """Measure, print the rates, and return 1 if a ratio is not met."""
    parser = argparse.ArgumentParser(prog="python -m bench formats", description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write-docs", action="store_true")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        found = list(readings(write_files(Path(folder), options.rows), options.rounds))
    report = in_words(found, options.rows, options.rounds)
    print(json.dumps([asdict(one) for one in found], indent=1) if options.json else report)
    if options.write_docs:
        bars = [bar for one in found for bar in one.bars()]
        write_part("formats", report, Chart("bench-formats", "Formats with columns, MB/s of the file", bars))
    return int(any(one.ratio < LEAST_RATIO for one in found))


def in_words(found: Sequence[Reading], rows: int, rounds: int) -> str:
    """The report as a part of the page."""
    about = (
        f"Each reads {rows} rows from one file in memory, keeps the half with a price of at least {LEAST_PRICE:.0f}, "
        "and takes two of five columns. Spark's own reader writes them to its `noop` sink, in a process with Spark's "
        "own settings; dagkit's reader sends them to an operator that counts them. Medians of "
        f"{rounds} runs after {WARMING}, by turns, in megabytes of the file a second. Measured with "
        f"{machine_in_words()}."
    )
    lines = [
        "## Formats with columns",
        "",
        "```sh",
        "python -m bench formats --write-docs",
        "```",
        "",
        about,
        "",
        "| format | file, MB | dagkit | native Spark | ratio | at least |  |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    for one in found:
        verdict = "holds" if one.ratio >= LEAST_RATIO else "falls short"
        figures = f"{one.megabytes:.0f} | {spread(one.dagkit)} | {spread(one.spark)} | {one.ratio:.2f} | {LEAST_RATIO}"
        lines.append(f"| {one.format} | {figures} | {verdict} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
