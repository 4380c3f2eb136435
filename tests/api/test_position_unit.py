"""Positions are counted as bytes only where they are bytes."""

from collections.abc import Iterator

import pytest

from dagkit import Block, InputPort, Operator, SplittableOperator
from dagkit.api.work import unit_of
from dagkit_operators import FileSplitterBase, KafkaReader, LineReader, ReadFiles, TailFiles


class Numbers(SplittableOperator[int]):
    numbers = InputPort(int)

    def process(self, element, tracker) -> Iterator[int]:
        yield from ()


class Blocks(SplittableOperator[Block]):
    side = InputPort(str)
    blocks = InputPort(Block, main=True)

    def process(self, element, tracker) -> Iterator[int]:
        yield from ()


class Pages(Numbers):
    position_unit = "page"


class Plain(Operator):
    """Reads no positions."""


@pytest.mark.parametrize(
    ("operator", "unit"),
    [
        (Numbers(), "position"),
        (Blocks(), "byte"),
        (Pages(), "page"),
        (Plain(), "byte"),
        (LineReader(), "byte"),
        (ReadFiles(), "byte"),
        (TailFiles(), "byte"),
        (FileSplitterBase(), "byte"),
        (KafkaReader(), "offset"),
    ],
    ids=lambda given: given if isinstance(given, str) else type(given).__name__,
)
def test_the_unit_of_positions(operator, unit):
    assert unit_of(operator) == unit
