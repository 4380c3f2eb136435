"""What is sent can be read: the law over whole graphs, with what generic operators come to carry."""

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import pytest

from dagkit import Dag, DelayOperator, InputOperator, InputPort, Operator, OutputPort
from tests.cases import cases
from tests.compiler.cast import Animal, Cat, Count, Dog, Keep, Line, Lines, Split, Word, compiled, faults

T = TypeVar("T")
Pet = TypeVar("Pet", bound=Animal)


def _joined(sent: Any, read: Any) -> Dag:
    """One operator that sends the one type into another that reads the other."""

    class Sender(InputOperator):
        out = OutputPort(sent)

    class Reader(Operator):
        input = InputPort(read)

    dag = Dag()
    sender, reader = dag.add_operator("sender", Sender()), dag.add_operator("reader", Reader())
    dag.add_stream("wire", sender.out, reader.input)
    return dag


@cases(
    "sent, read",
    ("a subclass", Dog, Animal),
    ("into anything", Dog, Any),
    ("from anything", Any, Dog),
    ("into a union", int, int | str),
    ("into a wider generic", list[Dog], Sequence[Animal]),
    ("into an optional one", Dog, Dog | None),
)
def test_what_fits_compiles(sent, read):
    assert faults(_joined(sent, read)) == []


@cases(
    "sent, read, said",
    ("a base class", Animal, Dog, "(Animal) to reader.input (Dog)"),
    ("a class beside it", Dog, Cat, "(Dog) to reader.input (Cat)"),
    ("a member too many", int | str, int, "(int | str) to reader.input (int)"),
    ("another argument", list[Cat], list[Dog], "(list[Cat]) to reader.input (list[Dog])"),
    ("nothing, perhaps", Dog | None, Dog, "(Dog | None) to reader.input (Dog)"),
)
def test_what_does_not_fit_is_reported_in_the_authors_types(sent, read, said):
    (fault,) = faults(_joined(sent, read))
    assert fault.code == "port-type-mismatch"
    assert fault.problem == f"stream 'wire' joins sender.out {said}"


def test_the_help_names_the_port_that_would_fit():
    class Both(InputOperator):
        words = OutputPort(Word)
        lines = OutputPort(Line)

    dag = Dag()
    both, split = dag.add_operator("both", Both()), dag.add_operator("split", Split())
    dag.add_stream("records", both.words, split.lines)
    (fault,) = faults(dag)
    assert fault.problem == "stream 'records' joins both.words (Word) to split.lines (Line)"
    assert fault.help == "put an operator that turns Word into Line between them, or connect both.lines"


def test_the_help_names_the_input_that_would_fit():
    class Both(Operator):
        lines = InputPort(Line)
        words = InputPort(Word, optional=True)

    dag = Dag()
    lines, split, both = (
        dag.add_operator("lines", Lines()),
        dag.add_operator("split", Split()),
        dag.add_operator("both", Both()),
    )
    dag.add_stream("lines", lines.lines, split.lines)
    dag.add_stream("words", split.words, both.lines)
    (fault,) = faults(dag)
    assert fault.help == "put an operator that turns Word into Line between them, or connect it to both.words"


class Pets(InputOperator):
    dogs = OutputPort(Dog)
    numbers = OutputPort(int)
    boxed = OutputPort(list[Dog])


class Tame(Operator, Generic[Pet]):
    input = InputPort[Pet]()
    output = OutputPort[Pet]()


class Unbox(Operator, Generic[T]):
    boxes = InputPort[Sequence[T]]()
    items = OutputPort[T]()


class KeepDogs(Keep[Dog]):
    """What the class says between brackets holds for its operators."""


class Cats(Operator):
    input = InputPort(Cat)


def _through(outlet: str, keeper: Any, port: str = "input", leaves: str = "output") -> Dag:
    """Pets through a keeper to cats: the fault says what the keeper was taken to carry."""
    dag = Dag()
    pets, cats = dag.add_operator("pets", Pets()), dag.add_operator("cats", Cats())
    dag.add_operator("keep", keeper)
    dag.add_stream("in", getattr(pets, outlet), getattr(keeper, port))
    dag.add_stream("out", getattr(keeper, leaves), cats.input)
    return dag


@pytest.mark.parametrize(
    ("dag", "problems"),
    [
        (_through("dogs", Keep()), ["stream 'out' joins keep.output (Dog) to cats.input (Cat)"]),
        (_through("dogs", Keep[Dog]()), ["stream 'out' joins keep.output (Dog) to cats.input (Cat)"]),
        (_through("dogs", KeepDogs()), ["stream 'out' joins keep.output (Dog) to cats.input (Cat)"]),
        (_through("dogs", Keep[Cat]()), ["stream 'in' joins pets.dogs (Dog) to keep.input (Cat)"]),
        (_through("dogs", Keep[Animal]()), ["stream 'out' joins keep.output (Animal) to cats.input (Cat)"]),
        (_through("numbers", Tame()), ["stream 'in' joins pets.numbers (int) to keep.input (Pet)"]),
        (_through("dogs", Tame()), ["stream 'out' joins keep.output (Dog) to cats.input (Cat)"]),
        (_through("boxed", Unbox(), "boxes", "items"), ["stream 'out' joins keep.items (Dog) to cats.input (Cat)"]),
        (_through("dogs", Keep[Any]()), []),
    ],
    ids=[
        "a generic operator carries what flows in",
        "or what its author wrote between brackets",
        "or what its class did",
        "which is held against what flows in",
        "and may be wider",
        "a bound is kept to",
        "what keeps to the bound is carried",
        "an item is unpacked from what holds it",
        "anything carries anything",
    ],
)
def test_what_a_generic_operator_carries(dag, problems):
    assert [fault.problem for fault in faults(dag)] == problems


def test_the_plan_says_what_flows():
    dag = Dag()
    lines, keep, split, count = (
        dag.add_operator("lines", Lines()),
        dag.add_operator("keep", Keep()),
        dag.add_operator("split", Split()),
        dag.add_operator("count", Count()),
    )
    dag.add_stream("1", lines.lines, keep.input)
    dag.add_stream("2", keep.output, split.lines)
    dag.add_stream("3", split.words, count.words)
    plan = compiled(dag).plan
    assert {stream.name: stream.payload for stream in plan.streams} == {"1": "Line", "2": "Line", "3": "Word"}
    assert [(port.name, port.payload) for port in plan.by_name["keep"].ports] == [("input", "Line"), ("output", "Line")]


def test_what_comes_round_a_delay_is_held_against_what_is_read():
    class Step(Operator):
        first = InputPort(Dog)
        again = InputPort(Cat)
        out = OutputPort(Dog)

    dag = Dag()
    pets, step, delay = (
        dag.add_operator("pets", Pets()),
        dag.add_operator("step", Step()),
        dag.add_operator("delay", DelayOperator()),
    )
    dag.add_stream("in", pets.dogs, step.first)
    dag.add_stream("on", step.out, delay.input)
    dag.add_stream("back", delay.output, step.again)
    assert [fault.problem for fault in faults(dag)] == ["stream 'back' joins delay.output (Dog) to step.again (Cat)"]


def test_everything_that_does_not_fit_is_reported():
    dag = Dag()
    lines, a, b = dag.add_operator("lines", Lines()), dag.add_operator("a", Count()), dag.add_operator("b", Count())
    dag.add_stream("lines", lines.lines, a.words, b.words)
    assert [fault.code for fault in faults(dag)] == ["port-type-mismatch", "port-type-mismatch"]
