"""The data source "dagkit" in Spark itself, in a classic session and behind a Spark Connect server."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from dagkit import Config, Dag
from dagkit.dataframes import register
from dagkit.engine.program.points import Point
from dagkit.launching import launch
from dagkit.testing import Crash, CrashAfter
from dagkit_operators import (
    FileSplitterInput,
    LineReader,
    Map,
    ParquetPartWriter,
    ParquetReader,
    PartWriter,
    SparkSource,
)
from tests.backends.cast import chained
from tests.backends.places import crashes
from tests.old_files import aged

pytestmark = pytest.mark.spark


class Query:
    """A query that copies lines to Parquet files, and starts again for each run."""

    def __init__(self, spark: SparkSession, home: Path) -> None:
        register(spark)
        self.spark, self.home = spark, home
        (home / "in").mkdir()

    def write(self, name: str, *lines: str) -> None:
        (path := self.home / "in" / name).write_text("".join(f"{line}\n" for line in lines))
        aged(path)

    def run(self, **options: str) -> list[int]:
        """Read what is available; return the rows of each micro-batch."""
        given = {"ledger": str(self.home / "ledger"), **options}
        lines = self.spark.readStream.format("dagkit").options(**given).load(str(self.home / "in"))
        query = lines.writeStream.format("parquet").option("path", str(self.home / "out"))
        query = query.option("checkpointLocation", str(self.home / "checkpoint")).trigger(availableNow=True)
        running = query.start()
        running.awaitTermination()
        return [progress.numInputRows for progress in running.recentProgress]

    @property
    def lines(self) -> list[str]:
        return sorted(row.value for row in self.spark.read.parquet(str(self.home / "out")).collect())


@pytest.mark.trial
def test_a_query_reads_each_line_once_over_several_runs(session, tmp_path):
    query = Query(session, tmp_path)
    for number in range(5):
        query.write(f"{number}.txt", f"{number} a", f"{number} b")
    assert query.run(maxFilesPerTrigger="2") == [4, 4, 2]
    assert sum(query.run()) == 0
    query.write("0.txt", "0 anew", "and longer")  # Spark's own file source never reads it again
    query.write("late.txt", "late")
    assert sum(query.run()) == 3
    first = [f"{number} {letter}" for number in range(5) for letter in "ab"]
    assert query.lines == sorted([*first, "0 anew", "and longer", "late"])


def test_wrong_options_are_explained_in_the_error_of_spark(session, tmp_path):
    register(session)
    with pytest.raises(PySparkException, match="contains no ledger"):
        session.readStream.format("dagkit").load(str(tmp_path)).writeStream.format("noop").start().awaitTermination()


def test_the_output_of_an_application_is_a_dataframe(session, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "in/words.txt").write_text("to\nbe\nor\nnot\nto\nbe\n")

    def copy(dag: Dag, conf: Config) -> None:
        found = FileSplitterInput(scanner={"files": ["in"]})
        chained(dag, Found=found, Reader=LineReader(), Writer=PartWriter(file_path="out"))

    launched = launch(copy, spark=session, until="once", path=tmp_path / "app")
    counted = launched.to_dataframe(session).groupBy("value").count().orderBy("value")
    assert [tuple(row) for row in counted.collect()] == [("be", 2), ("not", 1), ("or", 1), ("to", 2)]
    (file,) = (tmp_path / "out").iterdir()
    file.write_text("changed\n")
    with pytest.raises(PySparkException, match="was changed after the application had written it"):
        launched.to_dataframe(session, "Writer").collect()


@dataclass
class Squared:
    number: int
    square: int


def squares(frame: DataFrame, out: str) -> Callable[[Dag, Config], None]:
    def populate_dag(dag: Dag, conf: Config) -> None:
        source = dag.add_operator("Rows", SparkSource(frame))
        reader = dag.add_operator("Reader", ParquetReader())
        square = dag.add_operator("Square", Map(lambda row: Squared(row["id"], row["id"] ** 2)))
        writer = dag.add_operator("Writer", ParquetPartWriter(file_path=out, record_type=Squared))
        source >> reader >> square >> writer

    return populate_dag


def test_the_rows_of_a_dataframe_are_an_input(session, tmp_path):
    launched = launch(squares(session.range(1000), str(tmp_path / "out")), spark=session, path=tmp_path / "app")
    result = launched.to_dataframe(session, "Writer").selectExpr("count(*)", "sum(square)", "max(number)").collect()
    assert [tuple(row) for row in result] == [(1000, sum(n * n for n in range(1000)), 999)]


@pytest.mark.parametrize("point", crashes(Point, in_gate=[Point.APPENDED]))
def test_a_dataframe_that_differs_each_time_is_read_once_whatever_happens(spark, tmp_path, point):
    def random() -> DataFrame:
        return spark.range(100, numPartitions=4).selectExpr("cast(rand() * 1000000 as bigint) as id")

    out = str(tmp_path / "out")
    with contextlib.suppress(Crash):
        launch(squares(random(), out), spark=spark, path=tmp_path / "app", probe=CrashAfter(point))
    launched = launch(squares(random(), out), spark=spark, path=tmp_path / "app")
    numbers = [row.number for row in launched.to_dataframe(spark, "Writer").collect()]
    stored = [row.id for row in spark.read.parquet(str(tmp_path / "app/frames/Rows")).collect()]
    assert sorted(numbers) == sorted(stored)
    assert len(numbers) == 100
