"""Writing rows to tables with dagkit and with Spark: the same rows of one Parquet file, warm, by turns.

Each contestant reads all rows and adds them to PostgreSQL, to a Delta table or to a folder of Parquet files, with all
cores of one machine. Spark uses its JDBC writer for PostgreSQL, and its Parquet writer for the others: delta-spark has
no build for this version of Spark, and would add a log to the same files. Maven downloads the JDBC driver.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pa_parquet
from pydantic import SecretStr
from pyspark.sql import SparkSession

from bench._chart import Bar, Chart
from bench._jars import jars
from bench._page import machine_in_words, spread, write_part
from bench.ingesting.sizes import cores
from bench.ingesting.with_spark import _session as spark_session
from dagkit import Config, Dag, DagContext, PortContext, StreamingApplication
from dagkit.backends.spark import local_session
from dagkit.launching import launch
from dagkit_operators import DeltaWriter, FileSplitterInput, ParquetContext, ParquetPartWriter, ParquetReader, SqlWriter
from tests.services import postgres

LEAST_RATIO = {"PostgreSQL": 1.0, "Delta": 0.8, "Parquet": 0.8}
"""The least rate of dagkit, in rates of Spark."""
MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of ours is made in it
WARMING = 2
"""Runs of each before those that count: Spark's virtual machine compiles code during the first ones."""


@dataclass(frozen=True)
class Row:
    id: int
    name: str
    price: float


@dataclass(frozen=True, slots=True)
class Writing:
    """The rates of both for one kind of table, in thousands of rows a second."""

    kind: str
    dagkit: Sequence[float]
    spark: Sequence[float]

    @property
    def ratio(self) -> float:
        """The median rate of dagkit, in those of Spark."""
        return median(self.dagkit) / median(self.spark)

    def bars(self) -> list[Bar]:
        return [Bar(f"dagkit, {self.kind}", self.dagkit), Bar(f"Spark, {self.kind}", self.spark)]


class Write(StreamingApplication):
    """Reads a file with all cores, and writes its rows to a table."""

    kind_of_table: str
    source: Path
    target: str
    folder: Path

    def writer(self) -> Any:
        match self.kind_of_table:
            case "PostgreSQL":
                password = SecretStr(postgres.PASSWORD)
                return SqlWriter(record_type=Row, url=self.target, password=password, table=self.folder.name)
            case "Delta":
                return DeltaWriter(uri=str(self.folder / "table"), record_type=Row)
            case _:
                return ParquetPartWriter(file_path=str(self.folder / "table"), record_type=Row, compression="snappy")

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        size = -(-self.source.stat().st_size // cores())
        splitter = dag.add_operator("Split", FileSplitterInput(scanner={"files": [str(self.source)]}, block_size=size))
        reader = dag.add_operator(
            "Read", ParquetReader(min_readers=cores(), reader_context=ParquetContext(record_type=Row))
        )
        writer = dag.add_operator("Write", self.writer())
        dag.set_input_port_attribute(writer.input, PortContext.PARTITION_PARALLEL, True)
        dag.set_attribute(DagContext.APPLICATION_PATH, str(self.folder / "application"))
        dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("rows", reader.messages, writer.input)


def write_rows(path: Path, rows: int) -> None:
    """The rows that are read, in one file."""
    names = pa.array([f"a name of some length, number {number}" for number in range(rows)])
    table = pa.table({"id": range(rows), "name": names, "price": [number / 7 for number in range(rows)]})
    pa_parquet.write_table(table, path, row_group_size=max(1, rows // 8))


@cache
def _session() -> SparkSession:
    return local_session()


def with_dagkit(kind: str, source: Path, target: str, folder: Path) -> float:
    """Write a table as an application does, and return the seconds."""
    began = time.perf_counter()
    application = Write(kind_of_table=kind, source=source, target=target, folder=folder)
    launch(application, spark=_session(), until="once", durable=False)
    return time.perf_counter() - began


def with_spark(kind: str, source: Path, target: str, folder: Path) -> float:
    """Write a table with Spark, and return the seconds. Runs in a process with Spark's own settings."""
    session, began = spark_session(), time.perf_counter()
    rows = session.read.parquet(source.as_uri())
    if kind == "PostgreSQL":
        properties = {"user": "dagkit", "password": postgres.PASSWORD, "driver": "org.postgresql.Driver"}
        address = target.replace("postgresql://dagkit@", "jdbc:postgresql://") + "?reWriteBatchedInserts=true"
        rows.write.option("batchsize", 10_000).jdbc(address, folder.name, mode="append", properties=properties)
    else:
        rows.write.parquet((folder / "table").as_uri())
    return time.perf_counter() - began


def _use_driver(jar: str) -> None:
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--jars {jar} pyspark-shell"


def writings(home: Path, kinds: Sequence[str], rows: int, rounds: int) -> Iterator[Writing]:
    """The median rates of warm runs, by turns."""
    source = home / "rows.parquet"
    write_rows(source, rows)
    with ExitStack() as stack:
        spark = stack.enter_context(ProcessPoolExecutor(1, get_context("spawn"), _use_driver, (jars("postgresql"),)))
        target = stack.enter_context(postgres.running()).url if "PostgreSQL" in kinds else ""
        for kind in kinds:
            dagkit, native = [], []
            for number in range(WARMING + rounds):
                folders = [home / f"{who}_{kind.lower()}_{number}" for who in ("spark", "dagkit")]
                native.append(spark.submit(with_spark, kind, source, target, folders[0]).result())
                dagkit.append(with_dagkit(kind, source, target, folders[1]))
            yield Writing(kind, *([rows / 1e3 / seconds for seconds in runs[WARMING:]] for runs in (dagkit, native)))


def main(arguments: Sequence[str]) -> int:
    """Measure, print the rates, and return 1 if a ratio is not met."""
    parser = argparse.ArgumentParser(prog="python -m bench tables", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kinds", nargs="+", choices=LEAST_RATIO, default=list(LEAST_RATIO))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write-docs", action="store_true")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        found = list(writings(Path(folder), options.kinds, options.rows, options.rounds))
    report = in_words(found, options.rows, options.rounds)
    print(json.dumps([asdict(one) for one in found], indent=1) if options.json else report)
    if options.write_docs:
        bars = [bar for one in found for bar in one.bars()]
        write_part("tables", report, Chart("bench-tables", "Tables, thousand rows/s", bars))
    return int(any(one.ratio < LEAST_RATIO[one.kind] for one in found))


def in_words(found: Sequence[Writing], rows: int, rounds: int) -> str:
    """The report as a part of the page."""
    about = (
        f"Each reads {rows} rows from one Parquet file in memory, and adds them to a table: of PostgreSQL on the same "
        "machine, of Delta, or in a folder of Parquet files, both in memory. Spark uses its JDBC writer, with batches "
        "of 10,000 that the driver rewrites, and its Parquet writer for the other two: delta-spark has no build for "
        "this version of Spark, and would add a log to such files, so Delta is compared with Parquet. "
        "dagkit stages the rows, commits the window in its ledger, and delivers it. Nothing "
        "is synced: the server runs with `fsync=off`, and dagkit with `durable=False`. Medians of "
        f"{rounds} runs after {WARMING}, by turns, in thousands of rows a second. Measured with {machine_in_words()}."
    )
    lines = [
        "## Tables",
        "",
        "```sh",
        "python -m bench tables --write-docs",
        "```",
        "",
        about,
        "",
        "| table | dagkit | native Spark | ratio | at least |  |",
        "|---|---:|---:|---:|---:|---|",
    ]
    for one in found:
        least = LEAST_RATIO[one.kind]
        verdict = "holds" if one.ratio >= least else "falls short"
        rates = f"{spread(one.dagkit)} | {spread(one.spark)}"
        lines.append(f"| {one.kind} | {rates} | {one.ratio:.2f} | {least} | {verdict} |")
    return "\n".join(lines)
