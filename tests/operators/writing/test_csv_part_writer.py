"""CSV files hold every record once, begin with a header, and are read back as they were written."""

import csv
import datetime as dt
import gzip
import io
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagkit import Batch, Block
from dagkit.api.running import Until
from dagkit.engine.program.points import Point
from dagkit.testing import Alone, CrashAfter, FakeClock
from dagkit_operators import CsvPartWriter, CsvReader, FileSplitterInput, Items, LineReader, Map, Record
from tests.engine.cast import Desk, chain
from tests.examples import examples
from tests.old_files import old_file


@dataclass(frozen=True)
class Fruit:
    name: str
    count: int | None = None


def writer(state: Mapping[str, Any] | None = None, **properties: Any) -> Alone[CsvPartWriter]:
    return Alone(CsvPartWriter(file_path="output", file_name="{partition}.{number}", **properties), state=state)


def written_by(at_work, *items) -> bytes:
    with at_work.window():
        at_work.send(*items)
    (content,) = at_work.written().values()
    return content


class Ripe(Enum):
    NO = "no"


SPECIAL = [Fruit('a "b"', 1), Fruit("a,b"), Fruit("a\nb"), Fruit("a\rb"), Fruit(""), Fruit(" a ")]
QUOTED = b'name,count\n"a ""b""",1\n"a,b",\n"a\nb",\n"a\rb",\n"",\n a ,\n'
DIALECT = {"separator": ";", "quote": "'", "quotes_all": True, "null_value": "NULL", "record_separator": "\r\n"}
TYPES = {
    "a": True,
    "b": 0.1,
    "c": Decimal("1.50"),
    "d": dt.time(1, 2, 3),
    "e": b"caf\xe9",
    "f": Ripe.NO,
    "g": np.float64(0.1),
}


@pytest.mark.parametrize(
    ("properties", "items", "written"),
    [
        ({"record_type": Fruit}, SPECIAL, QUOTED),
        (
            {"record_type": Fruit, **DIALECT},
            [Fruit("it's"), Fruit("NULL", 3)],
            b"'name';'count'\r\n'it''s';NULL\r\n'NULL';'3'\r\n",
        ),
        ({"columns": tuple("abcdefg"), "header": False}, [TYPES], b"true,0.1,1.50,01:02:03,caf\xe9,no,0.1\n"),
        ({"columns": ("count",), "header": False}, [{"count": None}], b'""\n'),
        ({"record_type": Fruit, "columns": ("count", "name")}, [Fruit("a", 1)], b"count,name\n1,a\n"),
    ],
    ids=["quotes", "a dialect", "each type has one form", "a missing value is no empty line", "chosen columns"],
)
def test_values_are_written_in_their_form(properties, items, written):
    assert written_by(writer(**properties), *items) == written


def test_columns_that_cannot_be_written_are_named():
    @dataclass
    class Basket:
        fruits: list[Fruit]

    (fault,) = CsvPartWriter(file_path="out", record_type=Fruit, columns=("colour",)).faults
    assert "records have no field colour; they have name, count" in fault.message
    (fault,) = CsvPartWriter(file_path="out", record_type=Basket).faults
    assert "the field fruits is list[Fruit], which is no single value of a CSV row" in fault.message
    with pytest.raises(TypeError, match=r"the column a cannot hold \[1\]: it is no text, number, time or truth value"):
        writer(columns=("a",)).send({"a": [1]})


def test_each_file_has_a_header_and_counts_only_records():
    at_work = writer(record_type=Fruit, max_count=2, compression="gzip")
    for names in ("ab", "", "c"):
        with at_work.window():
            at_work.send(*(Record(0, Fruit(name, 1)) for name in names))
        at_work = at_work.restarted()
    contents = {name: gzip.decompress(content) for name, content in at_work.written().items()}
    assert contents == {"0.0.gz": b"name,count\na,1\nb,1\n", "0.1.gz": b"name,count\nc,1\n"}
    assert at_work.files["files"].finished == {"0.0.gz"}


def test_records_with_other_columns_begin_a_file():
    at_work = writer()
    with at_work.window():
        at_work.send(pa.table({"a": [1, 2]}), pa.record_batch({"a": [3]}), pa.table({"b": ["x"]}))
    assert at_work.written() == {"0.0": b"a\n1\n2\n3\n", "0.1": b"b\nx\n"}


@pytest.mark.parametrize("changed", [{"quote": "'"}, {"null_value": "NULL"}, {"record_separator": "\r\n"}], ids=str)
def test_a_launch_with_another_dialect_begins_a_file(changed):
    at_work = writer(record_type=Fruit)
    written_by(at_work, Fruit("a,b"))
    for properties, finished in (({}, []), (changed, ["0.0"]), (changed, [])):
        at_work = writer(record_type=Fruit, state=at_work.state, **properties)
        written_by(at_work, Fruit("a,b"))
        assert [part.name for part in at_work.sent("finished_parts")] == finished


@settings(max_examples=examples(80))
@given(
    rows=st.lists(st.tuples(st.text(), st.none() | st.integers(-9, 9)), max_size=8),
    limit=st.none() | st.integers(1, 40),
    cuts=st.lists(st.integers(0, 8), max_size=3),
)
def test_many_at_once_are_written_as_one_by_one_and_python_reads_them(rows, limit, cuts):
    fruits = [Fruit(name.replace("\x00", "0"), count) for name, count in rows]
    one_by_one, at_once = (writer(record_type=Fruit, max_length=limit) for _ in range(2))
    one_by_one.send(*fruits)
    bounds = [0, *sorted(min(cut, len(fruits)) for cut in cuts), len(fruits)]
    for start, stop in pairwise(bounds):
        at_once.send_batch(Batch.of(fruits[start:stop]))
    assert at_once.written() == one_by_one.written()
    read = [
        row
        for content in at_once.written().values()
        for row in list(csv.reader(io.StringIO(content.decode("utf-8", "surrogateescape"), newline="")))[1:]
    ]
    assert read == [[fruit.name, "" if fruit.count is None else str(fruit.count)] for fruit in fruits]


def test_the_reader_reads_the_records_again(tmp_path):
    fruits = [Fruit('a "b"', 1), Fruit("a,\nb"), Fruit("ü", -3)]
    path = tmp_path / "fruits.csv"
    path.write_bytes(written_by(writer(record_type=Fruit), *fruits))
    reading = Alone(CsvReader(reader_context={"record_type": Fruit, "quoted_newlines": True}))
    reading.work(Block(0, str(path), 0, path.stat().st_size, last=True))
    assert [record.value for record in reading.sent("messages")] == fruits


def fruit(number: int) -> Fruit:
    return Fruit(f"{number},", number or None)


@pytest.mark.slow
def test_a_launch_that_crashes_writes_each_record_once_and_takes_the_type_of_the_stream(tmp_path):
    write = CsvPartWriter(file_path="out", max_count=7)
    draw = chain(numbers=Items[int](items=tuple(range(40))), fruits=Map(fruit), write=write)
    desk = Desk(tmp_path, draw, until=Until.IDLE, clock=FakeClock())
    desk.crash(CrashAfter(Point.STAGED, 1), CrashAfter(Point.APPENDED, 1), CrashAfter(Point.HALF_FINISHED, 1))
    desk.run()
    found = [list(csv.reader(io.StringIO(content.decode()))) for content in desk.outputs().values()]
    assert all(rows[0] == ["name", "count"] and len(rows) <= 8 for rows in found)
    assert sorted(int(count or 0) for rows in found for _, count in rows[1:]) == list(range(40))


def test_a_file_begins_with_its_header_whichever_blocks_its_records_come_from(tmp_path):
    blocks = FileSplitterInput([tmp_path / "a", tmp_path / "b"], block_size=2, blocks_threshold=1)
    write = CsvPartWriter(file_path="out", record_type=Fruit, max_count=2)
    draw = chain(blocks=blocks, lines=LineReader(), fruits=Map(Fruit), write=write)
    for name, lines in (("a", "1\n2\n3\n"), ("b", "4\n")):
        old_file(tmp_path / name, lines)
    desk = Desk(tmp_path, draw, until=Until.IDLE, clock=FakeClock())
    desk.run()
    assert [*desk.outputs().values()] == [b"name,count\n1,\n2,\n", b"name,count\n3,\n4,\n"]
