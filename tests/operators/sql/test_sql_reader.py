"""Each row of a table or a query is read once, however its keys are divided; a server that is away is waited for."""

import logging
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest
from adbc_driver_manager import AdbcStatusCode, OperationalError

from dagkit import InputPort, OutputPort, RowOperator, Until
from dagkit.ranges import OFFSET_INFINITY, OffsetRange
from dagkit.testing import Alone, check_every_split_of
from dagkit_operators import Items, Map, SqlQuery, SqlRange, SqlReader, SqlSplitter
from dagkit_operators.looks import outage_of
from dagkit_operators.sql.databases import connect
from dagkit_operators.sql.faults import Kind, kind_of
from tests.cases import cases
from tests.engine.cast import Collect, Desk, arrived, chain
from tests.operators.looking import at_outage
from tests.operators.sql.sql_cast import Row, TestDatabase
from tests.operators.ways import refused

KEYS = [3, 4, 4, 7, 20, 21, 21, 21, 90]


ROWS = [Row(key, None if key == 7 else f"row {key}") for key in KEYS]


@pytest.fixture
def filled(database):
    """A table with a few rows, of which some have the same key."""
    database.rows("CREATE TABLE numbers (number INTEGER, text TEXT)")
    values = ", ".join(f"({row.number}, {'NULL' if row.text is None else repr(row.text)})" for row in ROWS)
    database.rows(f"INSERT INTO numbers VALUES {values}")
    return database


def rows_read(database, **properties):
    given = {"table": "numbers", "key": "number", "range_size": 8, **database.settings, **properties}
    return read_by(database, split=SqlSplitter(**given))


def read_by(database, page_rows=2, **queries):
    read = SqlReader(**database.settings, record_type=Row, page_rows=page_rows)
    return chain(**queries, read=read, texts=Map(lambda row: [row.number, row.text]), collect=Collect())


def rows_of(loop):
    return sorted((Row(*pair) for pair in arrived(loop)), key=lambda row: row.number)


def test_a_query_is_read_as_a_table_and_a_question_mark_in_it_is_no_parameter(tmp_path, filled):
    query = "SELECT number, upper(text) AS text FROM numbers WHERE number > 4 AND coalesce(text, '') <> 'why?'"
    filled.rows("INSERT INTO numbers VALUES (91, 'why?')")
    loop = Desk(tmp_path, rows_read(filled, table="", query=query)).run()
    assert rows_of(loop) == [Row(r.number, r.text and r.text.upper()) for r in ROWS if r.number > 4]


@pytest.mark.gate(1)
def test_every_split_of_a_range_gives_the_same_rows(filled):
    reader = SqlReader(**filled.settings, record_type=Row, page_rows=2)
    check_every_split_of(reader, SqlRange("SELECT * FROM numbers", "number", 19, 24))


@pytest.mark.parametrize("key", ["number", None])
def test_each_element_of_a_stream_may_be_a_query(tmp_path, filled, key):
    def query(number: int) -> SqlQuery:
        return SqlQuery(f"SELECT * FROM numbers WHERE number = {number}", key)

    draw = read_by(filled, bounds=Items[int](items=(4, 20, 21)), queries=Map(query))
    assert rows_of(Desk(tmp_path, draw).run()) == [row for row in ROWS if row.number in (4, 20, 21)]


def test_without_a_record_type_rows_are_dicts_and_a_query_without_a_highest_key_is_read_to_its_end(filled):
    alone = Alone(SqlReader(**filled.settings))
    alone.work(SqlQuery("SELECT * FROM numbers WHERE number = 3"))
    assert alone.sent() == [{"number": 3, "text": "row 3"}]
    alone = Alone(SqlReader(**filled.settings, record_type=Row, page_rows=2))
    alone.work(SqlQuery("SELECT * FROM numbers", "number"), OffsetRange(5, OFFSET_INFINITY - 1))
    assert (alone.sent(), alone.deferred) == ([row for row in ROWS if row.number >= 5], None)


NO_COLUMN = "the query has no column text; its columns are number, name"


@pytest.mark.parametrize(
    ("change", "problem"),
    [("ALTER TABLE numbers RENAME COLUMN text TO name", NO_COLUMN), ("DROP TABLE numbers", "numbers")],
)
def test_a_table_that_does_not_fit_is_named(tmp_path, filled, change, problem):
    filled.rows(change)
    with refused("table-mismatched", problem) as raised:
        Desk(tmp_path, rows_read(filled)).run()
    assert "query:" not in raised.value.problem


class Removing(RowOperator):
    """Passes on queries, and removes the database before."""

    kind = "sql.removing/1"
    input = InputPort(SqlRange)
    output = OutputPort(SqlRange)
    removed: str = ""

    def process(self, item: SqlRange) -> Iterator[SqlRange]:
        Path(self.removed).unlink()
        yield item


@pytest.mark.parametrize("reading", ["splitter", "reader"])
def test_a_file_that_is_not_there_is_reported_and_not_created(tmp_path, reading):
    file = tmp_path / "strange ?%#.db"
    database = TestDatabase(f"sqlite:///{quote(str(file))}")
    database.rows("CREATE TABLE numbers (number INTEGER, text TEXT)")
    database.rows("INSERT INTO numbers VALUES (1, 'one')")
    assert rows_of(Desk(tmp_path / "there", rows_read(database)).run()) == [Row(1, "one")]
    split = SqlSplitter(table="numbers", key="number", **database.settings)
    draw = read_by(database, split=split, removing=Removing(removed=str(file)))
    if reading == "splitter":
        file.unlink()
    with refused("database-refused", re.escape(f"there is no file {file}")):
        Desk(tmp_path / "away", draw).run()
    assert not file.exists()


def test_a_splitter_reads_a_table_or_a_query():
    for properties in ({}, {"table": "t", "query": "SELECT 1"}):
        (fault,) = SqlSplitter(url="sqlite:///a.db", key="k", **properties).faults
        assert "set either table or query" in fault.message


def test_a_row_without_a_key_is_not_left_out_silently(tmp_path, filled):
    filled.rows("INSERT INTO numbers VALUES (NULL, 'lost')")
    with refused("table-mismatched", "number is NULL in a row of numbers"):
        Desk(tmp_path, rows_read(filled)).run()
    query = {"table": "", "query": "SELECT * FROM numbers WHERE number IS NOT NULL"}
    assert rows_of(Desk(tmp_path / "others", rows_read(filled, **query)).run()) == ROWS


AWAY = {"url": "postgresql://dagkit@127.0.0.1:1/none", "password": "hunter2"}


@cases(
    "query, left",
    ("a range", SqlRange("SELECT 1", "number", 0, 24), OffsetRange(0, 24)),
    ("a query whose highest key is unknown", SqlQuery("SELECT 1", "number"), OffsetRange(0, OFFSET_INFINITY - 1)),
)
def test_a_reader_waits_for_a_database_that_is_away(caplog, query, left):
    outage_of.cache_clear()
    alone = Alone(SqlReader(**AWAY))
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            alone.work(query)
            assert alone.deferred.residual == left
    assert len(caplog.records) == 1
    assert "does not answer, and is tried again until it does" in caplog.text
    assert "hunter2" not in caplog.text


def test_a_splitter_waits_for_a_database_that_is_locked(tmp_path, sqlite, caplog):
    sqlite.rows("CREATE TABLE numbers (number INTEGER, text TEXT)")
    sqlite.rows("INSERT INTO numbers VALUES (1, 'one'), (2, 'two')")
    impatient = replace(sqlite, url=f"{sqlite.url}?timeout_millis=0")
    lock = connect(sqlite.url)
    for statement in ("PRAGMA locking_mode = EXCLUSIVE", "UPDATE numbers SET text = text"):
        lock.execute(statement)
    lock.commit()  # in this mode the lock stays
    with at_outage(lock.close), caplog.at_level(logging.WARNING):
        loop = Desk(tmp_path, rows_read(impatient), until=Until.IDLE).run()
    assert rows_of(loop) == [Row(1, "one"), Row(2, "two")]
    first, second = [record.getMessage() for record in caplog.records]
    assert "does not answer, and is tried again until it does" in first
    assert "database is locked" in first
    assert "answers again" in second


def test_a_launch_is_stopped_while_the_splitter_waits(tmp_path):
    database = TestDatabase(AWAY["url"], AWAY["password"])
    loop = Desk(tmp_path, rows_read(database), until=Until.STOPPED).loop()
    with at_outage(loop.stop):
        loop.run()
    assert loop.checkpoint.window == 0


WAITED = [
    "the database system is starting up",
    "the database system is not yet accepting connections",
    "the database system is not accepting connections",
    "the database system is in recovery mode",
    "the database system is shutting down",
    "terminating connection due to unexpected postmaster exit",
    "terminating connection due to administrator command",
    "canceling authentication due to timeout",
]
REFUSED = [
    'database "orders" is not currently accepting connections',
    'password authentication failed for user "dagkit"',
]


@pytest.mark.parametrize("text", WAITED + REFUSED)
def test_a_server_that_starts_or_ends_is_waited_for_and_a_refusal_is_not(text):
    failed = f'Failed to connect: connection to server at "127.0.0.1", port 5432 failed: FATAL:  {text}'
    expected = Kind.AWAY if text in WAITED else Kind.REFUSED
    assert kind_of(OperationalError(failed, status_code=AdbcStatusCode.IO)) is expected
