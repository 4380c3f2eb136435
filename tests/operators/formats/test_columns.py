"""Formats with columns: the same records however a file is cut, and every row that makes none is rejected."""

import csv
import io
import json
import operator as op
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pa_parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dagkit import Block
from dagkit.launching import Machine, launch
from dagkit.testing import Alone, check_every_split_of
from dagkit_operators import (
    AvroReader,
    AvroReaderContext,
    BlockReader,
    ColumnsMismatched,
    CsvContext,
    CsvReader,
    FileChanged,
    FileInfo,
    FileSplitterInput,
    Filter,
    FixedLengthReader,
    Items,
    JsonLinesContext,
    JsonLinesReader,
    MatchFiles,
    ParquetBroken,
    ParquetContext,
    ParquetPartWriter,
    ParquetReader,
    ReadAheadLineReaderContext,
    ReadFiles,
    Record,
    value,
)
from dagkit_operators.contexts.lines import LineTooLong
from dagkit_operators.formats.parquet import start_of
from dagkit_operators.formats.selection import selected
from tests.cases import cases
from tests.engine.cast import chain
from tests.examples import examples
from tests.old_files import old_file
from tests.operators.ways import placed


@dataclass
class Trip:
    id: int
    name: str
    price: float | None


class TripRow(TypedDict):
    id: int
    name: str
    price: float | None


class TripTuple(NamedTuple):
    id: int
    name: str
    price: float | None


@dataclass
class Nested:
    trip: Trip


class TripModel(BaseModel):
    id: int = Field(lt=4)
    name: str
    price: float | None


PARQUET = pa.schema([("id", pa.int64()), ("name", pa.string()), ("price", pa.float64())])
TRIPS = [Trip(1, "ä", None), Trip(2, 'b"', 2.5), Trip(3, "c, d", 4.0), Trip(4, "", 0.5)]
JSON = b"".join(json.dumps(vars(trip), ensure_ascii=False).encode() + b"\n" for trip in TRIPS)
CSV = 'id,name,price\n1,ä,\n2,"b""",2.5\r\n3,"c, d",4\n4,,0.5'.encode()


def parquet(trips=TRIPS, group=1, schema=PARQUET):
    sink = io.BytesIO()
    pa_parquet.write_table(pa.Table.from_pylist([vars(trip) for trip in trips], schema), sink, row_group_size=group)
    return sink.getvalue()


def groups(content):
    """Where the row groups of a Parquet file start."""
    metadata = pa_parquet.ParquetFile(io.BytesIO(content)).metadata
    return [start_of(metadata.row_group(number)) for number in range(metadata.num_row_groups)]


def avro():
    sink = io.BytesIO()
    fields = {"id": "long", "name": "string", "price": ["null", "double"]}
    schema = {"type": "record", "name": "Trip", "fields": [{"name": n, "type": t} for n, t in fields.items()]}
    fastavro.writer(sink, schema, [vars(trip) for trip in TRIPS])
    return sink.getvalue()


CONTENTS = {JsonLinesContext: JSON, CsvContext: CSV, ParquetContext: parquet(), AvroReaderContext: avro()}
READERS = {JsonLinesContext: JsonLinesReader, CsvContext: CsvReader, ParquetContext: ParquetReader}
CONTEXTS = pytest.mark.parametrize("kind", READERS)


def block_of(folder, content, start=0, end=None):
    path = folder / "file"
    path.write_bytes(content)
    stop = len(content) if end is None else end
    return Block(0, str(path), start, stop, stop == len(content), facts={"length": len(content)})


def reader_of(context, **properties):
    return READERS.get(type(context), AvroReader)(reader_context=context, **properties)


def values(reader):
    return [record.value for record in reader.sent()]


def read(context, content, folder, *edges, **properties):
    """The records of the stretches of a file between edges, and what is rejected of it."""
    reader = Alone(reader_of(context, **properties))
    for start, end in pairwise([0, *edges, len(content)]):
        if start < end:
            reader.work(block_of(folder, content, start, end))
    return values(reader), [(one.start, one.reason) for one in reader.sent("rejected")]


@CONTEXTS
@pytest.mark.parametrize("record_type", [Trip, TripRow, TripTuple])
def test_records_have_the_type_that_is_declared(kind, record_type, tmp_path):
    records, rejected = read(kind(record_type=record_type), CONTENTS[kind], tmp_path)
    assert (records, rejected) == ([record_type(**vars(trip)) for trip in TRIPS], [])
    assert {type(record) for record in records} == {dict if record_type is TripRow else record_type}


@CONTEXTS
def test_a_record_that_its_model_refuses_is_rejected(kind, tmp_path):
    content = CONTENTS[kind]
    starts = {JsonLinesContext: b'{"id": 4', CsvContext: b"4,,"}
    place = content.find(starts[kind]) if kind in starts else groups(content)[3]
    assert read(kind(record_type=TripModel), content, tmp_path) == (
        [TripModel.model_validate(vars(trip)) for trip in TRIPS[:3]],
        [(place, "id: Input should be less than 4")],
    )


@CONTEXTS
@pytest.mark.parametrize(
    "where",
    [
        value.field("price") > 1,
        (value.field("price") >= 2.5) & ~value.field("name").starts_with("ä"),
        ~(value.field("price") <= 1.0) & (value.field("price") != None),  # noqa: E711 - compared later
        value.field("name").length() != 1,
        pc.field("price") > 1,
    ],
    ids=str,
)
def test_columns_and_rows_are_selected(kind, where, tmp_path):
    types = {} if kind is ParquetContext else {"id": "int64", "name": "string", "price": "float64"}
    records, _ = read(kind(types=types, columns=("id",), where=where), CONTENTS[kind], tmp_path)
    assert [record["id"] for record in records] == ([2, 3, 4] if "length" in str(where) else [2, 3])


def test_a_missing_value_is_neither_equal_nor_less(tmp_path):
    price = value.field("price")
    wanted = {price == 2.5: [2], price != 2.5: [1, 3, 4], ~(price == 2.5): [1, 3, 4], ~(price > 1): [1, 4]}
    for where, ids in wanted.items():
        assert [trip.id for trip in read(JsonLinesContext(record_type=Trip, where=where), JSON, tmp_path)[0]] == ids
        assert [trip.id for trip in read(CsvContext(record_type=Trip, where=where), CSV, tmp_path)[0]] == ids


@pytest.mark.gate(2)
@pytest.mark.slow
@cases(
    "context, content",
    ("typed JSON", JsonLinesContext(types={"a": "int64"}), b'{"a":1}\r\n\n {"a":2}\n{}'),
    ("JSON", JsonLinesContext(), b'{"a": 1}\n\n{"a": [2]}\n{}\n'),
    ("CSV", CsvContext(record_type=Trip), CSV),
    ("validated CSV", CsvContext(record_type=TripModel), CSV),
    ("quoted newlines", CsvContext(quoted_newlines=True), b'a,b\n1,"x\n2,y"\n\n"""\n",z\r\n3,4'),
)
@pytest.mark.parametrize("chunk_size", [1, 9])
def test_no_split_loses_or_doubles_a_row(context, content, chunk_size, tmp_path):
    proven = check_every_split_of(reader_of(context, chunk_size=chunk_size), block_of(tmp_path, content))
    assert proven.records >= 3
    assert proven.granted
    assert proven.cuts == len(content) - 1


@pytest.mark.slow
def test_no_split_loses_or_doubles_a_row_group(tmp_path):
    content = parquet()
    positions = sorted({start + by for start in groups(content) for by in (-1, 0, 1)} | {len(content) - 1})
    reader = ParquetReader(reader_context=ParquetContext(record_type=Trip))
    proven = check_every_split_of(reader, block_of(tmp_path, content), positions=positions)
    assert (proven.records, proven.cuts) == (4, len(positions))
    assert proven.granted


@pytest.mark.parametrize("record_type", [None, Trip, TripModel], ids=["dicts", "a dataclass", "a model"])
def test_a_row_of_parquet_that_is_refused_later_is_rejected_with_the_place_of_its_row_group(record_type, tmp_path):
    def number(row):
        found = row["id"] if isinstance(row, dict) else row.id
        if found == 3:
            raise ValueError("three")
        return found

    class Numbers(ParquetReader):
        kind = "test.parquet-numbers/1"

        def convert_to_record(self, content: Any) -> int:
            return number(content)

    content, context = parquet(TRIPS[:3]), ParquetContext(record_type=record_type)
    blocks, files = Alone(Numbers(reader_context=context)), Alone(ReadFiles(reader_context=context, parse=number))
    block = block_of(tmp_path, content)
    blocks.work(block)
    files.work(FileInfo(block.path, len(content)))
    for reader in (blocks, files):
        assert [(one.start, one.reason) for one in reader.sent("rejected")] == [(groups(content)[2], "three")]


@pytest.mark.parametrize("record_type", [Trip, TripTuple, TripModel])
@pytest.mark.parametrize("kind", CONTENTS)
def test_arrow_batches_are_sent_on_request(kind, record_type, tmp_path):
    kept = TRIPS[:3] if record_type is TripModel else TRIPS  # its model refuses the last one
    batches, rejected = read(kind(record_type=record_type, sends="batches"), CONTENTS[kind], tmp_path)
    assert {type(batch) for batch in batches} == {pa.RecordBatch}
    types = dict(zip(PARQUET.names, PARQUET.types, strict=True))
    assert all(dict(zip(batch.schema.names, batch.schema.types, strict=True)) == types for batch in batches)
    assert [row for batch in batches for row in batch.to_pylist()] == [vars(trip) for trip in kept]
    assert len(rejected) == len(TRIPS) - len(kept)


WITHOUT_TYPES = "where needs the type of each field, and 'a' has none; set types"
NO_CONDITION = "is no condition|tests a record as a whole"


@pytest.mark.parametrize(
    ("kind", "properties", "words"),
    [
        *[(CsvContext, {"where": each}, NO_CONDITION) for each in (value, value > 1, "price > 1")],
        (CsvContext, {"where": value.field("a").upper()}, NO_CONDITION),
        (JsonLinesContext, {"where": value.field("a") == 1}, WITHOUT_TYPES),
        (JsonLinesContext, {"sends": "batches"}, "not every column has a type: set record_type"),
        (AvroReaderContext, {"sends": "batches"}, "not every column has a type: set record_type"),
        (CsvContext, {"record_type": Nested, "sends": "batches"}, "Arrow has no type for the field trip"),
        (CsvContext, {"record_type": int}, "int has no fields; use a dataclass"),
        (CsvContext, {"record_type": Trip, "columns": ("id",)}, "columns differ from the fields of Trip"),
        (CsvContext, {"header": False}, "columns have no names"),
        (CsvContext, {"encoding": "rot-unknown"}, "the encoding 'rot-unknown' cannot be used"),
        (CsvContext, {"encoding": "utf-7"}, "cannot be read from the middle of a file"),
        (CsvContext, {"encoding": "gbk", "separator": ";"}, "set quoted_newlines to False if no value contains"),
    ],
)
def test_properties_that_cannot_be_used_are_faults(kind, properties, words):
    with pytest.raises(ValidationError, match=words):
        kind(**properties)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["reference", pytest.param("spark", marks=pytest.mark.spark)])
def test_arrow_batches_cross_an_exchange(backend, tmp_path, request):
    def draw(dag, conf):
        for kind in CONTENTS:
            context = kind(record_type=Trip, sends="batches")
            find = FileSplitterInput(scanner={"files": [str(tmp_path / kind.__name__)]})
            read = reader_of(context, min_readers=2, max_readers=2)
            write = ParquetPartWriter(file_path=tmp_path / "out" / kind.__name__)
            placed(dag, **{f"{type(step).__name__} {kind.__name__}": step for step in (find, read, write)})

    for kind, content in CONTENTS.items():
        old_file(tmp_path / kind.__name__, content)
    machine = Machine("reference") if backend == "reference" else Machine(spark=request.getfixturevalue("spark"))
    launch(draw, until="once", machine=machine, path=tmp_path / "app", durable=False)
    for kind in CONTENTS:
        assert pa_parquet.read_table(tmp_path / "out" / kind.__name__).to_pylist() == [vars(trip) for trip in TRIPS]


BAD_JSON = [
    (b'{"id": "x", "name": "a"}', "Column(/id) changed from number to string"),
    (b'{"id": 2.5, "name": "a"}', "couldn't parse:2.5"),
    (b'{"id": 99999999999999999999, "name": "a"}', "couldn't parse:99999999999999999999"),
    (b'{"id": 5}', "no value for name"),
    (b'{"id": 5, "name": "\xff"}', "Invalid UTF8"),
    (b'{"id": 5, "name": "a"}{"id": 6, "name": "b"}', "the line holds 2 records"),
    (b'{"id": 5, "name": "a"', "the line is not a JSON object"),
    (b'{"id": 5,, "name": "a"}', "JSON parse error"),
    (b"[1]", "the line is not a JSON object"),
]
BAD_CSV = [
    (b"x,a,1", "invalid value 'x'"),
    (b"5,a", "Expected 3 columns, got 2"),
    (b"5,a,1,2", "Expected 3 columns, got 4"),
    (b",a,1", "no value for id"),
    (b"5,\xff,1", "invalid UTF8"),
    (b'5,a",1', "a quote is within a value: double it there"),
    (b'5,"a"b,1', "a quote is within a value: double it there"),
    (b'5, "a",1', "a quote is within a value: double it there"),
    (b"5,a\r,1", "a carriage return or newline is within a value"),
]


@pytest.mark.parametrize(
    ("context", "before", "line", "after", "reason"),
    [
        *[(JsonLinesContext(record_type=Trip), JSON, line, JSON, reason) for line, reason in BAD_JSON],
        *[(CsvContext(record_type=Trip), CSV + b"\n", line, CSV[14:], reason) for line, reason in BAD_CSV],
    ],
)
@pytest.mark.parametrize("chunk_size", [8, 1 << 20])
def test_only_the_bad_line_is_rejected_with_its_place(*, context, before, line, after, reason, chunk_size, tmp_path):
    records, rejected = read(context, before + line + b"\n" + after, tmp_path, chunk_size=chunk_size)
    assert records == TRIPS * 2
    assert [place for place, _ in rejected] == [len(before)]
    assert reason in rejected[0][1]


def test_a_bad_line_of_untyped_json_is_rejected_with_its_place(tmp_path):
    content = b'{"a": 1}\n{"a"}\n{"b": 3}\nnull\n5\n[1, 2]\n"x"\n{"a": null}\n' + b"[" * 100_000
    records, rejected = read(JsonLinesContext(), content, tmp_path)
    assert records == [{"a": 1}, {"b": 3}, {"a": None}]
    assert [place for place, _ in rejected] == [9, 24, 29, 31, 38, 54]
    assert {reason for _, reason in rejected[1:5]} == {"the line is not a JSON object"}


@pytest.mark.parametrize("bad", [2, 3, 5])
def test_every_bad_row_among_many_is_found(bad, tmp_path):
    lines = [b"id,price"] + [b"x,1" if number % bad == 0 else b"%d,1" % number for number in range(200)]
    records, rejected = read(CsvContext(types={"id": "int64"}), b"\n".join(lines), tmp_path, 500, 900)
    assert [record["id"] for record in records] == [number for number in range(200) if number % bad]
    assert len(rejected) == len(range(0, 200, bad))


def test_a_byte_order_mark_and_blank_lines_are_skipped(tmp_path):
    mark = b"\xef\xbb\xbf"
    assert read(CsvContext(), mark + b"a,b\n\n1,2\n\n", tmp_path)[0] == [{"a": "1", "b": "2"}]
    for context in (JsonLinesContext(), JsonLinesContext(types={"a": "int64"})):
        assert read(context, mark + b'{"a": 1}\r\n \n\n {"a": 2} \n', tmp_path) == ([{"a": 1}, {"a": 2}], [])


@pytest.mark.parametrize("chunk_size", [1, 100])
def test_a_byte_order_mark_is_skipped_only_where_a_file_begins(chunk_size, tmp_path):
    """Elsewhere it is a part of a value, wherever reading begins."""
    context = CsvContext(header=False, columns=("a", "b"))
    content = '\ufeff1,2\n\ufeff3,4\n\ufeff"5",6\n'.encode()
    records, rejected = read(context, content, tmp_path, chunk_size=chunk_size)
    assert records == [{"a": "1", "b": "2"}, {"a": "\ufeff3", "b": "4"}]
    assert [(start, "within a value" in reason) for start, reason in rejected] == [(14, True)]


@pytest.mark.parametrize(
    ("context", "content"),
    [
        (CsvContext(separator="\t"), b"a\tb\tc\n1\t2\t3\n\t\n"),
        (CsvContext(separator=" "), b"a b c\n1 2 3\n   \n"),
        (JsonLinesContext(types={"a": "int64"}), b'{"a": 1}\n\x0c\n'),
    ],
)
def test_a_line_of_blanks_is_rejected_if_it_is_not_empty_in_its_format(context, content, tmp_path):
    _, rejected = read(context, content, tmp_path)
    assert [place for place, _ in rejected] == [content.index(b"\n", content.index(b"1")) + 1]


NAMED = b"name;extra;id\na;x;1\n"


@pytest.mark.parametrize(
    ("context", "content", "row"),
    [
        (CsvContext(separator=";", columns=("id", "name")), NAMED, {"id": "1", "name": "a"}),
        (CsvContext(record_type=Trip, separator=";"), NAMED, Trip(1, "a", None)),
        (CsvContext(header=False, record_type=Trip, null_values=("", "-")), b"1,-,-\n", Trip(1, "-", None)),
        (CsvContext(quote=""), b'a,b\n"1,2"\n', {"a": '"1', "b": '2"'}),
    ],
    ids=["chosen", "of a type", "without a header", "quotes are parts of values"],
)
def test_columns_come_by_name_whatever_their_order(context, content, row, tmp_path):
    assert read(context, content, tmp_path) == ([row], [])


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"id,nam,price\n1,a,2\n", "the file has no column 'name'; did you mean 'nam'?"),
        (b"id,id,name\n1,2,a\n", "its header, at byte 0, names the column 'id' twice"),
        (b"\nid,name\n1,a\n", "its first line, at byte 0, is empty and names no columns"),
        (b"id\xff,name\n1,a\n", "its header, at byte 0, is not UTF-8; set its encoding"),
        (b"id,name\r1,a\n", "its header, at byte 0, is no row: a carriage return or newline is within a value"),
    ],
)
@pytest.mark.parametrize("quoted_newlines", [False, True])
def test_a_wrong_header_is_an_error_that_names_the_file(content, problem, quoted_newlines, tmp_path):
    with pytest.raises(ColumnsMismatched) as raised:
        read(CsvContext(record_type=Trip, quoted_newlines=quoted_newlines), content, tmp_path)
    assert str(raised.value).startswith(f"{tmp_path / 'file'}: {problem}")


@pytest.mark.parametrize("size", [1, 3, 8, 30])
@pytest.mark.parametrize("chunk_size", [1, 9])
def test_a_quoted_name_of_a_column_may_contain_newlines(size, chunk_size, tmp_path):
    content = b'"a\n""\n",b\r\n1,2\n3,4\n'
    edges = range(size, len(content), size)
    rows = [{'a\n"\n': "1", "b": "2"}, {'a\n"\n': "3", "b": "4"}]
    assert read(CsvContext(quoted_newlines=True), content, tmp_path, *edges, chunk_size=chunk_size) == (rows, [])


@pytest.mark.parametrize("chunk_size", [10, 1 << 20])
@pytest.mark.parametrize(
    ("content", "place"), [(b'"a,b\n' + b"1,2\n" * 8000, 0), (b"a,b\n1,2\n" + b'"' + b"3,4\n" * 20, 8)]
)
def test_a_header_or_quote_that_never_ends_is_an_error_with_its_place(content, place, chunk_size, tmp_path):
    context = CsvContext(quoted_newlines=True, longest_line=40)
    with pytest.raises(LineTooLong, match=f"{tmp_path}/file: the line at byte {place} is longer than 40 bytes"):
        read(context, content, tmp_path, chunk_size=chunk_size)


@pytest.mark.parametrize("size", [1, 3, 8, 30])
def test_consecutive_blocks_that_one_window_reads_give_the_same_rows(size, tmp_path):
    content = b'a,b\n"a long\n value",y\n1,2\n"\n",""\n'
    reader, length = Alone(CsvReader(reader_context=CsvContext(quoted_newlines=True))), len(content)
    path = block_of(tmp_path, content).path
    with reader.window():
        for number, start in enumerate(range(0, length, size)):
            before = number - 1 if number else None
            reader.work(Block(number, path, start, min(start + size, length), False, "", {"length": length}, before))
    assert values(reader) == [{"a": a, "b": b} for a, b in [("a long\n value", "y"), ("1", "2"), ("\n", "")]]


def test_blocks_that_do_not_follow_each_other_scan_for_quotes_once(tmp_path):
    rows = b"a,b\n" + b'"x\n",y\n' * 60_000
    block = block_of(tmp_path, rows)
    count = 0

    class CountingReader(CsvReader):
        def setup_stream(self, block):
            return counted(super().setup_stream(block))

    class Counted:
        def __init__(self, stream):
            self.seek, self._stream = stream.seek, stream

        def readinto(self, buffer):
            nonlocal count
            got = self._stream.readinto(buffer)
            count += got
            return got

    @contextmanager
    def counted(opening):
        with opening as stream:
            yield Counted(stream)

    reader = Alone(CountingReader(chunk_size=2000))
    facts, sent = {"length": len(rows), "modified_millis": Path(block.path).stat().st_mtime_ns // 1_000_000}, 0
    starts = range(0, len(rows), 40_000)
    for start in (*starts[::2], *starts[1::2]):
        reader.work(Block(0, block.path, start, min(start + 40_000, len(rows)), facts=facts))
        sent += len(values(reader))
    assert sent == 60_000
    assert count < 4 * len(rows)


@settings(max_examples=examples(40))
@given(
    rows=st.lists(st.tuples(*[st.text(st.sampled_from('a,"\n;é'), max_size=4)] * 2), min_size=1, max_size=8),
    cuts=st.lists(st.integers(0, 200), max_size=4),
    chunk_size=st.integers(1, 30),
)
def test_any_quoted_rows_are_read_however_the_file_is_cut(*, rows, cuts, chunk_size, tmp_path_factory):
    quoted = ['"' + text.replace('"', '""') + '"' for row in rows for text in row]
    content = ("a,b\n" + "".join(f"{a},{b}\n" for a, b in zip(quoted[::2], quoted[1::2], strict=True))).encode()
    edges = sorted({cut % len(content) for cut in cuts})
    folder, context = tmp_path_factory.mktemp("csv"), CsvContext(quoted_newlines=True)
    expected = [{"a": a, "b": b} for a, b in rows]
    assert read(context, content, folder, *edges, chunk_size=chunk_size) == (expected, [])


def without_its_first_group(content):
    start = groups(content)[0]
    return content[:start] + bytes(20) + content[start + 20 :]


def test_row_groups_that_the_condition_excludes_are_not_read(tmp_path):
    content, start = without_its_first_group(parquet()), groups(parquet())[0]
    assert read(ParquetContext(record_type=Trip, where=value.field("id") > 2), content, tmp_path)[0] == TRIPS[2:]
    with pytest.raises(ParquetBroken, match=f"file: the row group at byte {start} cannot be read: "):
        alone_with(content, tmp_path)
    records, ((place, _),) = read(ParquetContext(record_type=Trip), content, tmp_path)
    assert (records, place) == (TRIPS[1:], start)


@pytest.mark.parametrize("group", [1, 2, 3, 6])
@pytest.mark.parametrize(
    ("where", "kept"),
    [
        (~(value.field("price") > 1), ["nan", "1.0", "None"]),
        (~((value.field("price") > 1) & (value.field("price") < 9)), ["nan", "1.0", "None"]),
        (value.field("price") != 2, ["nan", "1.0", "3.0", "5.0", "None"]),
        (~(value.field("price") != 2), ["2.0"]),
        (~(pc.field("price") > 1), ["nan", "1.0"]),
        (pc.field("price") != 2, ["nan", "1.0", "3.0", "5.0"]),
    ],
)
def test_rows_that_statistics_leave_out_are_read(where, kept, group, tmp_path):
    prices = [2.0, float("nan"), 1.0, 3.0, 5.0, None]
    content = parquet([Trip(1, "a", price) for price in prices], group)
    records, _ = read(ParquetContext(columns=("price",), where=where), content, tmp_path)
    assert [str(record["price"]) for record in records] == kept


@pytest.mark.parametrize("where", [value.field("id") != 2, pc.field("id") != 2, value.field("price") > 2])
def test_row_groups_are_left_out_where_no_row_can_be_nan(where, tmp_path):
    content = without_its_first_group(parquet([Trip(2, "a", 1.0), Trip(3, "b", 3.0)]))
    records, rejected = read(ParquetContext(where=where), content, tmp_path)
    assert ([record["id"] for record in records], rejected) == ([3], [])


def alone_with(content, folder):
    """Read a Parquet file without a receiver of what is rejected."""
    Alone(ParquetReader(), connected=["messages"]).work(block_of(folder, content))


NO_PARQUET = [b"one\ntwo\n", b"PAR1", b"PAR1" + bytes(40) + b"PAR1", parquet()[:-10]]


@pytest.mark.parametrize("content", NO_PARQUET, ids=["text", "short", "zeros", "cut off"])
def test_what_is_no_parquet_file_or_is_cut_off_is_reported(content, tmp_path):
    with pytest.raises(ParquetBroken, match="file: this is no Parquet file: "):
        alone_with(content, tmp_path)
    block = block_of(tmp_path, parquet())
    Path(block.path).write_bytes(content)
    with pytest.raises(FileChanged):  # it was cut meanwhile
        Alone(ParquetReader()).work(block)


@pytest.mark.parametrize(
    ("context", "problem"),
    [
        (ParquetContext(columns=("nam",)), "the file has no column 'nam'; did you mean 'name'?"),
        (ParquetContext(types={"name": "int64"}), "its column 'name' has the type string, and int64 is wanted"),
        (ParquetContext(types={"id": "int32"}), "its column 'id': Integer value 1099511627776 not in range"),
    ],
    ids=["a name", "a type", "a large number is no silent loss"],
)
def test_a_parquet_file_has_the_declared_columns(context, problem, tmp_path):
    with pytest.raises(ColumnsMismatched) as raised:
        read(context, parquet([Trip(1 << 40, "a", None)]), tmp_path)
    assert str(raised.value).startswith(f"{tmp_path / 'file'}: {problem}")


def test_a_parquet_file_may_have_wider_columns(tmp_path):
    narrow = ParquetContext(types={"id": "int32", "price": "float32"})
    assert read(narrow, parquet(), tmp_path)[0] == [vars(trip) for trip in TRIPS]


def test_rows_stay_columns_until_they_are_needed(tmp_path):
    block = block_of(tmp_path, JSON)
    reader = ReadFiles(reader_context=JsonLinesContext(record_type=Trip))
    info = FileInfo(block.path, block.end, 0, 1)
    (batch,) = reader.process(info, reader.tracker(info, reader.initial_restriction(info)))
    assert batch.column("id").array().to_pylist() == [1, 2, 3, 4]
    assert list(batch) == TRIPS


@pytest.mark.parametrize(
    ("reader", "content"),
    [
        (JsonLinesReader(record_type=Trip), JSON),
        (CsvReader(record_type=Trip), CSV),
        (ParquetReader(record_type=Trip), parquet(group=4)),
        (FixedLengthReader(length=20), CSV),
    ],
    ids=["JSON lines", "CSV", "Parquet", "a fixed length"],
)
def test_rows_that_a_mask_keeps_have_their_places(reader, content, tmp_path):
    block = block_of(tmp_path, content)
    (batch,) = reader.process(block, reader.tracker(block, reader.initial_restriction(block)))
    first, *others = batch.column("value").places()
    mask = pa.array([False] + [True] * len(others))
    assert first is not None
    for kept in (batch.where(mask), batch.sliced(1, 9)):
        assert list(kept.column("value").places()) == others


ENCODINGS = ["latin-1", "cp1252", "utf-8-sig", "utf-16", "utf-16-be", "utf-32-le", "shift_jis", "gb18030"]
LETTER = {"shift_jis": "\u30bd", "gb18030": "\u4e2d"}
"""A character beyond ASCII; that of Shift JIS has a byte which is a backslash in ASCII."""


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("kind", [CsvContext, JsonLinesContext])
@pytest.mark.parametrize("typed", [True, False])
def test_rows_are_read_in_any_encoding(encoding, kind, typed, tmp_path):
    letter = LETTER.get(encoding, "ä")
    rows = [{"id": number, "name": f"{letter}{number}"} for number in range(30)]
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    if kind is CsvContext:
        lines = ["id,name", *[f'{row["id"]},"{row["name"]}"' for row in rows]]
    content = "\r\n".join(lines).encode(encoding)
    types = {"id": "int64", "name": "string"} if typed else {}
    expected = rows if typed or kind is JsonLinesContext else [{**row, "id": str(row["id"])} for row in rows]
    context = kind(encoding=encoding, types=types, chunk_size=64)
    for edges in ((), (101, 202), tuple(range(7, len(content), 41))):
        assert read(context, content, tmp_path, *edges) == (expected, [])


@pytest.mark.parametrize("kind", [CsvContext, JsonLinesContext])
def test_a_row_that_is_no_text_in_its_encoding_is_rejected_with_its_place(kind, tmp_path):
    rows = ['{"n": "a"}', '{"n": "?"}', '{"n": "c"}'] if kind is JsonLinesContext else ["n", "a", "?", "c"]
    content = "".join(f"{row}\n" for row in rows).encode("utf-16-le").replace(b"?\0", b"\0\xd8")
    place = content.index("{".encode("utf-16-le"), 2) if kind is JsonLinesContext else 8
    context = kind(encoding="utf-16-le", types={"n": "string"})
    records, ((start, reason),) = read(context, content, tmp_path)
    assert (records, start) == ([{"n": "a"}, {"n": "c"}], place)
    assert reason.startswith("it is not utf-16-le: ")


MULTILINE = ['1,"first', "second,x,y", 'third line",3']


def test_lines_within_a_quoted_value_are_no_rows_by_default(tmp_path):
    content = "a,b,c\n" + "\n".join(MULTILINE) + "\n4,5,6\n"
    rows = [{"a": "1", "b": "first\nsecond,x,y\nthird line", "c": "3"}, {"a": "4", "b": "5", "c": "6"}]
    for encoding in ["utf-8", "utf-16", "utf-32-be", "cp1252", "gbk"]:
        encoded = content.encode(encoding)
        for edges in ((), (len(encoded) // 2,), range(1, len(encoded))):
            assert read(CsvContext(encoding=encoding), encoded, tmp_path, *edges) == (rows, [])


@pytest.mark.parametrize("quoted_newlines", [True, False])
def test_a_row_with_a_stray_quote_is_rejected_and_the_others_are_read(quoted_newlines, tmp_path):
    content = b'a,b,c\n1,5" pipe,2\n3,"4","x"\n5,"6"" "pipe,7\n"8",line",9\n10,"""","11"\n'
    rows = [{"a": "3", "b": "4", "c": "x"}, {"a": "10", "b": '"', "c": "11"}]
    for edges in ((), range(1, len(content))):
        records, rejected = read(CsvContext(quoted_newlines=quoted_newlines), content, tmp_path, *edges)
        assert records == rows
        assert [content[start : start + 5] for start, _ in rejected] == [b'1,5" ', b'5,"6"', b'"8",l']


def test_a_quote_that_is_open_at_the_end_of_a_file_rejects_its_row(tmp_path):
    content = b'a,b\n1,2\n3,"4\n5,6\n'
    assert read(CsvContext(), content, tmp_path) == ([{"a": "1", "b": "2"}], [(8, "a quote is open at the end")])
    lines = CsvContext(quoted_newlines=False)
    reason = "a quote is open at the end; set quoted_newlines if values contain newlines"
    assert read(lines, content, tmp_path) == ([{"a": "1", "b": "2"}, {"a": "5", "b": "6"}], [(8, reason)])


@dataclass
class Tagged:
    id: int
    of: dict[str, int]


@cases(
    "context, first",
    ("in C", JsonLinesContext(record_type=TripRow), {"id": 1, "name": "a", "price": 2.5}),
    ("by Arrow", JsonLinesContext(record_type=TripRow), {"id": 1, "name": 'a"', "price": 2.5}),
    ("with types and a condition", JsonLinesContext(types={"id": "int64"}, where=value.field("id") > 0), {"id": 1}),
    ("by Python", JsonLinesContext(record_type=Tagged), {"id": 1, "of": {"a": 1}}),
)
@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "not compiled"])
def test_values_of_fields_that_the_type_does_not_name_are_counted_by_window_and_named(
    context, first, compiled, tmp_path, monkeypatch
):
    if not compiled:
        monkeypatch.setattr("dagkit_operators.native.json_members.json_members", lambda: None)
    rows = [{**first, "city": "Rome", "zip": None}, {**first, "zip": [{"city": 1}]}, first]
    block = block_of(tmp_path, "".join(json.dumps(row) + "\n" for row in rows).encode())
    chosen = context.model_copy(update={"columns": ("id",), "record_type": None})
    for reads, ignored in ((context, (3, 2, "city, zip")), (chosen, (3, 0, ""))):
        reader = Alone(JsonLinesReader(reader_context=reads))
        reader.work(block)
        assert (len(reader.sent()), reader.metrics["fields_ignored"], reader.metrics["names_ignored"]) == ignored


class Narrow(BaseModel):
    """A trip whose other fields are left out on purpose."""

    model_config = ConfigDict(extra="ignore")
    id: int
    name: str
    price: float | None


@pytest.mark.parametrize(
    ("context", "reader", "content"),
    [
        (CsvContext(record_type=Trip), CsvReader, b"city,id,name,price,zip\n,1,a,2.5,7\nRome,2,b,3.5,\n"),
        (CsvContext(record_type=TripRow), CsvReader, b"city;id;name;price;zip\n;1;a;2.5;7\n;2;b;3.5;\n"),
        (ParquetContext(record_type=Trip), ParquetReader, pa_parquet.write_table),
        (AvroReaderContext(record_type=Trip), AvroReader, fastavro.writer),
    ],
    ids=["CSV", "CSV with another separator", "Parquet", "Avro"],
)
def test_columns_that_the_type_does_not_name_are_counted_by_the_rows_of_their_file(context, reader, content, tmp_path):
    rows = [{"city": None, "id": 1, "name": "a", "price": 2.5, "zip": "7"}, {"id": 2, "name": "b", "price": 3.5}]
    path = tmp_path / "a"
    if isinstance(content, bytes):
        path.write_bytes(content)
        context = context.model_copy(update={"separator": content.decode()[4]})
    elif content is fastavro.writer:
        fields = [{"name": name, "type": ["null", "string"]} for name in ("city", "zip")]
        own = {"id": "long", "name": "string", "price": "double"}
        fields += [{"name": name, "type": kind} for name, kind in own.items()]
        with path.open("wb") as sink:
            fastavro.writer(sink, {"type": "record", "name": "trip", "fields": fields}, rows)
    else:
        pa_parquet.write_table(pa.Table.from_pylist(rows), path, row_group_size=1)
    block = Block(0, str(path), 0, path.stat().st_size, facts={"length": path.stat().st_size})
    alone = Alone(reader(reader_context=context))
    alone.work(block)
    assert [one["id"] if isinstance(one, dict) else one.id for one in values(alone)] == [1, 2]
    assert (alone.metrics["fields_ignored"], alone.metrics["names_ignored"]) == (4, "city, zip")
    ways = [{"columns": ("id", "name", "price")}, {"record_type": None}, {"record_type": Narrow}]
    for chosen in (*ways, {"where": value.field("zip") != "a"}):
        alone = Alone(reader(reader_context=context.model_copy(update=chosen)))
        alone.work(block)
        assert alone.metrics["fields_ignored"] == (2 if "where" in chosen else 0)


def test_rows_for_which_the_condition_does_not_hold_are_counted_as_dropped(tmp_path):
    rows, where = [{"id": number} for number in range(6)], value.field("id") > 3
    sink = io.BytesIO()
    pa_parquet.write_table(pa.Table.from_pylist(rows), sink, row_group_size=2)  # statistics exclude the first group
    other = io.BytesIO()
    fastavro.writer(other, {"type": "record", "name": "row", "fields": [{"name": "id", "type": "long"}]}, rows)
    for context, file in ((ParquetContext(where=where), sink), (AvroReaderContext(where=where), other)):
        alone = Alone(reader_of(context))
        alone.work(block_of(tmp_path, file.getvalue()))
        assert (len(alone.sent()), alone.metrics["records_dropped"]) == (2, 4)


@dataclass
class Town:
    name: str
    part_of: "Town | None" = None


@dataclass
class Ride:
    id: int
    start: Town
    stops: list[Town] | None = None


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "not compiled"])
def test_fields_of_records_within_records_that_no_type_names_are_counted_with_their_paths(
    compiled, tmp_path, monkeypatch
):
    if not compiled:
        monkeypatch.setattr("dagkit_operators.native.json_members.json_members", lambda: None)
    rome = {"name": "Rome", "zip": 1, "mayor": None}
    rows = [
        {"id": 1, "start": rome, "stops": [rome, {"name": "Ostia"}], "fare": 2},
        {"id": 2, "start": {"name": "Rome", "part_of": {"name": "Italy", "code": "it"}}},
    ]
    reader = Alone(JsonLinesReader(reader_context=JsonLinesContext(record_type=Ride)))
    reader.work(block_of(tmp_path, "".join(json.dumps(row) + "\n" for row in rows).encode()))
    assert [record.value.start.name for record in reader.sent()] == ["Rome", "Rome"]
    names = {*reader.metrics["names_ignored"].split(", ")}
    assert (reader.metrics["fields_ignored"], names) == (3, {"fare", "start.zip", "stops.zip"})


@dataclass
class Stay:
    day: date | None
    others: list[date]


def test_dates_of_json_lines_are_read_and_others_rejected(tmp_path):
    lines = [
        '{"day": "2026-11-27", "others": ["2026-01-01", "2026-02-28"]}',
        '{"day": "2026-02-30", "others": []}',
        '{"day": null, "others": []}',
        '{"day": 20000, "others": []}',
        '{"others": []}',
    ]
    content = "".join(f"{line}\n" for line in lines).encode()
    records, rejected = read(JsonLinesContext(record_type=Stay), content, tmp_path)
    assert records == [Stay(date(2026, 11, 27), [date(2026, 1, 1), date(2026, 2, 28)]), Stay(None, []), Stay(None, [])]
    assert [start for start, _ in rejected] == [content.index(lines[1].encode()), content.index(lines[3].encode())]
    assert "2026-02-30" in rejected[0][1]


@dataclass
class City:
    name: str
    people: int | None


@dataclass
class Country:
    capital: City
    cities: list[City] | None
    area: float | None = 1.0


def test_a_missing_value_of_a_json_record_within_another_is_none_if_its_field_may_be_none(tmp_path):
    content = b'{"capital": {"name": "Rome"}}\n{"capital": {"people": 7}}\n'
    records, ((_, reason),) = read(JsonLinesContext(record_type=Country), content, tmp_path)
    assert (records, reason) == ([Country(City("Rome", None), None, 1.0)], "capital.name: Field required")


def rows_of(text):
    """The rows of CSV text whose rows end with newlines."""
    rows, row, place = [], "", "begin"
    for character in text:
        row += character
        if place == "quoted":
            place = "closed" if character == '"' else "quoted"
        elif character == '"' and place in ("begin", "closed"):
            place = "quoted"
        else:
            place = "begin" if character in ",\r\n" else "value"
            if character == "\n":
                rows.append(row)
                row = ""
    return [*rows, row] if row else rows


def parsed(row):
    """The values of a row, as Python reads it."""
    return [values for values in csv.reader(io.StringIO(row, newline="")) if values]


LINE_END = "a carriage return or newline is within a value"


@settings(max_examples=examples(200))
@given(st.text('a,"\r\n', max_size=24), st.integers(1, 30), st.sampled_from([1, 5, 1 << 20]))
def test_no_record_is_made_of_a_part_of_a_row(tmp_path_factory, text, edge, chunk_size):
    folder, context = tmp_path_factory.mktemp("csv"), CsvContext(header=False, columns=("x", "y"))
    text = "a,a\n" + text
    edges = [edge] if edge < len(text) else []
    records, rejected = read(context, text.encode(), folder, *edges, chunk_size=chunk_size)
    start, refused, wanted = 0, [place for place, _ in rejected], []
    for row in rows_of(text):
        has_other_end = "\r" in '"'.join(row.rstrip("\r\n").split('"')[::2])
        if start in refused:
            refused.remove(start)
        else:
            assert not has_other_end
            wanted += parsed(row)
        start += len(row)
    assert refused == []
    assert [[record["x"], record["y"]] for record in records] == wanted


@pytest.mark.parametrize("quoted_newlines", [False, True])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1252"])
@pytest.mark.parametrize("size", [1, 5, 1 << 20])
def test_rows_may_end_with_carriage_returns_alone(size, encoding, quoted_newlines, tmp_path):
    content = 'id,name\r1,a\r\r2,"b"\r3,c'.encode(encoding)
    context = CsvContext(types={"id": "int64"}, quoted_newlines=quoted_newlines, encoding=encoding)
    rows = [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}, {"id": 3, "name": "c"}]
    edges = range(size, len(content), size)
    assert read(context, content, tmp_path, *edges, chunk_size=size) == (rows, [])


@cases(
    "content, rows, places",
    ("a quote after it", b'x,y\n1,2\r"a\n3,4\nb",5\n6,7\n', [("6", "7")], [4]),
    ("two rows of other readers", b"x,y\n1,2\r3,4\n5,6\n", [("5", "6")], [4]),
    ("quoted newlines", b'x,y\r1,"a\nb"\r3,4\r', [("1", "a\nb"), ("3", "4")], []),
    ("several at the end", b"x,y\n1,2\r\r\n3,4\r\n", [("1", "2"), ("3", "4")], []),
)
def test_a_line_end_other_than_that_of_the_rows_rejects_its_row_whole(content, rows, places, tmp_path):
    records, rejected = read(CsvContext(), content, tmp_path)
    assert [(row["x"], row["y"]) for row in records] == rows
    assert [place for place, _ in rejected] == places
    assert all(LINE_END in reason for _, reason in rejected)


def test_a_newline_far_behind_the_beginning_ends_no_row_of_a_file_that_ends_them_with_carriage_returns(tmp_path):
    before = b"x,y\r" + b"1,2\r" * (1 << 18)
    records, rejected = read(CsvContext(), before + b"3\n4,5\r6,7\r", tmp_path)
    assert (len(records), records[-1]) == ((1 << 18) + 1, {"x": "6", "y": "7"})
    assert [(place, LINE_END in reason) for place, reason in rejected] == [(len(before), True)]


@pytest.mark.parametrize("kind", CONTENTS)
@pytest.mark.parametrize("record_type", [Trip, TripTuple])
def test_a_writer_of_columns_takes_the_type_of_the_reader_context(kind, record_type, tmp_path):
    found = {"items": Items([str(tmp_path / "in")]), "match": MatchFiles()}
    read = ReadFiles(reader_context=kind(record_type=record_type))
    draw = chain(**found, read=read, write=ParquetPartWriter(tmp_path / "out"))
    old_file(tmp_path / "in", CONTENTS[kind])
    launch(draw, until="once", machine=Machine("reference"), path=tmp_path / "app", durable=False)
    assert pa_parquet.read_table(tmp_path / "out").to_pylist() == [vars(trip) for trip in TRIPS]


@pytest.mark.parametrize(
    ("context", "sent"),
    [
        (CsvContext(record_type=Trip), Record[Trip]),
        (CsvContext(record_type=Trip, sends="batches"), Record[Any]),
        (JsonLinesContext(), Record[Any]),
        (ReadAheadLineReaderContext(), Record[str]),
    ],
)
def test_a_reader_of_blocks_sends_the_type_of_its_context(context, sent):
    assert BlockReader(reader_context=context).sent_payload("messages", {}) == sent


ROWS = [{"n": n, "name": name, "in": {"m": n}} for n in (None, 1, 6) for name in (None, "", "Ärger")]
N, M, NAME = value.field("n"), value.field("in").field("m"), value.field("name")
TESTS = [
    *(compare(field, 5) for compare in (op.lt, op.le, op.gt, op.ge, op.eq, op.ne) for field in (N, M)),
    *(NAME.starts_with("Ä"), NAME.ends_with("r"), NAME.contains("rg"), NAME.matches(".*ger"), NAME == "", NAME != ""),
    *(NAME.length() > 1, NAME.upper() == "ÄRGER", NAME.strip().lower().starts_with("ä"), N == None, N < M, N > None),  # noqa: E711
]


@pytest.mark.parametrize("test", TESTS, ids=repr)
def test_a_filter_and_a_reader_treat_a_missing_value_alike(test):
    schema = pa.schema({"n": pa.int64(), "name": pa.string(), "in": pa.struct({"m": pa.int64()})})
    batch = pa.RecordBatch.from_pylist(ROWS, schema)
    for where in (test, ~test, test & (NAME != "x"), ~test | (N > 1)):
        filtered = Alone(Filter(where))
        filtered.send(*ROWS)
        assert filtered.sent() == selected(where, batch).to_pylist()
    if test.operation != "!=" and "None" not in repr(test):
        assert not test({"n": None, "name": None, "in": {"m": None}})
        assert not test({"n": None, "name": None, "in": None})


def test_a_value_of_another_type_than_the_test_is_still_an_error():
    for test, item in ((N > 5, {"n": "6"}), (NAME.starts_with("a"), {"name": 1}), (NAME.length() > 1, {"name": 1})):
        with pytest.raises((TypeError, AttributeError)):
            test(item)
