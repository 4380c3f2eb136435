"""Each row of a table or a query is read once, however its keys are divided."""

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from dagkit import Dag, InputPort, OperatorContext, OutputPort, RowOperator, StatelessPartitioner
from dagkit.api.running import Until
from dagkit.engine.failures import OperatorFailed
from dagkit.engine.points import Point
from dagkit.ranges import OFFSET_INFINITY, OffsetRange
from dagkit.testing import Alone, CrashAfter, FakeClock, check_every_split_of
from dagkit_operators import Items, Map, SqlQuery, SqlRange, SqlReader, SqlSplitter
from dagkit_operators.outage import outage_of
from dagkit_operators.sql.databases import connected
from tests.engine.cast import Collect, Desk, Hurried, arrived
from tests.operators.outages import at_outage
from tests.operators.sql.sql_cast import TestDatabase

KEYS = [3, 4, 4, 7, 20, 21, 21, 21, 90]


@dataclass(frozen=True)
class Named:
    number: int
    text: str | None


ROWS = [Named(key, None if key == 7 else f"row {key}") for key in KEYS]


@pytest.fixture
def filled(database):
    """A table with a few rows, of which some have the same key."""
    database.rows("CREATE TABLE numbers (number INTEGER, text TEXT)")
    values = ", ".join(f"({row.number}, {'NULL' if row.text is None else repr(row.text)})" for row in ROWS)
    database.rows(f"INSERT INTO numbers VALUES {values}")
    return database


class Queries(RowOperator):
    """Makes a query of each number."""

    kind = "sql.queries/1"
    input = InputPort(int)
    output = OutputPort(SqlQuery)
    key: str | None = None

    def process(self, item: int) -> Iterator[SqlQuery]:
        yield SqlQuery(f"SELECT * FROM numbers WHERE number = {item}", self.key)


def rows_read(database: TestDatabase, *, readers: int = 2, **properties: Any) -> Any:
    def draw(dag: Dag, conf: object) -> None:
        splitter = SqlSplitter(
            **{"table": "numbers", "key": "number", "range_size": 8, **database.settings, **properties}
        )
        read = dag.add_operator("read", SqlReader(**database.settings, record_type=Named, page_rows=2))
        dag.set_operator_attribute(read, OperatorContext.PARTITIONER, StatelessPartitioner(readers))
        split = dag.add_operator("split", splitter)
        dag.add_stream("ranges", split.ranges, read.queries)
        texts = dag.add_operator("texts", Map(lambda row: [row.number, row.text]))
        dag.add_stream("records", read.records, texts.input)
        dag.add_stream("texts", texts.output, dag.add_operator("collect", Collect()).input)

    return draw


def numbers_and_texts(loop: Any) -> list[Named]:
    return sorted((Named(*pair) for pair in arrived(loop)), key=lambda row: row.number)


def test_each_row_is_read_once_and_new_rows_later(tmp_path, filled):
    desk = Desk(tmp_path, rows_read(filled), clock=FakeClock())
    assert numbers_and_texts(desk.run()) == ROWS
    filled.rows("INSERT INTO numbers VALUES (91, 'new'), (92, NULL)")
    assert numbers_and_texts(desk.run()) == [*ROWS, Named(91, "new"), Named(92, None)]
    assert desk.faults() == []


@pytest.mark.gate(1)
@pytest.mark.parametrize("point", [Point.PLANNED, Point.STAGED, Point.APPENDED])
def test_a_crash_loses_and_doubles_no_row(tmp_path, filled, point):
    desk = Desk(tmp_path, rows_read(filled), clock=FakeClock(), backend=Hurried, until=Until.IDLE)
    desk.crash(CrashAfter(point, 1), CrashAfter(point, 3))
    assert numbers_and_texts(desk.run()) == ROWS
    assert desk.faults() == []


def test_a_query_is_read_as_a_table(tmp_path, filled):
    query = {"table": "", "query": "SELECT number, upper(text) AS text FROM numbers WHERE number > 4"}
    loop = Desk(tmp_path, rows_read(filled, **query)).run()
    assert numbers_and_texts(loop) == [Named(r.number, r.text and r.text.upper()) for r in ROWS if r.number > 4]


def test_a_question_mark_in_a_query_is_no_parameter(tmp_path, filled):
    filled.rows("INSERT INTO numbers VALUES (91, 'why?')")
    query = {"table": "", "query": "SELECT number, text FROM numbers WHERE text = 'why?'"}
    assert numbers_and_texts(Desk(tmp_path, rows_read(filled, **query)).run()) == [Named(91, "why?")]


@pytest.mark.gate(1)
def test_every_split_of_a_range_gives_the_same_rows(filled):
    reader = SqlReader(**filled.settings, record_type=Named, page_rows=2)
    check_every_split_of(reader, SqlRange("SELECT * FROM numbers", "number", 19, 24))


@pytest.mark.parametrize("key", ["number", None])
def test_each_element_of_a_stream_may_be_a_query(tmp_path, filled, key):
    def draw(dag: Dag, conf: object) -> None:
        words = dag.add_operator("bounds", Items[int](items=(4, 20, 21)))
        queries = dag.add_operator("queries", Queries(key=key))
        read = dag.add_operator("read", SqlReader(**filled.settings, record_type=Named))
        words >> queries
        dag.add_stream("queries", queries.output, read.queries)
        texts = dag.add_operator("texts", Map(lambda row: [row.number, row.text]))
        dag.add_stream("records", read.records, texts.input)
        dag.add_stream("texts", texts.output, dag.add_operator("collect", Collect()).input)

    loop = Desk(tmp_path, draw).run()
    assert numbers_and_texts(loop) == [row for row in ROWS if row.number in (4, 20, 21)]


def test_without_a_record_type_rows_are_dicts(filled):
    alone = Alone(SqlReader(**filled.settings))
    alone.work(SqlQuery("SELECT * FROM numbers WHERE number = 3"))
    assert alone.sent() == [{"number": 3, "text": "row 3"}]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            "ALTER TABLE numbers RENAME COLUMN text TO name",
            "the query has no column text; its columns are number, name",
        ),
        ("DROP TABLE numbers", "numbers"),
    ],
)
def test_a_table_that_does_not_fit_is_named(tmp_path, filled, change, problem):
    filled.rows(change)
    with pytest.raises(OperatorFailed) as raised:
        Desk(tmp_path, rows_read(filled)).run()
    assert (raised.value.code, problem in raised.value.problem) == ("table-mismatched", True)
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
    assert numbers_and_texts(Desk(tmp_path / "there", rows_read(database)).run()) == [Named(1, "one")]

    def draw(dag: Dag, conf: object) -> None:
        split = dag.add_operator("split", SqlSplitter(table="numbers", key="number", **database.settings))
        removing = dag.add_operator("removing", Removing(removed=str(file)))
        read = dag.add_operator("read", SqlReader(**database.settings, record_type=Named))
        split >> removing >> read >> dag.add_operator("collect", Collect())

    if reading == "splitter":
        file.unlink()
    with pytest.raises(OperatorFailed, match=re.escape(f"there is no file {file}")) as raised:
        Desk(tmp_path / "away", draw).run()
    assert raised.value.code == "database-refused"
    assert not file.exists()


def test_a_splitter_reads_a_table_or_a_query():
    for properties in ({}, {"table": "t", "query": "SELECT 1"}):
        (fault,) = SqlSplitter(url="sqlite:///a.db", key="k", **properties).faults
        assert "set either table or query" in fault.message


def test_a_row_without_a_key_is_not_left_out_silently(tmp_path, filled):
    filled.rows("INSERT INTO numbers VALUES (NULL, 'lost')")
    with pytest.raises(OperatorFailed, match="number is NULL in a row of numbers") as raised:
        Desk(tmp_path, rows_read(filled)).run()
    assert raised.value.code == "table-mismatched"
    query = {"table": "", "query": "SELECT * FROM numbers WHERE number IS NOT NULL"}
    (tmp_path / "others").mkdir()
    assert numbers_and_texts(Desk(tmp_path / "others", rows_read(filled, **query)).run()) == ROWS


AWAY = {"url": "postgresql://dagkit@127.0.0.1:1/none", "password": "hunter2"}


@pytest.mark.parametrize(
    ("query", "left"),
    [
        (SqlRange("SELECT 1", "number", 0, 24), OffsetRange(0, 24)),
        (SqlQuery("SELECT 1", "number"), OffsetRange(0, OFFSET_INFINITY - 1)),
    ],
    ids=["a range", "a query whose highest key is unknown"],
)
def test_a_reader_waits_for_a_database_that_is_away(caplog, query, left):
    outage_of.cache_clear()
    alone = Alone(SqlReader(**AWAY))
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            alone.work(query)
            assert alone.deferred is not None
            assert alone.deferred.residual == left
    assert len(caplog.records) == 1
    assert "does not answer, and is tried again until it does" in caplog.text
    assert "hunter2" not in caplog.text


def test_a_query_whose_highest_key_was_unknown_is_read_to_its_end(filled):
    alone = Alone(SqlReader(**filled.settings, record_type=Named, page_rows=2))
    alone.work(SqlQuery("SELECT * FROM numbers", "number"), OffsetRange(5, OFFSET_INFINITY - 1))
    assert (alone.sent(), alone.deferred) == ([row for row in ROWS if row.number >= 5], None)


def test_a_splitter_waits_for_a_database_that_is_locked(tmp_path, sqlite, caplog):
    sqlite.rows("CREATE TABLE numbers (number INTEGER, text TEXT)")
    sqlite.rows("INSERT INTO numbers VALUES (1, 'one'), (2, 'two')")
    impatient = replace(sqlite, url=f"{sqlite.url}?timeout_millis=0")
    lock = connected(sqlite.url)
    for statement in ("PRAGMA locking_mode = EXCLUSIVE", "UPDATE numbers SET text = text"):
        lock.execute(statement)
    lock.commit()  # in this mode the lock stays
    with at_outage(lock.close), caplog.at_level(logging.WARNING):
        loop = Desk(tmp_path, rows_read(impatient), until=Until.IDLE).run()
    assert numbers_and_texts(loop) == [Named(1, "one"), Named(2, "two")]
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
