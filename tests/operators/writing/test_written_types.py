"""A writer without a format is refused if the items of its stream can be neither text nor bytes."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from dagkit.compiler import compile_application
from dagkit.errors import ApplicationFaults
from dagkit.testing import Alone
from dagkit_operators import (
    AvroReader,
    CsvReader,
    DeltaWriter,
    FileSplitterInput,
    Filter,
    Items,
    JsonLinesReader,
    Map,
    ParquetPartWriter,
    ParquetReader,
    PartWriter,
    Record,
    SumByKey,
)
from dagkit_operators.writing.content import may_be_text
from tests.operators.ways import chain


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
    def populate_dag(dag, conf):
        find = dag.add_operator("Find", FileSplitterInput(scanner={"files": ["in"]}))
        read = dag.add_operator("Read", reader(reader_context={"record_type": Order}))
        find.blocks_metadata_output >> read
        kept = read.messages >> dag.add_operator("Keep", Filter(bool))
        kept >> dag.add_operator("Write", ParquetPartWriter(file_path="out"))

    graph = compile_application(populate_dag).graph
    assert graph.by_name["Write"].operator.record_type is Order


@pytest.mark.parametrize("context", [{}, {"record_type": Order, "sends": "batches"}])
def test_a_reader_without_a_type_or_with_batches_sends_what_is_not_known(context):
    def populate_dag(dag, conf):
        find = dag.add_operator("Find", FileSplitterInput(scanner={"files": ["in"]}))
        read = dag.add_operator("Read", CsvReader(reader_context=context))
        find.blocks_metadata_output >> read
        read.messages >> dag.add_operator("Write", ParquetPartWriter(file_path="out"))

    plan = compile_application(populate_dag).plan
    assert {stream.payload for stream in plan.streams} == {"Block", "Record[Any]"}
