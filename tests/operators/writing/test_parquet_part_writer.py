"""Parquet files are whole with each window and hold every record once; which types of items writers take."""

import datetime as dt
import io
from dataclasses import dataclass
from typing import Any, TypedDict

import pyarrow as pa
import pyarrow.dataset as pa_dataset
import pyarrow.parquet as pa_parquet
import pytest
from pydantic import BaseModel

from dagkit import Config, Until
from dagkit.compiler import compile_application
from dagkit.engine.program.failures import OperatorFailed
from dagkit.engine.program.points import Point
from dagkit.errors import ApplicationFaults
from dagkit.testing import Alone, CrashAfter, FakeClock
from dagkit_operators import (
    AvroReader,
    CsvReader,
    DeltaWriter,
    FileSplitterInput,
    Filter,
    FinishedPart,
    Items,
    JsonLinesReader,
    LineReader,
    Map,
    ParquetPartWriter,
    ParquetReader,
    PartWriter,
    Record,
    SumByKey,
)
from dagkit_operators.writing import parquet_part_writer
from dagkit_operators.writing.content import may_be_text
from tests.engine.cast import Desk, chain
from tests.old_files import aged, old_file
from tests.operators.ways import after_windows


@dataclass(frozen=True)
class Fruit:
    name: str
    count: int | None


class FruitModel(BaseModel):
    name: str
    count: int | None


class FruitDict(TypedDict):
    name: str
    count: int | None


def writer(**properties):
    return ParquetPartWriter(file_path="output", file_name="{partition}.{number}", **properties)


def tables(at_work):
    return {name: pa_parquet.read_table(io.BytesIO(content)).to_pylist() for name, content in at_work.written().items()}


def values(at_work, column="count"):
    return {name: [row[column] for row in rows] for name, rows in tables(at_work).items()}


def finished(at_work):
    return at_work.files["files"].finished


@pytest.mark.parametrize("kind", [Fruit, FruitModel, FruitDict])
def test_the_fields_of_records_are_columns(kind):
    apple, pear = {"name": "apple", "count": 3}, {"name": "pear", "count": None}
    at_work = after_windows(writer(record_type=kind), [[kind(**apple), Record(0, kind(**pear))]])
    assert tables(at_work) == {"0.0": [apple, pear]}
    schema = pa_parquet.read_schema(io.BytesIO(at_work.written()["0.0"]))
    assert schema.field("name") == pa.field("name", pa.string(), nullable=False)
    assert schema.field("count") == pa.field("count", pa.int64())


def test_each_window_finishes_its_file_and_the_numbers_continue_after_a_restart():
    windows = [[Fruit("a", 1), Fruit("b", 1)], [], [Fruit("c", 1)]]
    at_work = after_windows(writer(record_type=Fruit), windows, restarts=True)
    assert values(at_work, "name") == {"0.0": ["a", "b"], "0.1": ["c"]}
    assert finished(at_work) == {"0.0", "0.1"}


def test_a_file_is_rolled_by_records_or_after_the_row_group_with_which_it_is_too_long():
    at_work = Alone(writer(record_type=Fruit, max_count=5, row_group_rows=2))
    with at_work.window():
        at_work.send_batch([Fruit(str(number), number) for number in range(12)])
    assert values(at_work) == {"0.0": [0, 1, 2, 3, 4], "0.1": [5, 6, 7, 8, 9], "0.2": [10, 11]}
    metadata = pa_parquet.read_metadata(io.BytesIO(at_work.written()["0.0"]))
    assert [metadata.row_group(index).num_rows for index in range(metadata.num_row_groups)] == [2, 2, 1]
    lengths = [len(content) for content in at_work.written().values()]
    parts = zip(("0.0", "0.1", "0.2"), lengths, (5, 5, 2), strict=True)
    assert at_work.sent("finished_parts") == [FinishedPart(*part) for part in parts]
    fruits = [Fruit("x", number) for number in range(7)]
    at_work = after_windows(writer(record_type=Fruit, max_length=10, row_group_rows=3), [fruits])
    assert [len(rows) for rows in tables(at_work).values()] == [3, 3, 1]


def test_an_application_window_of_several_streaming_windows_is_refused():
    draw = chain(numbers=Items(items=(1,)), write=writer(record_type=Fruit))
    with pytest.raises(ApplicationFaults, match="write cannot be saved inside an application window"):
        compile_application(draw, Config.of({"dt.operator.write.attr.APPLICATION_WINDOW_COUNT": 2}))


def test_arrow_batches_and_tables_keep_their_schema():
    numbers, texts = pa.record_batch({"n": [1, 2]}), pa.table({"t": ["a"]})
    at_work = after_windows(writer(), [[numbers, numbers, texts]])
    assert tables(at_work) == {"0.0": [{"n": 1}, {"n": 2}, {"n": 1}, {"n": 2}], "0.1": [{"t": "a"}]}


@pytest.mark.slow
def test_a_launch_makes_whole_files_of_items_and_of_columns_that_were_read(tmp_path):
    first, second = tmp_path / "first/out", tmp_path / "second/out"
    of_items = chain(
        numbers=Items(items=tuple(range(5))),
        made=Map(lambda number: Fruit(str(number), number or None)),
        write=ParquetPartWriter(file_path=first, record_type=Fruit, max_count=3),
    )
    of_columns = chain(
        splitter=FileSplitterInput(scanner={"files": [str(first)]}),
        reader=ParquetReader(reader_context={"record_type": Fruit}),
        write=ParquetPartWriter(file_path=second, record_type=Fruit),
    )
    for name, draw, files in (("first", of_items, 2), ("second", of_columns, 1)):
        desk = Desk(tmp_path / name, draw)
        desk.run()
        assert pa_parquet.read_table(desk.out).column("count").to_pylist() == [None, 1, 2, 3, 4]
        assert len(desk.outputs()) == files
        for path in desk.out.iterdir():
            aged(path)


@dataclass(frozen=True)
class Sale:
    city: str | None
    day: dt.date
    amount: int


def test_rows_lie_in_the_folders_of_their_values():
    day, next_day = dt.date(2024, 2, 29), dt.date(2024, 3, 1)
    sales = [Sale("Rome", day, 1), Sale("a/b=ü", day, 2), Sale(None, day, 3), Sale("Rome", next_day, 4)]
    sales.append(Sale("Rome", day, 5))
    at_work = after_windows(writer(record_type=Sale, partition_by=("city", "day")), [sales])
    assert tables(at_work) == {
        "city=Rome/day=2024-02-29/0.0": [{"amount": 1}, {"amount": 5}],
        "city=a%2Fb%3D%C3%BC/day=2024-02-29/0.1": [{"amount": 2}],
        "city=__HIVE_DEFAULT_PARTITION__/day=2024-02-29/0.2": [{"amount": 3}],
        "city=Rome/day=2024-03-01/0.3": [{"amount": 4}],
    }
    assert finished(at_work) == set(at_work.written())


def test_a_dataset_of_folders_is_read_with_its_values_and_each_row_is_there_once(tmp_path):
    sale = Map[int, Sale](lambda n: Sale(None if n % 4 == 3 else f"{n % 4}/", dt.date(2024, 1, 1 + n % 2), n))
    write = ParquetPartWriter(file_path="out", record_type=Sale, partition_by=("city", "day"), max_count=7)
    draw = chain(numbers=Items[int](items=tuple(range(40))), sales=sale, write=write)
    desk = Desk(tmp_path, draw, until=Until.IDLE, clock=FakeClock())
    desk.crash(CrashAfter(Point.STAGED, 1), CrashAfter(Point.APPENDED, 1), CrashAfter(Point.HALF_FINISHED, 1))
    desk.run()
    found = pa_dataset.dataset(desk.out, partitioning="hive", exclude_invalid_files=False).to_table().to_pylist()
    assert sorted((row["amount"], row["city"], row["day"]) for row in found) == [
        (n, None if n % 4 == 3 else f"{n % 4}/", f"2024-01-0{1 + n % 2}") for n in range(40)
    ]


def test_more_folders_than_files_may_be_open_are_written_in_turn(monkeypatch):
    monkeypatch.setattr(parquet_part_writer, "_MOST_OPEN", 2)
    at_work = Alone(writer(record_type=Fruit, partition_by=("name",), row_group_rows=1))
    with at_work.window():
        at_work.send(*(Fruit(name, number) for number, name in enumerate("abcab")))
        assert len(at_work.operator._parts) == 2
    assert values(at_work) == {f"name={name}/0.{number}": [number] for number, name in enumerate("abcab")}


@pytest.mark.parametrize("name", ["", "__HIVE_DEFAULT_PARTITION__"])
def test_a_value_that_readers_would_take_for_none_is_refused(name):
    with pytest.raises(ValueError, match=f"the value '{name}' of name cannot be part of the name of a folder"):
        after_windows(writer(record_type=Fruit, partition_by=("name",)), [[Fruit(name, 1)]])


@pytest.mark.parametrize(
    ("partition_by", "problem"),
    [(("colour",), "records have no field colour; they have name, count"), (("name", "count"), "names all fields")],
)
def test_the_columns_of_folders_are_checked_when_the_application_is_compiled(partition_by, problem):
    (fault,) = writer(record_type=Fruit, partition_by=partition_by).faults
    assert problem in fault.message


def named(text: str) -> Fruit:
    return Fruit(text, 1)


def test_a_line_that_is_not_utf8_is_reported_with_its_file_byte_column_and_remedy(tmp_path):
    finders = {"find": FileSplitterInput(tmp_path / "in"), "read": LineReader()}
    draw = chain(**finders, fruits=Map(named), write=ParquetPartWriter(tmp_path / "out"))
    old_file(tmp_path / "in/names.txt", "pear\npêche\n".encode("latin-1"))
    with pytest.raises(OperatorFailed) as raised:
        Desk(tmp_path, draw).run()
    failure = raised.value
    assert failure.code == "text-undecodable"
    assert (failure.scene.position, failure.failure.traceback) == (5, "")
    assert "in/names.txt, byte 5" in failure.problem
    assert r"the column name cannot hold 'p\udceache', which has bytes that are not UTF-8" in failure.problem
    assert failure.help is not None
    assert 'undecodable="reject"' in failure.help


def test_a_value_of_another_type_is_reported_with_its_column_and_record():
    at_work = Alone(writer(record_type=Fruit))
    problem = r"the column count is of type int64, and cannot hold that of Fruit\(name='pear', count='two'\)"
    with pytest.raises(TypeError, match=problem), at_work.window():
        at_work.send(Fruit("apple", 1), Fruit("pear", "two"))


@dataclass
class Town:
    name: str
    people: int | None


class Land(BaseModel):
    capital: Town | None
    towns: list[Town]


class Chained(TypedDict):
    next: "Chained | None"


def test_records_within_records_are_columns_of_structs():
    lands = Alone(writer(record_type=Land))
    with lands.window():
        lands.send(Land(capital=Town("Rome", 3), towns=[Town("Bari", None)]), Land(capital=None, towns=[]))
    (content,) = lands.written().values()
    assert pa_parquet.read_table(io.BytesIO(content)).to_pylist() == [
        {"capital": {"name": "Rome", "people": 3}, "towns": [{"name": "Bari", "people": None}]},
        {"capital": None, "towns": []},
    ]


def test_a_record_that_contains_its_own_type_is_refused():
    (fault,) = writer(record_type=Chained).faults
    assert "the field next has a type without an Arrow column: " in fault.message


@dataclass(frozen=True)
class Order:
    number: int


@dataclass(frozen=True)
class Line:
    number: int
    text: str | None = None


@dataclass(frozen=True)
class Odd:
    thing: object


TEXTS = [str, bytes, Any, object, Record[str], Record[bytes], Record[Any], str | None, int | bytes, Map.output.payload]
OTHERS = [int, tuple[str, int], Order, Record[Order], Record[int], int | float, dict[str, Any]]


@pytest.mark.parametrize("payload", TEXTS + OTHERS)
def test_what_may_be_text_is_accepted(payload):
    assert may_be_text(payload) == (payload in TEXTS)


LETTERS = Items[str](items=("a", "b"))


def test_pairs_need_a_format():
    pairs = {"Items": LETTERS, "Pairs": Map[str, tuple[str, int]](lambda text: (text, 1)), "Sums": SumByKey()}
    with pytest.raises(ApplicationFaults) as raised:
        compile_application(chain(**pairs, Write=PartWriter(file_path="out")))
    (fault,) = raised.value.diagnostics
    assert fault.code == "port-type-mismatch"
    assert fault.problem.endswith("joins Sums.totals (tuple[str, int]) to Write.input, which cannot take that")
    assert fault.help == "set format to a function that makes text or bytes of an item"
    compile_application(chain(**pairs, Write=PartWriter(file_path="out", format=str)))


def written(writer, *, of=None, on_the_way=()):
    """The compiled application of a writer of columns behind items of a type."""

    def populate_dag(dag, conf):
        stream = dag.add_operator("Items", Items[of or int](items=()))
        for number, operator in enumerate(on_the_way):
            stream = stream >> dag.add_operator(f"Step {number}", operator)
        stream >> dag.add_operator("Write", writer)

    return compile_application(populate_dag).graph.by_name["Write"].operator


def order(number: int) -> Order:
    return Order(number)


PARQUET = ParquetPartWriter(file_path="out")


@pytest.mark.parametrize(
    ("of", "on_the_way", "writer", "columns"),
    [
        (Order, (), PARQUET, Order),
        (Record[Order], (), PARQUET, Order),
        (int, (Map(order),), PARQUET, Order),
        (int, (Map(lambda number: Order(number + 1)),), ParquetPartWriter[Order](file_path="out"), Order),
        (Order, (), DeltaWriter(uri="orders"), Order),
        (Order, (), ParquetPartWriter(file_path="out", record_type=Line), Line),
        *((of, (), PARQUET, None) for of in (pa.Table, pa.RecordBatch, Any)),
    ],
    ids=[
        *("items", "values of records", "what a function returns", "what the author wrote", "rows of a table"),
        *("what is set", "a table", "batches", "unknown items"),
    ],
)
def test_the_fields_of_the_items_are_the_columns_of_a_writer_without_a_record_type(of, on_the_way, writer, columns):
    assert written(writer, of=of, on_the_way=on_the_way).record_type is columns


@pytest.mark.parametrize("of", [str, dict[str, Any], Record[str]])
def test_items_without_fields_need_a_record_type(of):
    with pytest.raises(ApplicationFaults) as raised:
        written(PARQUET, of=of)
    (fault,) = raised.value.diagnostics
    assert fault.code == "port-type-mismatch"
    assert "has no fields that could be columns: set record_type to a class that has" in fault.help


def test_a_field_of_the_stream_without_a_column_is_a_fault_of_the_writer():
    with pytest.raises(ApplicationFaults, match="the field thing has a type without an Arrow column"):
        written(PARQUET, of=Odd)


def test_a_long_value_in_a_message_ends_in_an_ellipsis():
    at_work = Alone(ParquetPartWriter(file_path="out"))
    with pytest.raises(TypeError, match=r"^'x{58}… is no Arrow record batch or table; set record_type"):
        at_work.send("x" * 100)


@pytest.mark.parametrize("reader", [CsvReader, JsonLinesReader, ParquetReader, AvroReader])
def test_a_reader_of_records_sends_the_type_of_its_context(reader):
    read = reader(reader_context={"record_type": Order})
    draw = chain(Find=FileSplitterInput("in"), Read=read, Keep=Filter(bool), Write=ParquetPartWriter("out"))
    graph = compile_application(draw).graph
    assert graph.by_name["Write"].operator.record_type is Order
