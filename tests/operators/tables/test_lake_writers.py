"""Rows are in a Delta or Iceberg table once, wherever a run ends; faults name the column, and no credentials."""

import logging
import sqlite3
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyiceberg
import pytest
from deltalake import DeltaTable as Delta
from packaging.requirements import Requirement
from packaging.version import Version

from dagkit import Config, Unavailable, Until
from dagkit.compiler import compile_application
from dagkit.engine.program.points import Point
from dagkit.errors import ApplicationFaults, RunFailure
from dagkit.plan import write_plan
from dagkit.testing import CrashAfter, FakeClock
from dagkit_operators.tables import lake_table, staged_rows
from dagkit_operators.tables.staged_rows import _entry_of
from dagkit_operators.tables.storage import storage_failure
from tests.cases import cases
from tests.engine.cast import Desk, files_in
from tests.operators.sql.sql_cast import Meanwhile
from tests.operators.tables.lakes import LAKES, DeltaLake, IcebergLake, all_rows, rows_written
from tests.operators.tables.memory_of_a_window import ROWS, WIDTH
from tests.operators.ways import refused
from tests.processes import run_program

ENTRIES = 80
"""Those of a window of 160 MiB, which is twenty pieces."""


@pytest.fixture(params=list(LAKES))
def lake(request, tmp_path):
    return LAKES[request.param](tmp_path)


@pytest.fixture
def system(lake):
    """The writer of a table with a row of the first window."""
    system = lake.system()
    system.prepare("writer")
    system.apply(Staged("writer", 1))
    return system


def desk_of(home, lake, clock=None, **properties):
    return Desk(home, rows_written(lake, **properties), until=Until.IDLE, clock=clock or FakeClock())


@pytest.mark.slow
def test_every_row_is_in_the_table_once(tmp_path, lake):
    desk = desk_of(tmp_path, lake)
    loop = desk.run()
    assert lake.rows() == all_rows()
    assert len(lake.windows()) == loop.checkpoint.window
    assert (desk.faults(), desk.leftovers()) == ([], [])


@pytest.mark.gate(2)
@pytest.mark.slow
@pytest.mark.parametrize("point", [Point.STAGED, Point.APPENDED, Point.DELIVERED, Point.FINISHED])
def test_a_crash_after_any_step_loses_and_doubles_nothing(tmp_path, lake, point):
    desk = desk_of(tmp_path, lake)
    desk.crash(CrashAfter(point, 1), CrashAfter(point, 2))
    desk.run()
    assert lake.rows() == all_rows()


@dataclass
class Staged:
    """A window that staged these tables; without any, a row with the number of the window."""

    writer: str
    window_id: int
    tables: tuple[pa.Table, ...] = ()

    def entries(self):
        for table in self.tables or (pa.table({"number": [self.window_id], "text": ["x"]}),):
            yield bytes(_entry_of(table))


def overtaken(system, act, *, once=True):
    """Act each time after this system has examined the table, and before it commits."""
    opened = system._opened

    def then_acts(*given, **more):
        found = opened(*given, **more)
        if once:
            system._opened = opened
        act()
        return found

    system._opened = then_acts


def numbers(lake):
    return [row["number"] for row in lake.rows()]


@pytest.mark.slow
def test_two_drivers_add_a_window_once(lake, system):
    """The second one examines the table before the first one adds the window, and commits after it."""
    second = lake.system()
    second.prepare("writer")
    overtaken(second, lambda: system.apply(Staged("writer", 2)))
    second.apply(Staged("writer", 2))
    assert numbers(lake) == [1, 2]


OTHER = pa.table({"number": [9], "text": ["other"]})


@pytest.mark.slow
def test_a_version_of_another_program_in_between_loses_nothing(lake, system):
    overtaken(system, lambda: lake.add(OTHER))
    system.apply(Staged("writer", 2))
    assert numbers(lake) == [1, 2, 9]


@pytest.mark.slow
def test_a_table_whose_every_commit_conflicts_lets_the_run_wait(lake, system, monkeypatch):
    monkeypatch.setattr(lake_table, "_MOST_CONFLICTS", 3)
    overtaken(system, lambda: lake.add(OTHER), once=False)
    with pytest.raises(Unavailable):
        system.apply(Staged("writer", 2))
    assert numbers(lake) == [1, 9, 9, 9]


@dataclass(frozen=True)
class Wide:
    number: int
    amount: float


@pytest.mark.slow
@pytest.mark.usefixtures("system")
def test_a_table_that_does_not_fit_is_refused_before_anything_is_read(tmp_path, lake):
    desk = desk_of(tmp_path, lake, record_type=Wide)
    with refused("table-mismatched", "has no column amount; its columns are number, text"):
        desk.run()
    assert list(desk.loop().parts.inputs.found) == []


@pytest.mark.slow
def test_a_table_that_is_missing_and_may_not_be_created_is_named(tmp_path, lake):
    with refused("table-mismatched", r"no .*table"):
        desk_of(tmp_path, lake, creates_table=False).run()


SENDING = "HTTP error: sending"


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (f"Error performing PUT http://127.0.0.1:1/bucket/table in 403.125µs - {SENDING}", "system-unavailable"),
        (f"Error performing PUT http://127.0.0.1:403/bucket/table in 1.401ms - {SENDING}", "system-unavailable"),
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
    with caplog.at_level(logging.WARNING):
        desk_of(tmp_path, lake, Meanwhile(lock.close), catalog=impatient).run()
    assert lake.rows() == all_rows()
    first, second = [record.getMessage() for record in caplog.records if record.name.startswith("dagkit")]
    assert "database is locked" in first
    assert "answers again" in second


FIRST_CATALOG = """
from dagkit.errors import RunFailure
from dagkit_operators import IcebergWriter
from dagkit_operators.tables.iceberg import IcebergTable

catalog = {"type": "sql", "uri": "sqlite:////nowhere/catalog.db", "warehouse": "lake"}
try:
    IcebergTable(IcebergWriter("sales.numbers", catalog=catalog)).prepare("writer")
except RunFailure as failure:
    print(failure.code)
"""


@pytest.mark.slow
def test_the_first_catalog_of_a_process_that_cannot_be_opened_is_refused_like_each_later_one():
    """The library of the database is loaded by the catalog."""
    assert run_program([sys.executable, "-c", FIRST_CATALOG]).stdout == "database-refused\n"


@pytest.mark.slow
def test_a_delta_table_is_created_with_its_partitions(tmp_path):
    lake = DeltaLake(tmp_path)
    desk_of(tmp_path, lake, partition_by=("text",)).run()
    assert Delta(lake.uri).metadata().partition_columns == ["text"]
    assert lake.rows() == all_rows()


@pytest.mark.trial
@pytest.mark.slow
@pytest.mark.parametrize("kind", LAKES)
def test_a_window_is_not_held_in_memory(tmp_path, kind):
    module = "tests.operators.tables.memory_of_a_window"
    printed = run_program([sys.executable, "-m", module, kind, str(tmp_path), str(ENTRIES)])
    assert int(printed.stdout) < 0.6 * ENTRIES * ROWS * WIDTH


@pytest.mark.slow
def test_pieces_of_one_window_may_lack_columns_and_differ_in_types(lake, system):
    narrow = pa.table({"number": pa.array([3], pa.int16())})
    system.apply(Staged("writer", 2, (pa.table({"text": ["y"], "number": [2]}), narrow)))
    assert [(row["number"], row["text"]) for row in lake.rows()] == [(1, "x"), (2, "y"), (3, None)]


@pytest.mark.slow
def test_a_row_whose_value_does_not_fit_is_named_and_nothing_of_its_window_is_added(lake):
    system = lake.system()
    system.prepare("writer")
    system.apply(Staged("writer", 1, (pa.table({"number": pa.array([1], pa.int32())}),)))
    large = pa.table({"number": [*range(1000), 1 << 40, 1 << 41]})
    with pytest.raises(RunFailure, match=r"\{'number': 1099511627776\}") as raised:
        system.apply(Staged("writer", 2, (pa.table({"number": [2]}), large)))
    assert raised.value.code == "row-refused"
    assert lake.rows() == [{"number": 1}]


@pytest.mark.slow
def test_a_value_that_a_table_needs_is_missed_before_anything_is_added(lake):
    needed = pa.schema([pa.field("number", pa.int64()), pa.field("text", pa.string(), nullable=False)])
    system = lake.system()
    system.prepare("writer")
    system.apply(Staged("writer", 1, (pa.table({"number": [1], "text": ["x"]}, schema=needed),)))
    for code, problem, rows in (
        ("table-mismatched", "needs values of the column text", {"number": [2]}),
        (
            "row-refused",
            r"\{'number': 3, 'text': None\}: the column text has no value",
            {"number": [2, 3], "text": ["y", None]},
        ),
    ):
        with pytest.raises(RunFailure, match=problem) as raised:
            system.apply(Staged("writer", 2, (pa.table(rows),)))
        assert raised.value.code == code
    assert len(lake.rows()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("lake", ["iceberg"], indirect=True)
def test_the_rows_of_a_window_are_one_snapshot_also_of_a_partitioned_table(lake, system, monkeypatch):
    monkeypatch.setattr(staged_rows, "_BYTES_TOGETHER", 1)
    with lake.loaded.update_spec() as spec:
        spec.add_identity("text")
    tables = tuple(pa.table({"number": [number, number], "text": ["even", "odd"]}) for number in (2, 3))
    system.apply(Staged("writer", 2, tables))
    assert lake.windows() == ["1", "2"]
    assert numbers(lake) == [1, 2, 2, 3, 3]
    assert len(lake.loaded.inspect.files()) == 5


def test_no_version_of_pyiceberg_is_installed_whose_private_function_was_not_tried():
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    (allowed,) = (Requirement(each).specifier for each in project["optional-dependencies"]["iceberg"])
    tried = Version(pyiceberg.__version__)
    assert tried in allowed
    assert Version(f"{tried.major}.{tried.minor + 1}.0") not in allowed


SECRETS = ("hunter2-planted", "hunter3%2Fplanted", "hunter3/planted")
AWAY = "http://me:hunter2-planted@127.0.0.1:1/root?sv=2024&sig=hunter3%2Fplanted"
"""Where nothing answers."""


def shown_in(text):
    return [secret for secret in SECRETS if secret in text]


IN_S3 = {
    "AWS_ENDPOINT_URL": AWAY,
    "AWS_ALLOW_HTTP": "true",
    "AWS_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "me",
    "AWS_SECRET_ACCESS_KEY": SECRETS[2],
    "max_retries": "0",
}
SERVICE = {"type": "rest", "uri": AWAY}
DATABASE = {"type": "sql", "uri": "sqlite:////nowhere/catalog.db?sig=hunter3%2Fplanted"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Query string argument")  # SQLite takes no credentials in a URL
@cases(
    "kind, properties, code",
    ("delta", DeltaLake, {"uri": "s3://bucket/table", "storage_options": IN_S3}, "system-unavailable"),
    ("iceberg in a service", IcebergLake, {"catalog": SERVICE}, "system-unavailable"),
    ("iceberg in a database", IcebergLake, {"catalog": DATABASE}, "database-refused"),
)
def test_a_system_that_is_away_is_reported_and_its_credentials_are_shown_nowhere(
    tmp_path, *, kind, properties, code, caplog
):
    draw = rows_written(kind(tmp_path), waits_seconds=2, **properties)
    plan = write_plan(compile_application(draw, Config.of({})).plan)
    desk = Desk(tmp_path, draw, until=Until.IDLE, clock=FakeClock())
    with caplog.at_level(logging.INFO), refused(code) as raised:
        desk.run()
    ledger = b"".join(path.read_bytes() for path in files_in(tmp_path / "app")).decode("utf-8", "replace")
    assert ledger
    assert shown_in(f"{plan} {raised.value} {raised.value.__cause__!r} {caplog.text} {ledger}") == []


@pytest.mark.parametrize(
    "uri",
    [
        "az://container/table?sv=2024&sig=hunter2-planted",
        "https://account.blob.core.windows.net/container/table?sig=hunter2-planted",
        "s3://me:hunter2-planted@bucket/table",
        "https://hunter2-planted@host/table",
        "abfss://container:hunter2-planted@account.dfs.core.windows.net/table",
    ],
)
def test_the_uri_of_a_delta_table_is_refused_if_it_shows_credentials(tmp_path, uri):
    with pytest.raises(ApplicationFaults, match="the uri shows a user or a query") as raised:
        compile_application(rows_written(DeltaLake(tmp_path), uri=uri), Config.of({}))
    assert shown_in(str(raised.value)) == []


@pytest.mark.parametrize("uri", ["lake/what?/table", "abfss://container@account.dfs.core.windows.net/table"])
def test_a_uri_without_credentials_is_taken(tmp_path, uri):
    assert DeltaLake(tmp_path).writer(uri=uri).uri == uri
