"""Rows are in a Delta or Iceberg table once, wherever a run ends, and faults name the column."""

import logging
import sqlite3
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyiceberg
import pytest
from deltalake import DeltaTable as Delta
from packaging.requirements import Requirement
from packaging.version import Version
from pyiceberg.catalog import load_catalog

from dagkit import Unavailable
from dagkit.api.running import Until
from dagkit.engine.failures import OperatorFailed
from dagkit.engine.points import Point
from dagkit.errors import RunFailure
from dagkit.testing import CrashAfter, FakeClock
from dagkit_operators.tables import staged_rows, storage
from dagkit_operators.tables.staged_rows import _entry_of
from dagkit_operators.tables.storage import storage_failure
from tests.engine.cast import Desk
from tests.operators.sql.sql_cast import Meanwhile
from tests.operators.tables.lakes import ALL, LAKES, DeltaLake, IcebergLake, Lake, rows_written
from tests.operators.tables.memory_of_a_window import ROWS, WIDTH
from tests.processes import run_program

ENTRIES = 80
"""Those of a window of 160 MiB, which is twenty pieces."""


@pytest.fixture(params=list(LAKES))
def lake(request, tmp_path):
    return LAKES[request.param](tmp_path)


def desk_of(home: Path, lake: Lake, **properties: Any) -> Desk:
    return Desk(home, rows_written(lake, **properties), until=Until.IDLE, clock=FakeClock())


@pytest.mark.slow
def test_every_row_is_in_the_table_once(tmp_path, lake):
    desk = desk_of(tmp_path, lake)
    loop = desk.run()
    assert lake.rows() == ALL
    assert len(lake.windows()) == loop.checkpoint.window
    assert (desk.faults(), desk.leftovers()) == ([], [])


@pytest.mark.gate(5)
@pytest.mark.slow
@pytest.mark.parametrize("point", [Point.STAGED, Point.APPENDED, Point.DELIVERED, Point.FINISHED])
def test_a_crash_after_any_step_loses_and_doubles_nothing(tmp_path, lake, point):
    desk = desk_of(tmp_path, lake)
    desk.crash(CrashAfter(point, 1), CrashAfter(point, 2))
    desk.run()
    assert lake.rows() == ALL


@dataclass
class Staged:
    """A window that staged these tables."""

    writer: str
    window_id: int
    tables: tuple[pa.Table, ...] = ()

    def entries(self) -> Iterator[bytes]:
        """The tables; without any, a row with the number of the window."""
        for table in self.tables or (pa.table({"number": [self.window_id], "text": ["x"]}),):
            yield bytes(_entry_of(table))


@pytest.mark.slow
def test_two_drivers_add_a_window_once(lake):
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
def test_a_version_of_another_program_in_between_loses_nothing(lake):
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
def test_a_table_whose_every_commit_conflicts_lets_the_run_wait(lake, monkeypatch):
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
def test_a_table_that_does_not_fit_is_refused_before_anything_is_read(tmp_path, lake):
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
def test_a_table_that_is_missing_and_may_not_be_created_is_named(tmp_path, lake):
    with pytest.raises(OperatorFailed, match=r"no .*table") as raised:
        desk_of(tmp_path, lake, creates_table=False).run()
    assert raised.value.code == "table-mismatched"


@pytest.mark.slow
def test_a_storage_that_is_away_is_waited_for_and_its_secret_is_not_shown(tmp_path, caplog):
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


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (
            "Error performing PUT http://127.0.0.1:1/bucket/table in 403.125µs - HTTP error: sending",
            "system-unavailable",
        ),
        (
            "Error performing PUT http://127.0.0.1:403/bucket/table in 1.401ms - HTTP error: sending",
            "system-unavailable",
        ),
        ("Server returned non-2xx status code: 403 Forbidden", "database-refused"),
        ("Client error with status 401: no token", "database-refused"),
    ],
)
def test_a_duration_or_port_of_403_is_no_refusal(answer, code):
    assert storage_failure(OSError(answer), "s3://bucket/table").code == code


@pytest.mark.slow
def test_a_catalog_in_a_database_that_is_locked_is_waited_for(tmp_path, caplog):
    lake = IcebergLake(tmp_path)
    desk_of(tmp_path, lake).run(windows=1)
    lock = sqlite3.connect(tmp_path / "catalog.db", isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    impatient = {**lake.catalog, "uri": f"{lake.catalog['uri']}?timeout=0"}
    draw = rows_written(lake, catalog=impatient)
    with caplog.at_level(logging.WARNING):
        Desk(tmp_path, draw, until=Until.IDLE, clock=Meanwhile(lock.close)).run()
    assert lake.rows() == ALL
    first, second = [record.getMessage() for record in caplog.records if record.name.startswith("dagkit")]
    assert "database is locked" in first
    assert "answers again" in second


FIRST_CATALOG = """
from dagkit.errors import RunFailure
from dagkit_operators.tables.iceberg import IcebergTable

catalog = {"type": "sql", "uri": "sqlite:////nowhere/catalog.db", "warehouse": "lake"}
try:
    IcebergTable(catalog, "sales.numbers", schema=None, creates_table=True).prepare("writer")
except RunFailure as failure:
    print(failure.code)
"""


@pytest.mark.slow
def test_the_first_catalog_of_a_process_that_cannot_be_opened_is_refused_like_each_later_one():
    """The library of the database is loaded by the catalog."""
    command = [sys.executable, "-c", FIRST_CATALOG]
    printed = run_program(command)
    assert printed.stdout == "database-refused\n"


@pytest.mark.slow
def test_a_delta_table_is_created_with_its_partitions(tmp_path):
    lake = DeltaLake(tmp_path)
    desk_of(tmp_path, lake, partition_by=("text",)).run()
    assert Delta(lake.uri).metadata().partition_columns == ["text"]
    assert lake.rows() == ALL


@pytest.mark.trial
@pytest.mark.slow
@pytest.mark.parametrize("kind", LAKES)
def test_a_window_is_not_held_in_memory(tmp_path, kind):
    module = "tests.operators.tables.memory_of_a_window"
    command = [sys.executable, "-m", module, kind, str(tmp_path), str(ENTRIES)]
    printed = run_program(command)
    assert int(printed.stdout) < 0.6 * ENTRIES * ROWS * WIDTH


@pytest.mark.slow
def test_pieces_of_one_window_may_lack_columns_and_differ_in_types(lake):
    system = lake.system()
    system.prepare("writer")
    system.apply(Staged("writer", 1))
    narrow = pa.table({"number": pa.array([3], pa.int16())})
    system.apply(Staged("writer", 2, (pa.table({"text": ["y"], "number": [2]}), narrow)))
    assert lake.rows() == [
        {"number": 1, "text": "x"},
        {"number": 2, "text": "y"},
        {"number": 3, "text": None},
    ]


@pytest.mark.slow
def test_a_row_whose_value_does_not_fit_is_named_and_nothing_of_its_window_is_added(lake):
    system = lake.system()
    system.prepare("writer")
    system.apply(Staged("writer", 1, (pa.table({"number": pa.array([1], pa.int32())}),)))
    numbers = [*range(1000), 1 << 40, 1 << 41]
    with pytest.raises(RunFailure) as raised:
        system.apply(Staged("writer", 2, (pa.table({"number": [2]}), pa.table({"number": numbers}))))
    assert (raised.value.code, "{'number': 1099511627776}" in str(raised.value)) == ("row-refused", True)
    assert lake.rows() == [{"number": 1}]


@pytest.mark.slow
def test_a_value_that_a_table_needs_is_missed_before_anything_is_added(lake):
    needed = pa.schema([pa.field("number", pa.int64()), pa.field("text", pa.string(), nullable=False)])
    system = lake.system()
    system.prepare("writer")
    system.apply(Staged("writer", 1, (pa.table({"number": [1], "text": ["x"]}, schema=needed),)))
    with pytest.raises(RunFailure, match="needs values of the column text") as raised:
        system.apply(Staged("writer", 2, (pa.table({"number": [2]}),)))
    assert raised.value.code == "table-mismatched"
    with pytest.raises(RunFailure, match=r"\{'number': 3, 'text': None\}: the column text has no value") as raised:
        system.apply(Staged("writer", 2, (pa.table({"number": [2, 3], "text": ["y", None]}),)))
    assert raised.value.code == "row-refused"
    assert len(lake.rows()) == 1


@pytest.mark.slow
def test_the_rows_of_a_window_are_one_snapshot_also_of_a_partitioned_table(tmp_path, monkeypatch):
    monkeypatch.setattr(staged_rows, "_BYTES_TOGETHER", 1)
    lake = IcebergLake(tmp_path)
    system = lake.system()
    system.prepare("writer")
    system.apply(Staged("writer", 1))
    with load_catalog(**lake.catalog).load_table("sales.numbers").update_spec() as spec:
        spec.add_identity("text")
    tables = tuple(pa.table({"number": [number, number], "text": ["even", "odd"]}) for number in (2, 3))
    system.apply(Staged("writer", 2, tables))
    assert lake.windows() == ["1", "2"]
    assert [row["number"] for row in lake.rows()] == [1, 2, 2, 3, 3]
    (files,) = [load_catalog(**lake.catalog).load_table("sales.numbers").inspect.files()]
    assert len(files) == 5


def test_no_version_of_pyiceberg_is_installed_whose_private_function_was_not_tried():
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    (allowed,) = (Requirement(each).specifier for each in project["optional-dependencies"]["iceberg"])
    tried = Version(pyiceberg.__version__)
    assert tried in allowed
    assert Version(f"{tried.major}.{tried.minor + 1}.0") not in allowed
