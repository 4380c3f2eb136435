"""Rows are in a Delta or Iceberg table once, wherever a run ends, and faults name the column."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pytest
from deltalake import DeltaTable as Delta
from deltalake import write_deltalake
from pyiceberg.catalog import load_catalog

from dagkit import Dag, PortContext, Unavailable
from dagkit.api.running import Until
from dagkit.engine.failures import OperatorFailed
from dagkit.engine.points import Point
from dagkit.testing import CrashAfter, FakeClock
from dagkit_operators import DeltaWriter, IcebergWriter, Map
from dagkit_operators.tables import storage
from dagkit_operators.tables.delta import DeltaTable
from dagkit_operators.tables.iceberg import IcebergTable
from tests.engine.cast import Desk, Digits, Draw, Ranges


@dataclass(frozen=True)
class Row:
    number: int
    text: str | None


ALL = [{"number": number, "text": f"row {number}"} for number in range(16)]


class Lake(Protocol):
    """A table of either format."""

    def writer(self, **properties: Any) -> DeltaWriter[Any] | IcebergWriter[Any]: ...
    def system(self) -> Any: ...
    def rows(self) -> list[Mapping[str, Any]]: ...
    def add(self, rows: pa.Table) -> None:
        """Add rows as another program does."""

    def windows(self) -> list[str]:
        """The window that each version names."""


@dataclass
class DeltaLake:
    home: Path

    @property
    def uri(self) -> str:
        return str(self.home / "table")

    def writer(self, **properties: Any) -> DeltaWriter[Any]:
        return DeltaWriter(**{"uri": self.uri, "record_type": Row, **properties})

    def system(self) -> DeltaTable:
        return DeltaTable(self.uri, partition_by=(), settings={}, schema=None, creates_table=True)

    def rows(self) -> list[Mapping[str, Any]]:
        rows = pa.table(Delta(self.uri).to_pyarrow_table())
        return sorted(rows.to_pylist(), key=lambda row: row["number"])

    def add(self, rows: pa.Table) -> None:
        write_deltalake(self.uri, rows, mode="append")

    def windows(self) -> list[str]:
        return [str(each["operation"]) for each in Delta(self.uri).history() if each["operation"] == "WRITE"]


@dataclass
class IcebergLake:
    home: Path

    @property
    def catalog(self) -> dict[str, str]:
        return {"type": "sql", "uri": f"sqlite:///{self.home}/catalog.db", "warehouse": f"file://{self.home}/lake"}

    def writer(self, **properties: Any) -> IcebergWriter[Any]:
        return IcebergWriter(**{"catalog": self.catalog, "table": "sales.numbers", "record_type": Row, **properties})

    def system(self) -> IcebergTable:
        return IcebergTable(self.catalog, "sales.numbers", schema=None, creates_table=True)

    def rows(self) -> list[Mapping[str, Any]]:
        rows = load_catalog(**self.catalog).load_table("sales.numbers").scan().to_arrow()
        return sorted(rows.to_pylist(), key=lambda row: row["number"])

    def add(self, rows: pa.Table) -> None:
        load_catalog(**self.catalog).load_table("sales.numbers").append(rows)

    def windows(self) -> list[str]:
        snapshots = load_catalog(**self.catalog).load_table("sales.numbers").snapshots()
        return [each.summary.additional_properties["dagkit.window"] for each in snapshots if each.summary]


@pytest.fixture(params=[DeltaLake, IcebergLake], ids=["delta", "iceberg"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    made: Callable[[Path], Lake] = request.param
    return made(tmp_path)


def rows_written(lake: Lake, **properties: Any) -> Draw:
    def draw(dag: Dag, conf: object) -> None:
        ranges = dag.add_operator("ranges", Ranges(looks=((4, 3), (5,), (2, 2))))
        digits = dag.add_operator("digits", Digits())
        each = dag.add_operator("each", Map(lambda number: Row(number, f"row {number}")))
        write = dag.add_operator("write", lake.writer(**properties))
        dag.set_input_port_attribute(each.input, PortContext.PARTITION_PARALLEL, True)
        dag.add_stream("blocks", ranges.blocks, digits.blocks)
        dag.add_stream("numbers", digits.numbers, each.input)
        dag.add_stream("rows", each.output, write.input)

    return draw


def desk_of(home: Path, lake: Lake, **properties: Any) -> Desk:
    return Desk(home, rows_written(lake, **properties), until=Until.IDLE, clock=FakeClock())


@pytest.mark.slow
def test_every_row_is_in_the_table_once(tmp_path: Path, lake: Lake) -> None:
    desk = desk_of(tmp_path, lake)
    loop = desk.run()
    assert lake.rows() == ALL
    assert len(lake.windows()) == loop.checkpoint.window
    assert (desk.faults(), desk.leftovers()) == ([], [])


@pytest.mark.slow
@pytest.mark.parametrize("point", [Point.STAGED, Point.APPENDED, Point.DELIVERED, Point.FINISHED])
def test_a_crash_after_any_step_loses_and_doubles_nothing(tmp_path: Path, lake: Lake, point: Point) -> None:
    desk = desk_of(tmp_path, lake)
    desk.crash(CrashAfter(point, 1), CrashAfter(point, 2))
    desk.run()
    assert lake.rows() == ALL


@dataclass
class Staged:
    """A window with one row."""

    writer: str
    window_id: int

    def entries(self) -> Any:
        from dagkit_operators.tables.staged_rows import _entry_of  # noqa: PLC0415

        self.met()
        return iter([bytes(_entry_of(pa.table({"number": [self.window_id], "text": ["x"]})))])

    def met(self) -> None:
        """Called when the rows are read."""


@pytest.mark.slow
def test_two_drivers_add_a_window_once(lake: Lake) -> None:
    """The second one examines the table before the first one adds the window, and commits after it."""
    first, second = lake.system(), lake.system()
    for system in (first, second):
        system.prepare("writer")
    first.apply(Staged("writer", 1))
    window = Staged("writer", 2)
    opened = second._opened

    def overtaken(*given: Any, **more: Any) -> Any:
        found = opened(*given, **more)
        if second._opened is overtaken:
            second._opened = opened
            first.apply(Staged("writer", 2))
        return found

    second._opened = overtaken
    second.apply(window)
    assert [row["number"] for row in lake.rows()] == [1, 2]


@pytest.mark.slow
def test_a_version_of_another_program_in_between_loses_nothing(lake: Lake) -> None:
    system = lake.system()
    system.prepare("writer")
    system.apply(Staged("writer", 1))
    opened = system._opened

    def overtaken(*given: Any, **more: Any) -> Any:
        found = opened(*given, **more)
        system._opened = opened
        lake.add(pa.table({"number": [9], "text": ["other"]}))
        return found

    system._opened = overtaken
    system.apply(Staged("writer", 2))
    assert [row["number"] for row in lake.rows()] == [1, 2, 9]


@pytest.mark.slow
def test_a_table_whose_every_commit_conflicts_lets_the_run_wait(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "_MOST_CONFLICTS", 3)
    system = lake.system()
    system.prepare("writer")
    system.apply(Staged("writer", 1))
    opened = system._opened

    def overtaken(*given: Any, **more: Any) -> Any:
        found = opened(*given, **more)
        lake.add(pa.table({"number": [9], "text": ["other"]}))
        return found

    system._opened = overtaken
    with pytest.raises(Unavailable):
        system.apply(Staged("writer", 2))
    assert [row["number"] for row in lake.rows()] == [1, 9, 9, 9]


@pytest.mark.slow
def test_a_table_that_does_not_fit_is_refused_before_anything_is_read(tmp_path: Path, lake: Lake) -> None:
    system = lake.system()
    system.prepare("other")
    system.apply(Staged("other", 1))
    desk = desk_of(tmp_path, lake, record_type=Wide)
    with pytest.raises(OperatorFailed, match="has no column amount; its columns are number, text") as raised:
        desk.run()
    assert raised.value.code == "table-mismatched"
    assert list(desk.loop().run_state.driver_inputs.found) == []


@dataclass(frozen=True)
class Wide:
    number: int
    amount: float


@pytest.mark.slow
def test_a_table_that_is_missing_and_may_not_be_created_is_named(tmp_path: Path, lake: Lake) -> None:
    with pytest.raises(OperatorFailed, match=r"no .*table") as raised:
        desk_of(tmp_path, lake, creates_table=False).run()
    assert raised.value.code == "table-mismatched"


@pytest.mark.slow
def test_a_storage_that_is_away_is_waited_for_and_its_secret_is_not_shown(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    options = {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "me",
        "AWS_SECRET_ACCESS_KEY": "hunter2",
        "max_retries": "0",
    }
    lake = DeltaLake(tmp_path)
    desk = desk_of(tmp_path, lake, uri="s3://bucket/table", storage_options=options, waits_seconds=2)
    with caplog.at_level(logging.WARNING), pytest.raises(OperatorFailed) as raised:
        desk.run()
    assert raised.value.code == "system-unavailable"
    assert "hunter2" not in f"{raised.value} {caplog.text}"


@pytest.mark.slow
def test_a_delta_table_is_created_with_its_partitions(tmp_path: Path) -> None:
    lake = DeltaLake(tmp_path)
    desk_of(tmp_path, lake, partition_by=("text",)).run()
    assert Delta(lake.uri).metadata().partition_columns == ["text"]
    assert lake.rows() == ALL
