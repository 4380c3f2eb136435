"""What is sent can be read: the law over whole graphs, with what generic operators come to carry."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

import pytest

from dagkit import DelayOperator, InputOperator, InputPort, Operator, OutputPort
from dagkit_operators import FileSplitterInput, FlatMap, Items, LineReader, Map, Record, SumByKey
from tests.cases import cases
from tests.compiler.cast import (
    Animal,
    Cat,
    Count,
    Dog,
    Keep,
    Line,
    Lines,
    Split,
    Word,
    codes,
    compiled,
    faults,
    problems,
)
from tests.compiler.sketches import in_a_row, sketch

T = TypeVar("T")
Pet = TypeVar("Pet", bound=Animal)


def _joined(sent, read):
    class Sender(InputOperator):
        out = OutputPort(sent)

    class Reader(Operator):
        input = InputPort(read)

    return sketch("sender>reader", sender=Sender, reader=Reader)


@pytest.mark.parametrize(
    ("sent", "read", "told"),
    [
        (Dog, Dog | None, None),
        (Animal, Dog, "(Animal) to reader.input (Dog)"),
        (int | str, int, "(int | str) to reader.input (int)"),
        (list[Cat], list[Dog], "(list[Cat]) to reader.input (list[Dog])"),
    ],
)
def test_what_does_not_fit_is_reported_in_the_authors_types(sent, read, told):
    found = [(fault.code, fault.problem) for fault in faults(_joined(sent, read))]
    assert found == ([("port-type-mismatch", f"stream 'sender' joins sender.out {told}")] if told else [])


class BothOut(InputOperator):
    words = OutputPort(Word)
    lines = OutputPort(Line)


class BothIn(Operator):
    lines = InputPort(Line)
    words = InputPort(Word, optional=True)


def test_the_help_names_the_port_that_would_fit():
    put = "put an operator that turns Word into Line between them, or connect"
    (fault,) = faults(sketch("both>split", both=BothOut, split=Split))
    assert fault.problem == "stream 'both' joins both.words (Word) to split.lines (Line)"
    assert fault.help == f"{put} both.lines"
    (fault,) = faults(sketch("lines>split split>both", lines=Lines, split=Split, both=BothIn))
    assert fault.help == f"{put} it to both.words"


class Pets(InputOperator):
    dogs = OutputPort(Dog)
    numbers = OutputPort(int)
    boxed = OutputPort(list[Dog])


class Tame(Operator, Generic[Pet]):
    input = InputPort[Pet]()
    output = OutputPort[Pet]()


class Unbox(Operator, Generic[T]):
    input = InputPort[Sequence[T]]()
    output = OutputPort[T]()


class KeepDogs(Keep[Dog]):
    """What the class says between brackets holds for its operators."""


class KeepTame(Keep[Pet], Generic[Pet]):
    """A generic operator from another one, with a variable of its own."""


class Cats(Operator):
    input = InputPort(Cat)


_DOGS_OUT = ["stream 'keep' joins keep.output (Dog) to cats.input (Cat)"]


@cases(
    "outlet, keeper, expected",
    ("a generic operator carries what flows in", "dogs", Keep(), _DOGS_OUT),
    ("or what its author wrote between brackets", "dogs", Keep[Dog](), _DOGS_OUT),
    ("or what its class did", "dogs", KeepDogs(), _DOGS_OUT),
    (
        "also by a variable of a subclass",
        "dogs",
        KeepTame[Animal](),
        ["stream 'keep' joins keep.output (Animal) to cats.input (Cat)"],
    ),
    ("which must fit", "dogs", Keep[Cat](), ["stream 'pets dogs' joins pets.dogs (Dog) to keep.input (Cat)"]),
    ("and may be wider", "dogs", Keep[Animal](), ["stream 'keep' joins keep.output (Animal) to cats.input (Cat)"]),
    ("a bound is kept to", "numbers", Tame(), ["stream 'pets numbers' joins pets.numbers (int) to keep.input (Pet)"]),
    ("what keeps to the bound is carried", "dogs", Tame(), _DOGS_OUT),
    ("an item is unpacked from what holds it", "boxed", Unbox(), _DOGS_OUT),
    ("anything carries anything", "dogs", Keep[Any](), []),
)
def test_what_a_generic_operator_carries(outlet, keeper, expected):
    """Pets go through a keeper to cats: the fault says what the keeper was taken to carry."""
    assert problems(sketch(f"pets.{outlet}>keep keep>cats", pets=Pets, keep=keeper, cats=Cats)) == expected


def test_the_plan_says_what_flows():
    dag = sketch("lines>keep keep>split split>count", lines=Lines, keep=Keep, split=Split, count=Count)
    plan = compiled(dag).plan
    assert {s.name: s.payload for s in plan.streams} == {"lines": "Line", "keep": "Line", "split": "Word"}
    assert [(port.name, port.payload) for port in plan.by_name["keep"].ports] == [("input", "Line"), ("output", "Line")]


def test_everything_that_does_not_fit_is_reported_also_what_comes_round_a_delay():
    class Step(Operator):
        first = InputPort(Dog)
        again = InputPort(Cat)
        out = OutputPort(Dog)

    dag = sketch("pets>step step>delay delay>step", pets=Pets, step=Step, delay=DelayOperator)
    assert problems(dag) == ["stream 'delay' joins delay.output (Dog) to step.again (Cat)"]
    assert codes(sketch("lines>a lines>b", lines=Lines, a=Count, b=Count)) == ["port-type-mismatch"] * 2


class Pairing:
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
