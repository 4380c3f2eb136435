"""What a `SparkSink` writes with Spark is there once, wherever a run ends, and a function gets each window again."""

import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from dagkit import Config, Dag
from dagkit.api.running import Until
from dagkit.engine.program.failures import OperatorFailed
from dagkit.engine.program.points import Point
from dagkit.launching import launch
from dagkit.testing import CrashAfter, FakeClock
from dagkit_operators import Map, ParquetReader, SparkSink, SparkSource
from dagkit_operators.tables.staged_rows import _entry_of
from tests.backends.cast import chained
from tests.backends.places import crashes
from tests.engine.cast import Desk, Digits, Draw, Ranges

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Order:
    number: int
    text: str


LOOKS = ((4, 3), (5,), (2, 2))
ALL = [(number, f"order {number}") for number in range(16)]


def orders_written(sink: SparkSink[Order]) -> Draw:
    each = Map(lambda number: Order(number, f"order {number}"))
    return lambda dag, _: chained(dag, ranges=Ranges(looks=LOOKS), digits=Digits(), each=each, write=sink)


def desk_of(home: Path, sink: SparkSink[Order]) -> Desk:
    return Desk(home, orders_written(sink), until=Until.IDLE, clock=FakeClock())


def read(spark: SparkSession, folder: Path) -> list[tuple[int, str]]:
    rows = spark.read.json(str(folder)).select("number", "text").collect()
    return sorted((row.number, row.text) for row in rows)


POINTS = [Point.STAGED, Point.APPENDED, Point.DELIVERED, Point.FINISHED]


@pytest.mark.parametrize("point", crashes(POINTS, in_gate=[Point.DELIVERED]))
def test_a_crash_after_any_step_loses_and_doubles_nothing(spark, tmp_path, point):
    out = tmp_path / "out"
    sink = SparkSink(spark, path=str(out), format="json", record_type=Order)
    desk = desk_of(tmp_path, sink)
    assert desk.crash(CrashAfter(point, 1), CrashAfter(point, 2)) == 2
    last = desk.run().checkpoint.window
    assert read(spark, out) == ALL
    assert (desk.faults(), desk.leftovers()) == ([], [])
    assert {row.window for row in spark.read.json(str(out)).select("window").collect()} <= set(range(last + 1))


def test_a_function_gets_a_window_again_with_its_number(spark, tmp_path):
    written: list[tuple[int, list[int]]] = []

    def write(rows: DataFrame, window_id: int) -> None:
        written.append((window_id, sorted(row.number for row in rows.collect())))

    desk = desk_of(tmp_path, SparkSink(spark, write=write, record_type=Order))
    assert desk.crash(CrashAfter(Point.DELIVERED, 1)) == 1
    (first,) = written
    desk.run()
    assert written[1] == first
    assert sorted(number for _, numbers in written[1:] for number in numbers) == list(range(16))
    assert len({window_id for window_id, _ in written}) == len(written) - 1


def test_an_application_that_starts_over_overwrites_nothing(spark, tmp_path):
    out = tmp_path / "out"
    for home in ("one", "other"):
        (tmp_path / home).mkdir()
        desk_of(tmp_path / home, SparkSink(spark, path=str(out), format="json", record_type=Order)).run()
    assert read(spark, out) == sorted(ALL * 2)


@dataclass
class Staged:
    tables: tuple[pa.Table, ...]
    writer: str = "chain/write.staged"
    window_id: int = 7

    def entries(self) -> Iterator[bytes]:
        for table in self.tables:
            yield bytes(_entry_of(table))


def test_what_an_interrupted_write_left_is_overwritten(spark, tmp_path):
    sink = SparkSink(spark, path=str(tmp_path), format="json")
    folder = tmp_path / "writer=chain%2Fwrite.staged/window=7"
    folder.mkdir(parents=True)
    (folder / "part-00000.json").write_text('{"number": 1, "text": "half"}\n')
    system = type(sink).staged.system(sink)
    system.prepare("chain/write.staged")
    for _ in range(2):
        system.apply(Staged((pa.table({"number": [1]}), pa.table({"text": ["b"], "number": [2]}))))
    assert (folder / "_SUCCESS").exists()
    rows = spark.read.json(str(tmp_path)).select("number", "text", "writer", "window").orderBy("number").collect()
    assert [tuple(row) for row in rows] == [(1, None, "chain/write.staged", 7), (2, "b", "chain/write.staged", 7)]


@dataclass
class Squared:
    number: int
    square: int


def squares(session: SparkSession, out: str) -> Callable[[Dag, Config], None]:
    def populate_dag(dag: Dag, conf: Config) -> None:
        source = dag.add_operator("Rows", SparkSource(session.range(1000)))
        reader = dag.add_operator("Reader", ParquetReader())
        square = dag.add_operator("Square", Map(lambda row: Squared(row["id"], row["id"] ** 2)))
        sink = dag.add_operator("Sink", SparkSink(session, path=out, format="orc", record_type=Squared))
        source >> reader >> square >> sink

    return populate_dag


def test_spark_writes_the_records_of_an_application(session, tmp_path):
    out = str(tmp_path / "out")
    launch(squares(session, out), spark=session, path=tmp_path / "app")
    result = session.read.orc(out).selectExpr("count(*)", "sum(square)", "max(number)").collect()
    assert [tuple(row) for row in result] == [(1000, sum(n * n for n in range(1000)), 999)]


NOON = dt.datetime(2026, 11, 23, 12, tzinfo=dt.UTC)


def test_datetimes_without_a_time_zone_stay_so(session):
    frames: list[DataFrame] = []
    sink: SparkSink[Any] = SparkSink(session, write=lambda rows, window_id: frames.append(rows))
    before = session.conf.get("spark.sql.timestampType")
    moments = pa.array([NOON.replace(tzinfo=None)], pa.timestamp("us"))
    type(sink).staged.system(sink).apply(Staged((pa.table({"naive": moments, "aware": [NOON]}),)))
    assert [kind for _, kind in frames[0].dtypes] == ["timestamp_ntz", "timestamp"]
    assert frames[0].collect()[0].naive == NOON.replace(tzinfo=None)
    assert session.conf.get("spark.sql.timestampType") == before


def test_a_session_that_is_stopped_is_refused_before_anything_is_read(tmp_path, spark):
    class Stopped:
        """A session that answers as a stopped one does."""

        conf = spark.conf

        def createDataFrame(self, rows: pa.Table) -> DataFrame:  # noqa: N802 - as in Spark
            raise RuntimeError("the session is stopped")

    desk = desk_of(tmp_path, SparkSink(Stopped(), path=str(tmp_path / "out"), record_type=Order))
    with pytest.raises(OperatorFailed, match="the session is stopped"):
        desk.run()
    assert list(desk.loop().parts.inputs.found) == []


@pytest.mark.parametrize("given", [{}, {"path": "out", "write": print}], ids=["neither", "both"])
def test_a_sink_has_a_path_or_a_function(spark, given):
    assert [fault.message for fault in SparkSink(spark, **given).faults] == ["it needs a path, or write, and not both"]
