"""Rows are in the table once, wherever a run ends, and faults name the row or the column."""

import datetime as dt
import logging
import random
import resource
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dagkit import Dag
from dagkit.api.running import Until
from dagkit.engine.failures import OperatorFailed
from dagkit.engine.points import Point
from dagkit.testing import CrashAfter, FakeClock
from dagkit_operators import Items, Map, SqlWriter
from dagkit_operators.sql import windows
from tests.engine.cast import Desk
from tests.operators.sql.sql_cast import Meanwhile, Row, TestDatabase, rows_written, starting
from tests.processes import run_program
from tests.services.losing_answers import LosingAnswers
from tests.services.postgres import PASSWORD

ALL = [(number, f"row {number}") for number in range(16)]
NUMBERS = "SELECT number, text FROM numbers ORDER BY number"


def desk_of(home: Path, database: TestDatabase, **given: Any) -> Desk:
    return Desk(home, rows_written(database, **given), until=Until.IDLE, clock=FakeClock())


def items_written(database: TestDatabase, *items: Any, **properties: Any) -> Any:
    """Writes these items in one window."""

    def draw(dag: Dag, conf: object) -> None:
        write = SqlWriter(**{"table": "numbers", "record_type": Row, **database.settings, **properties})
        numbers = dag.add_operator("numbers", Items[int](items=tuple(range(len(items)))))
        numbers >> dag.add_operator("items", Map(lambda number: items[number])) >> dag.add_operator("write", write)

    return draw


def test_every_row_is_in_the_table_once(tmp_path, database):
    desk = desk_of(tmp_path, database)
    loop = desk.run()
    assert database.rows(NUMBERS) == ALL
    assert [window for _, window in database.rows("SELECT * FROM dagkit_windows")] == [loop.checkpoint.window]
    assert (desk.faults(), desk.leftovers()) == ([], [])


@pytest.mark.parametrize("point", Point)
def test_a_crash_after_any_step_loses_and_doubles_nothing(tmp_path, sqlite, point):
    desk = desk_of(tmp_path, sqlite)
    desk.crash(CrashAfter(point, 1), CrashAfter(point, 2))
    desk.run()
    assert sqlite.rows(NUMBERS) == ALL


def test_with_a_key_the_last_record_counts(tmp_path, database):
    rows = [Row(1, "first"), Row(2, "only"), Row(1, None), Row(1, "last")]
    Desk(tmp_path, items_written(database, *rows, key=("number",))).run()
    assert database.rows(NUMBERS) == [(1, "last"), (2, "only")]
    (tmp_path / "again").mkdir()
    Desk(tmp_path / "again", items_written(database, Row(2, "other"), Row(3, "new"), key=("number",))).run()
    assert database.rows(NUMBERS) == [(1, "last"), (2, "other"), (3, "new")]


def test_a_record_of_its_key_alone_is_there_once(tmp_path, sqlite):
    tables = [pa.table({"number": [1, 2]}), pa.table({"number": [2, 3]})]
    sqlite.rows("CREATE TABLE numbers (number INTEGER PRIMARY KEY)")
    Desk(tmp_path, items_written(sqlite, *tables, record_type=None, key=("number",))).run()
    assert sqlite.rows("SELECT number FROM numbers ORDER BY number") == [(1,), (2,), (3,)]


@dataclass(frozen=True)
class Wide:
    """A record with a field of each type."""

    number: int
    real: float
    flag: bool
    text: str | None
    raw: bytes
    day: dt.date
    instant: dt.datetime
    amount: Decimal


WIDE = Wide(2, 2.5, True, None, b"\x00\xff", dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 12, 30), Decimal("12.50"))  # noqa: DTZ001


def test_each_type_is_written_as_it_is(tmp_path, database):
    Desk(tmp_path, items_written(database, WIDE, record_type=Wide)).run()
    in_sqlite = (2, 2.5, 1, None, b"\x00\xff", "2024-02-29", "2024-02-29T12:30:00.000000", "12.500000000")
    (row,) = database.rows("SELECT * FROM numbers")
    if database.password is None:
        assert row == in_sqlite
    else:
        assert row[:-1] == (2, 2.5, True, None, b"\x00\xff", dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 12, 30))  # noqa: DTZ001
        assert database.rows("SELECT CAST(amount AS text) FROM numbers") == [("12.5",)]


@pytest.mark.slow
def test_postgres_converts_what_its_columns_need(tmp_path, postgres):
    database = TestDatabase(postgres.new_database(), PASSWORD)
    database.rows("CREATE SCHEMA sales")
    database.rows(
        "CREATE TABLE sales.numbers (number smallint, real real, flag boolean, text varchar(9), raw bytea, "
        "day date, instant timestamp, amount numeric(9,2))"
    )
    Desk(tmp_path, items_written(database, WIDE, record_type=Wide, table="sales.numbers")).run()
    found = database.rows("SELECT number, real, flag, text, raw, day, CAST(amount AS text) FROM sales.numbers")
    assert found == [(2, 2.5, True, None, b"\x00\xff", dt.date(2024, 2, 29), "12.50")]


@pytest.mark.slow
def test_postgres_parses_text_for_columns_of_its_own_types(tmp_path, postgres):
    database = TestDatabase(postgres.new_database(), PASSWORD)
    database.rows("CREATE TABLE numbers (number numeric, text jsonb)")
    Desk(tmp_path, items_written(database, Row(1, '{"a":  1}'), Row(2, None))).run()
    found = database.rows("SELECT CAST(number AS text), CAST(text AS text) FROM numbers ORDER BY number")
    assert found == [("1", '{"a": 1}'), ("2", None)]


def failure_in(desk: Desk) -> OperatorFailed:
    with pytest.raises(OperatorFailed) as raised:
        desk.run()
    return raised.value


def test_a_row_that_the_table_refuses_is_named(tmp_path, database):
    database.rows("CREATE TABLE numbers (number BIGINT PRIMARY KEY, text TEXT CHECK (text <> 'row 11'))")
    desk = desk_of(tmp_path, database, looks=((16,),))
    failure = failure_in(desk)
    assert failure.code == "row-refused"
    assert "{'number': 11, 'text': 'row 11'}" in failure.problem
    assert database.rows(NUMBERS) == []
    database.rows("DROP TABLE numbers")
    desk.run()
    assert database.rows(NUMBERS) == ALL


@pytest.mark.parametrize("key", [(), ("number",)], ids=["inserted in bulk", "updated by a key"])
@pytest.mark.parametrize("action", ["ABORT", "FAIL", "ROLLBACK"])
def test_a_row_that_a_trigger_refuses_is_named(tmp_path, sqlite, action, key):
    sqlite.rows("CREATE TABLE numbers (number BIGINT PRIMARY KEY, text TEXT)")
    sqlite.rows(
        "CREATE TRIGGER small BEFORE INSERT ON numbers WHEN new.number > 10 "
        f"BEGIN SELECT RAISE({action}, 'it is too large'); END"
    )
    desk = desk_of(tmp_path, sqlite, looks=((16,),), key=key)
    failure = failure_in(desk)
    assert failure.code == "row-refused"
    assert "numbers refuses {'number': 11, 'text': 'row 11'}: it is too large" in failure.problem
    assert sqlite.rows(NUMBERS) == []
    sqlite.rows("DROP TRIGGER small")
    desk.run()
    assert sqlite.rows(NUMBERS) == ALL


def test_a_row_that_is_refused_because_of_an_earlier_one_is_named(tmp_path, database, monkeypatch):
    monkeypatch.setattr(windows, "_ROWS_TOGETHER", 2)
    database.rows("CREATE TABLE numbers (number BIGINT PRIMARY KEY, text TEXT)")
    rows = [Row(number, "first") for number in range(5)]
    again = Row(1, "again")
    failure = failure_in(
        Desk(tmp_path, items_written(database, *rows, again, Row(7, "last"), Row(8, "last"), batch_rows=2))
    )
    assert failure.code == "row-refused"
    assert "numbers refuses {'number': 1, 'text': 'again'}" in failure.problem
    assert database.rows(NUMBERS) == []


@pytest.mark.slow
def test_a_constraint_that_is_checked_at_the_commit_is_named(tmp_path, postgres):
    database = TestDatabase(postgres.new_database(), PASSWORD)
    database.rows("CREATE TABLE numbers (number BIGINT UNIQUE DEFERRABLE INITIALLY DEFERRED, text TEXT)")
    desk = Desk(tmp_path, items_written(database, Row(1, "a"), Row(2, "b"), Row(1, "c")))
    failure = failure_in(desk)
    assert failure.code == "row-refused"
    assert "Key (number)=(1) already exists" in failure.problem
    assert database.rows(NUMBERS) == []
    database.rows("ALTER TABLE numbers DROP CONSTRAINT numbers_number_key")
    desk.run()
    assert len(database.rows(NUMBERS)) == 3


@pytest.mark.slow
def test_a_number_that_does_not_fit_its_column_is_named(tmp_path, postgres):
    database = TestDatabase(postgres.new_database(), PASSWORD)
    database.rows("CREATE TABLE numbers (number smallint, text text)")
    failure = failure_in(Desk(tmp_path, items_written(database, Row(1, "a"), Row(70_000, "b"))))
    assert (failure.code, "{'number': 70000, 'text': 'b'}" in failure.problem) == ("row-refused", True)


@pytest.mark.parametrize(
    ("table", "properties", "problem"),
    [
        ("CREATE TABLE numbers (number BIGINT, name TEXT)", {}, "has no column text; its columns are number, name"),
        ("CREATE TABLE numbers (number BIGINT, text TEXT)", {"key": ("number",)}, "ON CONFLICT"),
        ("CREATE TABLE numbers (number BIGINT, text TEXT)", {"key": ("id",)}, "has no column id"),
        ("CREATE TABLE others (number BIGINT)", {"creates_table": False}, "has no table numbers"),
    ],
    ids=["a column is missing", "no index for the key", "the key is no column", "no table"],
)
def test_a_table_that_does_not_fit_is_refused_before_anything_is_read(tmp_path, database, table, properties, problem):
    database.rows(table)
    desk = desk_of(tmp_path, database, **properties)
    failure = failure_in(desk)
    assert (failure.code, problem in failure.problem) == ("table-mismatched", True)
    assert list(desk.loop().run_state.driver_inputs.found) == []


@pytest.mark.slow
def test_postgres_is_not_sent_the_bytes_of_another_type(tmp_path, postgres):
    database = TestDatabase(postgres.new_database(), PASSWORD)
    database.rows("CREATE TABLE numbers (number double precision, text bytea)")
    failure = failure_in(desk_of(tmp_path, database))
    assert failure.code == "table-mismatched"
    assert "the column number of numbers is of type double precision, and records hold int64" in failure.problem


def test_a_table_that_changes_while_it_is_written_stops_the_run_and_is_continued(tmp_path, database):
    def probe(point: Point, window_id: int) -> None:
        if (point, window_id) == (Point.STAGED, 2):
            database.rows("ALTER TABLE numbers RENAME COLUMN text TO name")

    desk = desk_of(tmp_path, database)
    with pytest.raises(OperatorFailed, match="has no column text") as raised:
        desk.run(probe=probe)
    assert raised.value.code == "table-mismatched"
    database.rows("ALTER TABLE numbers RENAME COLUMN name TO text")
    desk.run()
    assert database.rows(NUMBERS) == ALL


def test_a_database_that_is_locked_is_waited_for(tmp_path, sqlite, caplog):
    impatient = replace(sqlite, url=f"{sqlite.url}?timeout_millis=0")
    desk = desk_of(tmp_path, sqlite)
    desk.run(windows=1)
    with sqlite.in_transaction("UPDATE numbers SET text = ''"), caplog.at_level(logging.WARNING):
        failure = failure_in(desk_of(tmp_path, impatient, waits_seconds=60))
    assert len(caplog.records) == 1
    assert failure.code == "system-unavailable"
    assert "database is locked" in failure.problem
    desk.run()
    assert sqlite.rows(NUMBERS) == ALL


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """No file of this process can become longer while the block runs, as if the disk was full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_database_that_is_full_is_waited_for(tmp_path, sqlite):
    wide = {"make": lambda number: Row(number, "x" * 8192), "looks": ((4,),) * 4, "waits_seconds": 60}
    desk = desk_of(tmp_path, sqlite, **wide)
    with files_of_at_most(96 << 10):
        failure = failure_in(desk)
    assert failure.code == "system-unavailable"
    assert len(sqlite.rows(NUMBERS)) < len(ALL)
    desk.run()
    assert sqlite.rows("SELECT number FROM numbers ORDER BY number") == [(number,) for number in range(16)]


@contextmanager
def small_disk(folder: Path) -> Iterator[Callable[[], None]]:
    """A disk of 512 KiB. The function that it gives enlarges it."""
    mount = shutil.which("mount")
    made = mount and run_program([mount, "-t", "tmpfs", "-o", "size=512k", "none", folder], check=False)
    if not made or made.returncode:
        pytest.skip("mounting a small disk needs root")
    try:
        yield lambda: run_program([mount, "-o", "remount,size=64m", folder]) and None  # type: ignore[list-item]
    finally:
        run_program(["umount", "--lazy", folder])


@pytest.mark.slow
def test_a_postgres_whose_disk_is_full_is_waited_for(tmp_path, postgres, caplog):
    place = Path(tempfile.mkdtemp(prefix="postgres-disk-"))
    database = TestDatabase(postgres.new_database(), PASSWORD)
    with small_disk(place) as enlarge:
        (place / "space").mkdir()
        shutil.chown(place, "postgres")
        shutil.chown(place / "space", "postgres")
        postgres.execute(f"CREATE TABLESPACE small LOCATION '{place}/space'")
        database.rows("CREATE TABLE numbers (number BIGINT, text TEXT) TABLESPACE small")
        wide = {"make": lambda number: Row(number, random.Random(number).randbytes(60_000).hex()), "looks": ((4,),) * 4}
        desk = Desk(tmp_path, rows_written(database, **wide), until=Until.IDLE, clock=Meanwhile(enlarge))
        with caplog.at_level(logging.WARNING):
            desk.run()
        assert database.rows("SELECT number FROM numbers ORDER BY number") == [(number,) for number in range(16)]
        database.rows("DROP TABLE numbers")
        postgres.execute("DROP TABLESPACE small")
    place.rmdir()
    first, second = [record.getMessage() for record in caplog.records]
    assert "No space left on device" in first
    assert "answers again, after" in second


@pytest.mark.gate(1)
@pytest.mark.slow
@pytest.mark.parametrize("point", [Point.PLANNED, Point.APPENDED])
def test_a_server_that_dies_is_waited_for(tmp_path, postgres, point, caplog):
    def probe(at: Point, window_id: int) -> None:
        if (at, window_id) == (point, 2):
            postgres.kill()

    database = TestDatabase(postgres.new_database(), PASSWORD)
    desk = Desk(tmp_path, rows_written(database), until=Until.IDLE, clock=starting(postgres))
    with caplog.at_level(logging.WARNING):
        desk.run(probe=probe)
    assert database.rows(NUMBERS) == ALL
    first, second = [record.getMessage() for record in caplog.records]
    assert "does not answer, and is tried again until it does" in first
    assert "[system-unavailable]" in first
    assert "answers again, after" in second


@pytest.mark.slow
def test_a_commit_whose_answer_is_lost_counts_once(tmp_path, postgres, caplog):
    direct = TestDatabase(postgres.new_database(), PASSWORD)
    with LosingAnswers(direct.url) as proxy:
        desk = desk_of(tmp_path, TestDatabase(proxy.url, PASSWORD))
        desk.run(probe=lambda point, window: proxy.lose(1) if (point, window) == (Point.APPENDED, 2) else None)
    assert proxy.lost == 1
    assert direct.rows(NUMBERS) == ALL


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("sqlite:////nowhere/rows.db", "failed to open"),
        ("postgresql://dagkit@127.0.0.1:{port}/nothing", 'database "nothing" does not exist'),
        ("postgresql://nobody@127.0.0.1:{port}/postgres", "password authentication failed"),
    ],
)
@pytest.mark.slow
def test_a_database_that_refuses_is_named_and_no_secret_is(tmp_path, url, problem, postgres, caplog):
    port = postgres.url.rpartition(":")[2].partition("/")[0]
    database = TestDatabase(url.format(port=port), PASSWORD if "nothing" in url else "hunter2")
    failure = failure_in(desk_of(tmp_path, database))
    assert (failure.code, problem in failure.problem) == ("database-refused", True)
    assert "hunter2" not in f"{failure} {caplog.text} {failure.__cause__}"


@pytest.mark.parametrize("creates", [True, False])
def test_a_file_is_created_only_by_a_writer_that_may_create_its_table(tmp_path, sqlite, creates):
    desk = desk_of(tmp_path, sqlite, creates_table=creates)
    if creates:
        desk.run()
        assert sqlite.rows(NUMBERS) == ALL
        return
    failure = failure_in(desk)
    assert (failure.code, "there is no file " in failure.problem) == ("database-refused", True)
    assert not (tmp_path / "rows.db").exists()


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("mysql://host/db", "the url begins with sqlite:/// and a path, or with postgresql://"),
        ("postgresql://me:hunter2@host/db", "the url shows a password: set the property `password` instead"),
        ("postgresql://host/db?password=hunter2", "the url shows a password: set the property `password` instead"),
        ("sqlite://rows.db", "a path follows sqlite:///, as in sqlite:///folder/file.db"),
    ],
)
def test_a_url_is_checked_when_the_application_is_compiled(url, problem):
    (fault,) = SqlWriter(url=url, table="t").faults
    assert (fault.path, problem in fault.message) == ("url", True)
