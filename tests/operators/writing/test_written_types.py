"""A writer without a format is refused if the items of its stream can be neither text nor bytes."""

from dataclasses import dataclass
from typing import Any

import pytest

from dagkit import Dag, InputPort, Operator, OutputPort
from dagkit.compiler import compile_application
from dagkit.errors import ApplicationFaults
from dagkit_operators import CountByKey, Items, Map, PartWriter, Record, SumByKey
from dagkit_operators.writing.content import may_be_text


@dataclass(frozen=True)
class Order:
    number: int


@pytest.mark.parametrize(
    "payload",
    [str, bytes, Any, object, Record[str], Record[bytes], Record[Any], str | None, int | bytes, Map.output.payload],
)
def test_what_may_be_text_is_accepted(payload):
    assert may_be_text(payload)


@pytest.mark.parametrize(
    "payload", [int, tuple[str, int], Order, Record[Order], Record[int], int | float, dict[str, Any]]
)
def test_what_cannot_be_text_is_not(payload):
    assert not may_be_text(payload)


class Pairs(Operator):
    """Sends pairs."""

    input = InputPort(str)
    pairs = OutputPort[tuple[str, int]]()

    def process(self, item: str) -> None:
        self.pairs.emit((item, 1))


def counted(writer: PartWriter[Any]) -> Any:
    def populate_dag(dag: Dag, conf: object) -> None:
        items = dag.add_operator("Items", Items[str](items=("a", "b")))
        pairs, sums = dag.add_operator("Pairs", Pairs()), dag.add_operator("Sums", SumByKey())
        items >> pairs >> sums
        sums.totals >> dag.add_operator("Write", writer)

    return populate_dag


def test_pairs_need_a_format():
    with pytest.raises(ApplicationFaults) as raised:
        compile_application(counted(PartWriter(file_path="out")))
    (fault,) = raised.value.diagnostics
    assert fault.code == "port-type-mismatch"
    assert fault.problem.endswith("joins Sums.totals (tuple[str, int]) to Write.input, which cannot take that")
    assert fault.help == "set format to a function that makes text or bytes of an item"
    compile_application(counted(PartWriter(file_path="out", format=str)))


def test_counts_need_a_format():
    def populate_dag(dag: Dag, conf: object) -> None:
        count = dag.add_operator("Count", CountByKey())
        dag.add_operator("Items", Items[str](items=("a", "b"))) >> count
        count >> dag.add_operator("Write", PartWriter(file_path="out"))

    with pytest.raises(ApplicationFaults, match="set format to a function"):
        compile_application(populate_dag)
