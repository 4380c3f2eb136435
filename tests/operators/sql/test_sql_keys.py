"""Keys of any type that a database can order divide its rows: each row is read once, and new ones later."""

import random
from dataclasses import dataclass

import pytest

from dagkit.api.running import Until
from dagkit.engine.program.points import Point
from dagkit.errors import RunFailure
from dagkit.ranges import OffsetRange
from dagkit.testing import Alone, CrashAfter, FakeClock, check_every_split_of
from dagkit_operators import Map, SqlQuery, SqlRange, SqlReader, SqlSplitter
from dagkit_operators.sql.databases import connect
from dagkit_operators.sql.queries import KeySteps, bounds_between, highest
from tests.engine.cast import Collect, Desk, Hurried, arrived, chain
from tests.operators.ways import in_partitions, refused

UUIDS = [f"{digit}0000000-0000-4000-8000-00000000000{digit}" for digit in "0179af"]

POINTS = [Point.PLANNED, Point.RUNNING, Point.STAGED, Point.APPENDED]


@dataclass(frozen=True)
class Keyed:
    columns: str
    key: str | tuple[str, ...]
    keys: tuple[str, ...]
    later: str
    """A key that is higher than all others."""


TABLES = {
    "text": Keyed("k TEXT", "k", ("''", "'B'", "'a'", "'a'", "'it''s'", r"'back\slash'", "'é'", "'日本'"), "'日本語'"),
    "UUIDs": Keyed("k UUID", "k", tuple(map(repr, UUIDS)), repr("ff" + UUIDS[-1][2:])),
    "several columns": Keyed(
        "a TEXT, b INTEGER", ("a", "b"), ("'a', 2", "'a', 10", "'b', 1", "'b', 1", "'b', -3", "'c, d', 0"), "'e', 0"
    ),
    "integers": Keyed("k INTEGER", "k", ("3", "4", "4", "7", "20", "21", "21", "21", "90"), "91"),
    "negative integers": Keyed("k INTEGER", "k", ("-20", "-3", "0", "4", "4"), "5"),
    "fractions": Keyed("k DOUBLE PRECISION", "k", ("-0.1", "1e300", "0.1", "0.30000000000000004", "0.3"), "1e301"),
    "times": Keyed(
        "k TIMESTAMP",
        "k",
        ("'2026-01-01 00:00:00.000001'", "'2026-01-01 00:00:00'", "'1969-07-20 20:17:00'"),
        "'2027-01-01'",
    ),
}


def filled(database, table):
    database.rows(f"CREATE TABLE rows ({table.columns}, text TEXT)")
    for number, key in enumerate(table.keys):
        database.rows(f"INSERT INTO rows VALUES ({key}, 'row {number}')")


def rows_read(database, table, **properties):
    given = {"table": "rows", "key": table.key, "range_size": 20, **database.settings, **properties}
    texts = Map(lambda row: row["text"])
    return chain(split=SqlSplitter(**given), read=SqlReader(**database.settings), texts=texts, collect=Collect())


def desk_of(home, database, table, **given):
    return Desk(home, rows_read(database, table), clock=FakeClock(), **READERS, **given)


READERS = {"conf": in_partitions(read=2)}


@pytest.fixture(params=list(TABLES))
def table(request):
    return TABLES[request.param]


def expected(table):
    return [f"row {number}" for number in range(len(table.keys))]


@pytest.mark.gate(4)
@pytest.mark.parametrize("range_size", [1, 20])
def test_each_row_is_read_once_and_new_rows_later(tmp_path, database, table, range_size):
    filled(database, table)
    desk = Desk(tmp_path, rows_read(database, table, range_size=range_size), clock=FakeClock(), **READERS)
    assert sorted(arrived(desk.run())) == expected(table)
    database.rows(f"INSERT INTO rows VALUES ({table.later}, 'row later')")
    assert sorted(arrived(desk.run())) == [*expected(table), "row later"]
    assert desk.faults() == []


@pytest.mark.slow
def test_crashes_at_random_lose_and_double_no_row(tmp_path, sqlite, trial):
    drawn = random.Random(trial)
    table = TABLES[drawn.choice(list(TABLES))]
    filled(sqlite, table)
    draw = rows_read(sqlite, table, range_size=drawn.choice([1, 20]))
    desk = Desk(tmp_path, draw, clock=FakeClock(), backend=Hurried, until=Until.IDLE, **READERS)
    assert desk.crash(CrashAfter(drawn.choice(POINTS), 1), *(CrashAfter(drawn.choice(POINTS)) for _ in range(3)))
    desk.run()
    sqlite.rows(f"INSERT INTO rows VALUES ({table.later}, 'row later')")
    desk.crash(CrashAfter(drawn.choice(POINTS)))
    assert sorted(arrived(desk.run())) == [*expected(table), "row later"]
    assert desk.faults() == []


def steps_of(database, table, low=""):
    key = (table.key,) if isinstance(table.key, str) else table.key
    with connect(database.url, database.password) as connection:
        high = highest(connection, "SELECT * FROM rows", key, low)
        ends = bounds_between(connection, "SELECT * FROM rows", key, low, high, step_rows=2, most=10)
    return KeySteps(key, (low, *ends))


@pytest.mark.gate(2)
def test_every_split_of_a_range_gives_the_same_rows(database, table):
    filled(database, table)
    steps = steps_of(database, table)
    count = len(steps.bounds) - 1
    assert count > 1
    reader = SqlReader(**database.settings)
    check_every_split_of(reader, SqlRange("SELECT * FROM rows", None, 7, 7 + count, 0, steps))


def test_text_is_divided_in_the_order_of_its_collation(tmp_path, sqlite):
    table = Keyed("k TEXT COLLATE NOCASE", "k", ("'a'", "'B'", "'c'", "'b'", "'A'", "'C'"), "'D'")
    filled(sqlite, table)
    assert steps_of(sqlite, table).bounds[-1] in ("'c'", "'C'")
    desk = desk_of(tmp_path, sqlite, table)
    assert sorted(arrived(desk.run())) == expected(table)
    sqlite.rows("INSERT INTO rows VALUES ('D', 'row later')")
    assert sorted(arrived(desk.run())) == [*expected(table), "row later"]


def test_a_step_has_rows_or_more_if_there_are_too_many_steps(sqlite):
    filled(sqlite, Keyed("k TEXT", "k", tuple(f"'{number:02}'" for number in range(30)), ""))
    with connect(sqlite.url) as connection:
        high = highest(connection, "SELECT * FROM rows", ("k",), "'09'")
        assert high == "'29'"
        for step_rows, most, bounds in [(8, 100, ["'17'", "'25'", "'29'"]), (1, 2, ["'19'", "'29'"])]:
            steps = {"step_rows": step_rows, "most": most}
            assert bounds_between(connection, "SELECT * FROM rows", ("k",), "'09'", high, **steps) == bounds


def test_a_part_of_a_range_has_its_steps(sqlite):
    filled(sqlite, TABLES["negative integers"])
    whole = SqlRange("SELECT * FROM rows", None, 4, 7, 0, steps_of(sqlite, TABLES["negative integers"]))
    part = whole.part(5, 6)
    assert part.place(5) == whole.place(5) == "SELECT * FROM rows, (k) after (-3) up to (4)"
    assert whole.place(None) == "SELECT * FROM rows, (k) up to (4)"


@pytest.mark.parametrize("name", ["text", "several columns"])
def test_a_row_that_has_no_key_later_is_reported(tmp_path, database, name):
    table = TABLES[name]
    filled(database, table)
    desk = desk_of(tmp_path, database, table)
    assert sorted(arrived(desk.run())) == expected(table)
    column = table.key if isinstance(table.key, str) else table.key[-1]
    database.rows(f"UPDATE rows SET {column} = NULL WHERE text = 'row 0'")
    with refused("table-mismatched", f"{column} is NULL in a row of rows"):
        desk.run()


@pytest.mark.parametrize(
    ("columns", "later", "problem"),
    [("k", "'a'", "k is now 'a' in a row"), ("k INTEGER", "NULL", "k is NULL in a row of rows")],
)
def test_a_column_of_integers_stays_one(tmp_path, sqlite, columns, later, problem):
    table = Keyed(columns, "k", ("1", "2"), later)
    filled(sqlite, table)
    desk = desk_of(tmp_path, sqlite, table)
    assert sorted(arrived(desk.run())) == expected(table)
    sqlite.rows(f"INSERT INTO rows VALUES ({later}, 'row later')")
    with refused("table-mismatched", problem):
        desk.run()


def test_the_key_of_a_query_is_an_integer(sqlite):
    filled(sqlite, TABLES["text"])
    query = SqlQuery("SELECT * FROM rows", "k")
    for given in ((query,), (query, OffsetRange(0, 100))):
        with pytest.raises(RunFailure, match="the key of a query is an integer"):
            Alone(SqlReader(**sqlite.settings)).work(*given)


@pytest.mark.parametrize("outside", ["NULL", "-3"])
def test_a_row_whose_key_is_outside_of_all_ranges_is_reported(sqlite, outside):
    filled(sqlite, Keyed("k INTEGER", "k", ("1", outside), "2"))
    with pytest.raises(RunFailure, match=f"k is {outside} in a row of SELECT"):
        Alone(SqlReader(**sqlite.settings)).work(SqlQuery("SELECT * FROM rows", "k"))
    others = Alone(SqlReader(**sqlite.settings))
    others.work(SqlQuery("SELECT * FROM rows WHERE k >= 0", "k"))
    assert [row["k"] for row in others.sent()] == [1]
