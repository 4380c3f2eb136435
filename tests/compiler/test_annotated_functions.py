"""The compiler knows what `Map` and `FlatMap` send if their function is annotated."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from dagkit import Dag, Operator
from dagkit.compiler import compile_application
from dagkit.errors import ApplicationFaults
from dagkit.graph import Graph
from dagkit_operators import FileSplitterInput, FlatMap, Items, LineReader, Map, Record, SumByKey


class Pairing:
    """A callable object."""

    def __call__(self, word: str) -> tuple[str, int]:
        return word, 1

    def method(self, word: str) -> tuple[str, int]:
        return word, 1


def pair(word: str, count: int = 1) -> tuple[str, int]:
    return word, count


def length(word: str) -> int:
    return len(word)


def words(line: str) -> Iterator[str]:
    yield from line.split()


def pairs(line: str) -> list[tuple[str, int]]:
    return [(word, 1) for word in line.split()]


def of_a_type_that_is_not_there(line: str) -> "Absent":  # noqa: F821
    return line


def over_items(*operators: Operator) -> Callable[[Dag, object], None]:
    def draw(dag: Dag, conf: object) -> None:
        stream: Any = dag.add_operator("Items", Items[str](items=["a b"]))
        for number, operator in enumerate(operators):
            stream = stream >> dag.add_operator(f"{number}", operator)

    return draw


def codes(draw: Callable[[Dag, object], None]) -> list[str]:
    try:
        compile_application(draw)
    except ApplicationFaults as faults:
        return list(faults.codes)
    return []


@pytest.mark.parametrize(
    ("function", "refused"),
    [
        (pair, False),
        (partial(pair, count=2), False),
        (Pairing(), False),
        (Pairing().method, False),
        (length, True),
        (int, True),
        (lambda word: (word, 1), False),
        (len, False),
        (of_a_type_that_is_not_there, False),
    ],
)
def test_a_map_that_sends_no_pairs_is_refused_if_its_function_says_so(function, refused):
    assert codes(over_items(Map(function), SumByKey())) == (["port-type-mismatch"] if refused else [])


@pytest.mark.parametrize(("function", "refused"), [(pairs, False), (words, True), (length, False)])
def test_a_flat_map_sends_the_elements_of_what_its_function_returns(function, refused):
    assert codes(over_items(FlatMap(function), SumByKey())) == (["port-type-mismatch"] if refused else [])


def test_what_the_author_wrote_takes_precedence():
    assert codes(over_items(Map[str, tuple[str, int]](length), SumByKey())) == []


def sent(graph: Graph, name: str) -> Any:
    node = graph.by_name[name]
    return node.payload(node.output_ports["output"])


def test_the_value_of_a_record_gets_the_type_and_a_field_does_not():
    def draw(dag: Dag, conf: object) -> None:
        splitter = dag.add_operator("Splitter", FileSplitterInput(scanner={"files": ["in"]}))
        reader = splitter >> dag.add_operator("Reader", LineReader())
        made = reader >> dag.add_operator("Made", Map(length))
        made >> dag.add_operator("Of a field", Map(length, on="block_id"))

    graph = compile_application(draw).graph
    assert sent(graph, "Made") == Record[int]
    assert sent(graph, "Of a field") == Record[int]


@pytest.mark.parametrize(("function", "refused"), [(lambda word: (word, 1), False), (pair, False), (length, True)])
def test_the_value_of_a_record_may_be_named(function, refused):
    def draw(dag: Dag, conf: object) -> None:
        splitter = dag.add_operator("Splitter", FileSplitterInput(scanner={"files": ["in"]}))
        reader = splitter >> dag.add_operator("Reader", LineReader())
        reader >> dag.add_operator("Made", Map(function, on="value")) >> dag.add_operator("Sums", SumByKey())

    assert codes(draw) == (["port-type-mismatch"] if refused else [])
