"""Rows are in the table once, in each kind of database, wherever a run ends, and faults name the row or the column."""

import datetime as dt
import logging
import random
import re
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from dagkit import Until
from dagkit.engine.program.points import Point
from dagkit.testing import CrashAfter, FakeClock
from dagkit_operators import Items, Map, PartWriter, SqlReader, SqlSplitter, SqlWriter
from dagkit_operators.sql import writer
from tests.cases import cases
from tests.engine.cast import Desk, chain
from tests.operators.sql.sql_cast import Database, Meanwhile, Row, TestDatabase, rows_written, starting
from tests.operators.ways import files_of_at_most, lines_in, refused, when
from tests.processes import run_program
from tests.services.losing_proxy import LosingAnswers
from tests.services.postgres import PASSWORD

ALL = [(number, f"row {number}") for number in range(16)]
NUMBERS = "SELECT number, text FROM numbers ORDER BY number"


TABLE = "CREATE TABLE numbers (number BIGINT PRIMARY KEY, text VARCHAR(99))"


def created(database):
    """Create the table, unless the writer does."""
    if isinstance(database, Database):
        database.rows(TABLE)


def desk_of(home, database, clock=None, **given):
    return Desk(home, rows_written(database, **given), until=Until.IDLE, clock=clock or FakeClock())


def writing(home, database, *items, **properties):
    write = SqlWriter(**{"table": "numbers", "record_type": Row, **database.settings, **properties})
    numbers, made = Items[int](items=tuple(range(len(items)))), Map(lambda number: items[number])
    return Desk(home, chain(numbers=numbers, items=made, write=write))


def test_every_row_is_in_the_table_once(tmp_path, database):
    desk = desk_of(tmp_path, database)
    loop = desk.run()
    assert database.rows(NUMBERS) == ALL
    assert [window for _, window in database.rows("SELECT * FROM dagkit_windows")] == [loop.checkpoint.window]
    assert (desk.faults(), desk.leftovers()) == ([], [])


def test_no_row_is_lost_between_the_streaming_windows_of_an_application_window(tmp_path, sqlite):
    replace(desk_of(tmp_path, sqlite), conf={"dt.operator.write.attr.APPLICATION_WINDOW_COUNT": 2}).run()
    assert sqlite.rows(NUMBERS) == ALL


@pytest.mark.parametrize("point", Point)
def test_a_crash_after_any_step_loses_and_doubles_nothing(tmp_path, here, point):
    created(here)
    desk = desk_of(tmp_path, here)
    desk.crash(CrashAfter(point, 1), CrashAfter(point, 2))
    loop = desk.run()
    assert here.rows(NUMBERS) == ALL
    assert [window for _, window in here.rows("SELECT * FROM dagkit_windows")] == [loop.checkpoint.window]


def test_with_a_key_the_last_record_counts(tmp_path, any_database):
    created(any_database)
    rows = [Row(1, "first"), Row(2, "only"), Row(1, None), Row(1, "100 %s")]
    writing(tmp_path / "first", any_database, *rows, key=("number",)).run()
    assert any_database.rows(NUMBERS) == [(1, "100 %s"), (2, "only")]
    writing(tmp_path / "again", any_database, Row(2, "other"), Row(3, "new"), key=("number",)).run()
    assert any_database.rows(NUMBERS) == [(1, "100 %s"), (2, "other"), (3, "new")]


def test_names_of_tables_may_hold_signs_that_stand_for_parameters(tmp_path, any_database):
    any_database.rows(TABLE.replace("numbers", '"a?%s"'))
    names = {"table": "a?%s", "window_table": "w?%s"}
    for text in ("first", "last"):
        writing(tmp_path / text, any_database, Row(1, text), key=("number",), **names).run()
    assert any_database.rows('SELECT number, text FROM "a?%s"') == [(1, "last")]


def test_a_record_of_its_key_alone_is_there_once(tmp_path, sqlite):
    tables = [pa.table({"number": [1, 2]}), pa.table({"number": [2, 3]})]
    sqlite.rows("CREATE TABLE numbers (number INTEGER PRIMARY KEY)")
    writing(tmp_path, sqlite, *tables, record_type=None, key=("number",)).run()
    assert sqlite.rows("SELECT number FROM numbers ORDER BY number") == [(1,), (2,), (3,)]


@dataclass(frozen=True)
class Wide:
    number: int
    real: float
    flag: bool
    text: str | None
    raw: bytes
    day: dt.date
    instant: dt.datetime
    amount: Decimal


DAY, NOON = dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 12, 30)  # noqa: DTZ001
WIDE = Wide(2, 2.5, True, None, b"\x00\xff", DAY, NOON, Decimal("12.50"))


def test_each_type_is_written_as_it_is(tmp_path, database):
    writing(tmp_path, database, WIDE, record_type=Wide).run()
    (row,) = database.rows("SELECT * FROM numbers")
    if database.password is None:
        in_sqlite = ("2024-02-29", "2024-02-29T12:30:00.000000", "12.500000000")
        assert row == (2, 2.5, 1, None, b"\x00\xff", *in_sqlite)
    else:
        assert row[:-1] == (2, 2.5, True, None, b"\x00\xff", DAY, NOON)
        assert database.rows("SELECT CAST(amount AS text) FROM numbers") == [("12.5",)]


@pytest.mark.slow
def test_postgres_converts_what_its_columns_need(tmp_path, on_postgres):
    columns = (
        "number smallint, real real, flag boolean, text varchar(9), raw bytea, "
        "day date, instant timestamp, amount numeric(9,2)"
    )
    on_postgres.rows("CREATE SCHEMA sales")
    on_postgres.rows(f"CREATE TABLE sales.numbers ({columns})")
    writing(tmp_path, on_postgres, WIDE, record_type=Wide, table="sales.numbers").run()
    found = on_postgres.rows("SELECT number, real, flag, text, raw, day, CAST(amount AS text) FROM sales.numbers")
    assert found == [(2, 2.5, True, None, b"\x00\xff", DAY, "12.50")]


@pytest.mark.slow
def test_postgres_parses_text_for_columns_of_its_own_types(tmp_path, on_postgres):
    on_postgres.rows("CREATE TABLE numbers (number numeric, text jsonb)")
    writing(tmp_path, on_postgres, Row(1, '{"a":  1}'), Row(2, None)).run()
    found = on_postgres.rows("SELECT CAST(number AS text), CAST(text AS text) FROM numbers ORDER BY number")
    assert found == [("1", '{"a": 1}'), ("2", None)]


BY_KEY = pytest.mark.parametrize("key", [(), ("number",)], ids=["inserted in bulk", "updated by a key"])


@BY_KEY
def test_a_row_that_the_table_refuses_is_named(tmp_path, any_database, key):
    any_database.rows(f"{TABLE[:-1]}, CHECK (text <> 'row 11'))")
    desk = desk_of(tmp_path, any_database, looks=((16,),), key=key)
    with refused("row-refused", "{'number': 11, 'text': 'row 11'}"):
        desk.run()
    assert any_database.rows(NUMBERS) == []
    any_database.rows("DROP TABLE numbers")
    any_database.rows(TABLE)
    desk.run()
    assert any_database.rows(NUMBERS) == ALL


@BY_KEY
@pytest.mark.parametrize("action", ["ABORT", "FAIL", "ROLLBACK"])
def test_a_row_that_a_trigger_refuses_is_named(tmp_path, sqlite, action, key):
    sqlite.rows("CREATE TABLE numbers (number BIGINT PRIMARY KEY, text TEXT)")
    sqlite.rows(
        "CREATE TRIGGER small BEFORE INSERT ON numbers WHEN new.number > 10 "
        f"BEGIN SELECT RAISE({action}, 'it is too large'); END"
    )
    desk = desk_of(tmp_path, sqlite, looks=((16,),), key=key)
    with refused("row-refused", re.escape("numbers refuses {'number': 11, 'text': 'row 11'}: it is too large")):
        desk.run()
    assert sqlite.rows(NUMBERS) == []
    sqlite.rows("DROP TRIGGER small")
    desk.run()
    assert sqlite.rows(NUMBERS) == ALL


def test_a_row_that_is_refused_because_of_an_earlier_one_is_named(tmp_path, database, monkeypatch):
    monkeypatch.setattr(writer, "_ROWS_TOGETHER", 2)
    database.rows("CREATE TABLE numbers (number BIGINT PRIMARY KEY, text TEXT)")
    first, last = [Row(number, "first") for number in range(5)], [Row(7, "last"), Row(8, "last")]
    desk = writing(tmp_path, database, *first, Row(1, "again"), *last, batch_rows=2)
    with refused("row-refused", "numbers refuses {'number': 1, 'text': 'again'}"):
        desk.run()
    assert database.rows(NUMBERS) == []


@pytest.mark.slow
def test_a_constraint_that_is_checked_at_the_commit_is_named(tmp_path, on_postgres):
    on_postgres.rows("CREATE TABLE numbers (number BIGINT UNIQUE DEFERRABLE INITIALLY DEFERRED, text TEXT)")
    desk = writing(tmp_path, on_postgres, Row(1, "a"), Row(2, "b"), Row(1, "c"))
    with refused("row-refused", re.escape("Key (number)=(1) already exists")):
        desk.run()
    assert on_postgres.rows(NUMBERS) == []
    on_postgres.rows("ALTER TABLE numbers DROP CONSTRAINT numbers_number_key")
    desk.run()
    assert len(on_postgres.rows(NUMBERS)) == 3


OTHER_TYPE = "the column number of numbers is of type double precision, and records hold int64"


@pytest.mark.slow
@cases(
    "columns, code, problem",
    ("a number that does not fit", "number smallint, text text", "row-refused", "{'number': 70000, 'text': 'b'}"),
    ("the bytes of another type", "number double precision, text bytea", "table-mismatched", OTHER_TYPE),
)
def test_postgres_is_not_sent_what_does_not_fit_its_column(tmp_path, on_postgres, columns, code, problem):
    on_postgres.rows(f"CREATE TABLE numbers ({columns})")
    with refused(code, problem):
        writing(tmp_path, on_postgres, Row(1, "a"), Row(70_000, "b")).run()


@pytest.mark.parametrize(
    ("table", "properties", "problem"),
    [
        ("numbers (number BIGINT, name TEXT)", {}, "has no column text; its columns are number, name"),
        ("numbers (number BIGINT, text TEXT)", {"key": ("number",)}, "ON CONFLICT"),
        ("numbers (number BIGINT, text TEXT)", {"key": ("id",)}, "has no column id"),
        ("others (number BIGINT)", {"creates_table": False}, "has no table numbers"),
    ],
    ids=["a column is missing", "no index for the key", "the key is no column", "no table"],
)
def test_a_table_that_does_not_fit_is_refused_before_anything_is_read(tmp_path, database, table, properties, problem):
    database.rows(f"CREATE TABLE {table}")
    desk = desk_of(tmp_path, database, **properties)
    with refused("table-mismatched", problem):
        desk.run()
    assert list(desk.loop().parts.inputs.found) == []


def test_a_table_that_changes_while_it_is_written_stops_the_run_and_is_continued(tmp_path, database):
    rename = "ALTER TABLE numbers RENAME COLUMN text TO name"
    desk = desk_of(tmp_path, database)
    with refused("table-mismatched", "has no column text"):
        desk.run(probe=when(Point.STAGED, 2, lambda: database.rows(rename)))
    database.rows("ALTER TABLE numbers RENAME COLUMN name TO text")
    desk.run()
    assert database.rows(NUMBERS) == ALL


def test_a_database_that_is_locked_is_waited_for(tmp_path, sqlite, caplog):
    impatient = replace(sqlite, url=f"{sqlite.url}?timeout_millis=0")
    desk = desk_of(tmp_path, sqlite)
    desk.run(windows=1)
    with (
        sqlite.in_transaction("UPDATE numbers SET text = ''"),
        caplog.at_level(logging.WARNING),
        refused("system-unavailable", "database is locked"),
    ):
        desk_of(tmp_path, impatient, waits_seconds=60).run()
    assert len(caplog.records) == 1
    desk.run()
    assert sqlite.rows(NUMBERS) == ALL


def test_a_database_that_is_full_is_waited_for(tmp_path, sqlite):
    wide = {"make": lambda number: Row(number, "x" * 8192), "looks": ((4,),) * 4, "waits_seconds": 60}
    desk = desk_of(tmp_path, sqlite, **wide)
    with files_of_at_most(96 << 10), refused("system-unavailable"):
        desk.run()
    assert len(sqlite.rows(NUMBERS)) < len(ALL)
    desk.run()
    assert sqlite.rows("SELECT number FROM numbers ORDER BY number") == [(number,) for number in range(16)]


@contextmanager
def small_disk(folder):
    """A disk of 512 KiB. The function that it gives enlarges it."""
    mount = shutil.which("mount")
    made = mount and run_program([mount, "-t", "tmpfs", "-o", "size=512k", "none", folder], check=False)
    if not made or made.returncode:
        pytest.skip("mounting a small disk needs root")
    try:
        yield lambda: run_program([mount, "-o", "remount,size=64m", folder]) and None
    finally:
        run_program(["umount", "--lazy", folder])


@pytest.mark.slow
def test_a_postgres_whose_disk_is_full_is_waited_for(tmp_path, postgres, on_postgres, caplog):
    place = Path(tempfile.mkdtemp(prefix="postgres-disk-"))
    with small_disk(place) as enlarge:
        (place / "space").mkdir()
        shutil.chown(place, "postgres")
        shutil.chown(place / "space", "postgres")
        postgres.execute(f"CREATE TABLESPACE small LOCATION '{place}/space'")
        on_postgres.rows("CREATE TABLE numbers (number BIGINT, text TEXT) TABLESPACE small")
        wide = {"make": lambda number: Row(number, random.Random(number).randbytes(60_000).hex()), "looks": ((4,),) * 4}
        with caplog.at_level(logging.WARNING):
            desk_of(tmp_path, on_postgres, Meanwhile(enlarge), **wide).run()
        assert on_postgres.rows("SELECT number FROM numbers ORDER BY number") == [(number,) for number in range(16)]
        on_postgres.rows("DROP TABLE numbers")
        postgres.execute("DROP TABLESPACE small")
    place.rmdir()
    first, second = [record.getMessage() for record in caplog.records]
    assert "No space left on device" in first
    assert "answers again, after" in second


@pytest.mark.gate(1)
@pytest.mark.slow
@pytest.mark.parametrize("point", [Point.PLANNED, Point.APPENDED])
def test_a_server_that_dies_is_waited_for(tmp_path, postgres, on_postgres, point, caplog):
    with caplog.at_level(logging.WARNING):
        desk_of(tmp_path, on_postgres, starting(postgres)).run(probe=when(point, 2, postgres.kill))
    assert on_postgres.rows(NUMBERS) == ALL
    first, second = [record.getMessage() for record in caplog.records]
    assert "does not answer, and is tried again until it does" in first
    assert "[system-unavailable]" in first
    assert "answers again, after" in second


@pytest.mark.slow
def test_a_commit_whose_answer_is_lost_counts_once(tmp_path, on_postgres):
    with LosingAnswers(on_postgres.url) as proxy:
        through_it = replace(on_postgres, url=proxy.url)
        desk_of(tmp_path, through_it).run(probe=when(Point.APPENDED, 2, lambda: proxy.lose(1)))
    assert proxy.lost == 1
    assert on_postgres.rows(NUMBERS) == ALL


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
    with refused("database-refused", problem) as raised:
        desk_of(tmp_path, database).run()
    assert "hunter2" not in f"{raised.value} {caplog.text} {raised.value.__cause__}"


def test_a_file_is_created_only_by_a_writer_that_may_create_its_table(tmp_path, sqlite):
    desk = desk_of(tmp_path, sqlite, creates_table=False)
    with refused("database-refused", "there is no file "):
        desk.run()
    assert not (tmp_path / "rows.db").exists()


SHOWN = "the url shows a password: set the property `password` instead"


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("mysql://host/db", "the url begins with sqlite:/// and a path, or with postgresql://"),
        ("postgresql://me:hunter2@host/db", SHOWN),
        ("postgresql://host/db?password=hunter2", SHOWN),
        ("sqlite://rows.db", "a path follows sqlite:///, as in sqlite:///folder/file.db"),
    ],
)
def test_a_url_is_checked_when_the_application_is_compiled(url, problem):
    (fault,) = SqlWriter(url=url, table="t").faults
    assert (fault.path, problem in fault.message) == ("url", True)


def test_a_missing_table_is_created_where_the_driver_knows_types(tmp_path, duckdb, pep249):
    writing(tmp_path / "duckdb", duckdb, Row(1, "one")).run()
    assert duckdb.rows(NUMBERS) == [(1, "one")]
    with refused("table-mismatched", "sqlite3.* has no table numbers"):
        writing(tmp_path / "sqlite", pep249, Row(1, "one")).run()


def test_rows_are_read_by_a_key_of_integers(tmp_path, of_module):
    of_module.rows(TABLE.replace("VARCHAR(99)", "DECIMAL(9, 2)"))
    for number in (3, 5, 40, 41):
        of_module.rows(f"INSERT INTO numbers VALUES ({number}, {number}.5)")
    split = SqlSplitter("numbers", key="number", range_size=10, **of_module.settings)
    read = SqlReader(page_rows=2, **of_module.settings)
    out = PartWriter(str(tmp_path / "out"), format=lambda row: f"{row['number']} {Decimal(row['text']):.1f}")
    Desk(tmp_path / "home", chain(split=split, read=read, out=out), clock=FakeClock()).run()
    assert lines_in(tmp_path / "out") == ["3 3.5", "40 40.5", "41 41.5", "5 5.5"]


def test_other_keys_are_refused_where_databases_differ(tmp_path, pep249):
    pep249.rows("CREATE TABLE numbers (number TEXT)")
    pep249.rows("INSERT INTO numbers VALUES ('a')")
    split = SqlSplitter("numbers", key="number", **pep249.settings)
    with refused("table-mismatched", "number is no column of integers"):
        Desk(tmp_path, chain(split=split, read=SqlReader(**pep249.settings)), clock=FakeClock()).run()


def test_a_driver_that_commits_each_statement_is_refused(tmp_path):
    database = Database("duckdb", {"database": str(tmp_path / "rows.duckdb")})
    database.rows(TABLE)
    with refused("database-refused", "keeps what a transaction rolled back"):
        writing(tmp_path / "home", database, Row(1, "one")).run()


def test_a_table_of_windows_that_takes_two_writers_for_one_is_refused(tmp_path, pep249):
    pep249.rows(TABLE)
    pep249.rows("CREATE TABLE dagkit_windows (writer TEXT COLLATE NOCASE PRIMARY KEY, window_id BIGINT)")
    writing(tmp_path / "home", pep249, Row(1, "one")).run()
    pep249.rows("UPDATE dagkit_windows SET writer = upper(writer)")
    with refused("table-mismatched", "takes .* for the same"):
        writing(tmp_path / "home", pep249, Row(1, "one")).run()


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({}, "set either url or driver"),
        ({"url": "sqlite:///a.db", "driver": "sqlite3"}, "set either url or driver"),
        ({"url": "sqlite:///a.db", "session": ("PRAGMA x",)}, "belong to a driver"),
        ({"driver": "pymysql", "options": {"password": "x"}}, "the options show a password"),
    ],
)
def test_one_way_to_connect_is_set(settings, problem):
    (fault,) = SqlWriter("numbers", **settings).faults
    assert problem in fault.message


def test_a_number_of_a_property_file_is_a_number_of_the_driver():
    writer = SqlWriter("numbers", driver="pymysql", options={"port": "5432", "ssl": True, "user": "true"})
    assert dict(writer.options) == {"port": 5432, "ssl": True, "user": "true"}


def test_a_driver_that_is_not_installed_is_named(tmp_path):
    with refused("database-refused", "the driver nowhere cannot be imported"):
        writing(tmp_path, Database("nowhere", {}), Row(1, "one")).run()
