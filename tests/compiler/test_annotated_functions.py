"""The compiler knows what `Map` and `FlatMap` send if their function is annotated."""

from collections.abc import Iterator
from functools import partial

import pytest

from dagkit_operators import FileSplitterInput, FlatMap, Items, LineReader, Map, Record, SumByKey
from tests.compiler.cast import codes, compiled
from tests.compiler.sketches import in_a_row


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


@pytest.mark.parametrize(
    ("function", "refused"),
    [
        (Map(pair), False),
        (Map(partial(pair, count=2)), False),
        (Map(Pairing()), False),
        (Map(Pairing().method), False),
        (Map(length), True),
        (Map(int), True),
        (Map(lambda word: (word, 1)), False),
        (Map(len), False),
        (Map(of_a_type_that_is_not_there), False),
        (Map[str, tuple[str, int]](length), False),
        (FlatMap(pairs), False),
        (FlatMap(words), True),
        (FlatMap(length), False),
    ],
)
def test_what_sends_no_pairs_is_refused_if_its_function_says_so_and_its_author_nothing_else(function, refused):
    assert codes(in_a_row(Items[str](items=["a b"]), function, SumByKey())) == ["port-type-mismatch"] * refused


def _reading(*operators):
    return in_a_row(FileSplitterInput(scanner={"files": ["in"]}), LineReader(), *operators)


def test_the_value_of_a_record_gets_the_type_and_a_field_does_not():
    *_, made, of_a_field = compiled(_reading(Map(length), Map(length, on="block_id"))).graph.nodes
    assert [node.payload(node.output_ports["output"]) for node in (made, of_a_field)] == [Record[int]] * 2


@pytest.mark.parametrize(("function", "refused"), [(lambda word: (word, 1), False), (pair, False), (length, True)])
def test_the_value_of_a_record_may_be_named(function, refused):
    assert codes(_reading(Map(function, on="value"), SumByKey())) == ["port-type-mismatch"] * refused
