"""The kinds of operator: what each brings, which output is the main one, and where positions are bytes."""

from collections.abc import Iterator

import pytest

from dagkit import (
    Block,
    DelayOperator,
    InputOperator,
    InputPort,
    Operator,
    OutputPort,
    RowOperator,
    SplittableOperator,
    Unifier,
)
from dagkit.api.operators import main_outlet
from dagkit.api.ports import input_ports, output_ports
from dagkit.api.work import unit_of
from dagkit_operators import FileSplitterBase, KafkaReader, LineReader, ReadFiles, TailFiles
from tests.cases import cases


class Silent(Operator):
    pass


class Single(Operator):
    out = OutputPort(int)


class Several(Single):
    more = OutputPort(int)


class Marked(Single):
    more = OutputPort(int, main=True)


@cases(
    "operator, main",
    ("no output", Silent(), None),
    ("the only one", Single(), "out"),
    ("none of several", Several(), None),
    ("the one that is marked", Marked(), "more"),
)
def test_the_main_output(operator, main):
    outlet = main_outlet(operator)
    assert (outlet.port.name if outlet else None) == main


@pytest.mark.parametrize(
    ("kind", "inputs", "outputs"),
    [
        *((kind, [], []) for kind in (Operator, InputOperator, RowOperator)),
        *((DelayOperator, ["input"], ["output"]), (Unifier, ["parts"], ["unified"])),
    ],
)
def test_what_each_kind_brings(kind, inputs, outputs):
    assert (list(input_ports(kind)), list(output_ports(kind))) == (inputs, outputs)


def test_an_operator_that_is_a_function_must_have_one_and_may_be_partitioned_and_saved_at_any_time():
    for kind in (RowOperator, Unifier):
        with pytest.raises(TypeError, match="process"):
            type("Without", (kind,), {})()
    assert (Silent.partitionable, Silent.checkpointable_within_app_window, Silent.stateless) == (True, True, False)


def test_a_delay_has_nothing_to_hand_on_in_the_first_window_unless_it_says_so():
    class Seeded(DelayOperator[int]):
        input = InputPort(int)

        def first_window(self):
            yield 1

    assert (list(DelayOperator[int]().first_window()), list(Seeded().first_window())) == ([], [1])


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
