"""Databases that a module of Python connects to: sqlite3 has the interface of PEP 249, DuckDB's of ADBC."""

from decimal import Decimal

import pytest

from dagkit import Until
from dagkit.engine.program.points import Point
from dagkit.testing import CrashAfter, FakeClock
from dagkit_operators import Items, Map, PartWriter, SqlReader, SqlSplitter, SqlWriter
from tests.engine.cast import Desk
from tests.operators.sql.sql_cast import Database, Row, rows_into
from tests.operators.ways import chain, refused

ALL = [(number, f"row {number}") for number in range(16)]
NUMBERS = "SELECT number, text FROM numbers ORDER BY number"
TABLE = "CREATE TABLE numbers (number BIGINT PRIMARY KEY, text VARCHAR(99))"


@pytest.fixture
def sqlite(tmp_path):
    return Database("sqlite3", {"database": str(tmp_path / "rows.db")})


@pytest.fixture
def duckdb(tmp_path):
    return Database("adbc_driver_duckdb.dbapi", {"path": str(tmp_path / "rows.duckdb")})


@pytest.fixture(
    params=["sqlite", "duckdb", pytest.param("mariadb", marks=[pytest.mark.trial, pytest.mark.service("mariadb")])]
)
def database(request):
    return request.getfixturevalue(request.param)


def desk_of(home, database, **given):
    writer = SqlWriter(**{"table": "numbers", "record_type": Row, **database.settings, **given})
    return Desk(home, rows_into(writer, readers=2), until=Until.IDLE, clock=FakeClock())


def write(home, database, *items, **given):
    writer = SqlWriter(**{"table": "numbers", "record_type": Row, **database.settings, **given})
    numbers, made = Items[int](items=tuple(range(len(items)))), Map(lambda number: items[number])
    Desk(home, chain(numbers=numbers, items=made, write=writer)).run()


@pytest.mark.parametrize("point", Point)
def test_a_crash_after_any_step_loses_and_doubles_nothing(tmp_path, database, point):
    database.rows(TABLE)
    desk = desk_of(tmp_path, database)
    desk.crash(CrashAfter(point, 1), CrashAfter(point, 2))
    loop = desk.run()
    assert database.rows(NUMBERS) == ALL
    assert [window for _, window in database.rows("SELECT * FROM dagkit_windows")] == [loop.checkpoint.window]


def test_with_a_key_the_last_record_counts(tmp_path, database):
    database.rows(TABLE)
    rows = [Row(1, "first"), Row(2, "only"), Row(1, None), Row(1, "100 %s")]
    write(tmp_path / "first", database, *rows, key=("number",))
    assert database.rows(NUMBERS) == [(1, "100 %s"), (2, "only")]
    write(tmp_path / "again", database, Row(2, "other"), Row(3, "new"), key=("number",))
    assert database.rows(NUMBERS) == [(1, "100 %s"), (2, "other"), (3, "new")]


@pytest.mark.parametrize("key", [(), ("number",)], ids=["inserted", "updated by a key"])
def test_a_row_that_the_table_refuses_is_named(tmp_path, database, key):
    database.rows(f"{TABLE[:-1]}, CHECK (text <> 'row 11'))")
    desk = desk_of(tmp_path, database, key=key)
    with refused("row-refused", "{'number': 11, 'text': 'row 11'}"):
        desk.run()
    assert database.rows("SELECT * FROM numbers WHERE number > 10") == []
    database.rows("DELETE FROM numbers")
    database.rows("DROP TABLE numbers")
    database.rows(TABLE)


def test_a_missing_table_is_created_where_the_driver_knows_types(tmp_path, duckdb, sqlite):
    write(tmp_path / "duckdb", duckdb, Row(1, "one"))
    assert duckdb.rows(NUMBERS) == [(1, "one")]
    with refused("table-mismatched", "sqlite3.* has no table numbers"):
        write(tmp_path / "sqlite", sqlite, Row(1, "one"))


def test_rows_are_read_by_a_key_of_integers(tmp_path, database):
    database.rows(TABLE.replace("VARCHAR(99)", "DECIMAL(9, 2)"))
    for number in (3, 5, 40, 41):
        database.rows(f"INSERT INTO numbers VALUES ({number}, {number}.5)")
    split = SqlSplitter("numbers", key="number", range_size=10, **database.settings)
    read = SqlReader(page_rows=2, **database.settings)
    out = PartWriter(str(tmp_path / "out"), format=lambda row: f"{row['number']} {Decimal(row['text']):.1f}")
    Desk(tmp_path / "home", chain(split=split, read=read, out=out), clock=FakeClock()).run()
    lines = sorted(line for path in (tmp_path / "out").iterdir() for line in path.read_text().splitlines())
    assert lines == ["3 3.5", "40 40.5", "41 41.5", "5 5.5"]


def test_other_keys_are_refused_where_databases_differ(tmp_path, sqlite):
    sqlite.rows("CREATE TABLE numbers (number TEXT)")
    sqlite.rows("INSERT INTO numbers VALUES ('a')")
    split = SqlSplitter("numbers", key="number", **sqlite.settings)
    with refused("table-mismatched", "number is no column of integers"):
        Desk(tmp_path, chain(split=split, read=SqlReader(**sqlite.settings)), clock=FakeClock()).run()


def test_a_driver_that_commits_each_statement_is_refused(tmp_path):
    database = Database("duckdb", {"database": str(tmp_path / "rows.duckdb")})
    database.rows(TABLE)
    with refused("database-refused", "keeps what a transaction rolled back"):
        write(tmp_path / "home", database, Row(1, "one"))


def test_a_table_of_windows_that_takes_two_writers_for_one_is_refused(tmp_path, sqlite):
    sqlite.rows(TABLE)
    sqlite.rows("CREATE TABLE dagkit_windows (writer TEXT COLLATE NOCASE PRIMARY KEY, window_id BIGINT)")
    write(tmp_path / "home", sqlite, Row(1, "one"))
    sqlite.rows("UPDATE dagkit_windows SET writer = upper(writer)")
    with refused("table-mismatched", "takes .* for the same"):
        write(tmp_path / "home", sqlite, Row(1, "one"))


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
        write(tmp_path, Database("nowhere", {}), Row(1, "one"))
