"""Ports: what flows, what must be connected, which class a port belongs to, and what annotations of them say."""

from collections.abc import Iterator
from typing import Any, ClassVar, Final, Generic, TypeVar

import pytest

from dagkit import Inlet, InputPort, Operator, Outlet, OutputFiles, OutputPort, RowOperator, State
from dagkit.api.files import output_files
from dagkit.api.metrics import MetricField, auto_metric, declared_metrics
from dagkit.api.ports import input_ports, output_ports
from dagkit.api.state import KeyedState, declared_state
from tests.api import annotated_as_text as as_text
from tests.cases import cases

T = TypeVar("T")


class Old(Operator):
    first = InputPort(int)
    second = InputPort[int | str](optional=True)
    out = OutputPort["Later"]()


class New(Old):
    third = InputPort[list["Later"]](optional=True)
    first = InputPort(bool)
    more = OutputPort[Any](optional=False)
    any = OutputPort()


class Loose(Operator, Generic[T]):
    input = InputPort[T]()
    lost = InputPort["Nowhere"]()


class Later:
    """Declared after the ports that speak of it."""


@cases(
    "port, payload",
    ("the argument", Old.first, int),
    ("the argument of the port declared again", New.first, bool),
    ("a union, between brackets", Old.second, int | str),
    ("a class declared further down", Old.out, Later),
    ("a class declared further down, inside a generic", New.third, list[Later]),
    ("anything, in so many words", New.more, Any),
    ("anything, since nothing is said", New.any, Any),
    ("a type variable", Loose.input, T),
    ("anything, where the class cannot be found", Loose.lost, Any),
)
def test_a_port_knows_what_flows(port, payload):
    assert port.payload == payload


def test_ports_come_in_order_and_an_input_must_be_fed_and_an_output_may_stay_open_unless_said_otherwise():
    required = [
        (name, port.required) for ports in (input_ports(New), output_ports(New)) for name, port in ports.items()
    ]
    inputs = [("first", True), ("second", False), ("third", False)]
    assert required == [*inputs, ("out", False), ("more", True), ("any", False)]
    assert list(New.model_fields) == []


def test_a_port_declared_again_hides_its_namesake():
    assert (input_ports(New)["first"], input_ports(Old)["first"]) == (New.first, Old.first)
    assert (New.first.declared_in, Old.first.declared_in, New.second.declared_in) == ("New", "Old", "Old")


def test_the_class_bears_the_declaration_and_the_instance_an_end():
    new = New()
    assert isinstance(new.first, Inlet)
    assert isinstance(new.out, Outlet)
    assert (new.first.operator, new.first.port, repr(new.first)) == (new, New.first, "New.first")


def test_a_method_takes_the_items_of_the_port_that_decorates_it():
    class Two(Operator):
        left = InputPort(int)
        right = InputPort(int)

        @left.process
        def take_left(self, item: int) -> None: ...

    assert (Two.left.handler, Two.right.handler) == ("take_left", None)


class Line: ...


class Annotated(RowOperator):
    """As a typed author writes it."""

    lines: InputPort[Line] = InputPort(Line)
    side: "InputPort[Line]" = InputPort(optional=True)
    words: OutputPort[str] = OutputPort()
    numbers: OutputPort[int | None] = OutputPort()
    count: State[list[Line]] = State(list)
    by_name: KeyedState[str, Line] = KeyedState(Line)
    seen: MetricField[int] = auto_metric(0)
    files: OutputFiles = OutputFiles(lambda _: "out")
    limit: int = 3

    def process(self, item: Line) -> Iterator[str]:
        yield str(item)


class OfTheClass(Operator):
    lines: ClassVar[InputPort[Line]] = InputPort()
    words: "ClassVar[OutputPort[str]]" = OutputPort()
    errors: Final = OutputPort(int)
    count: ClassVar[State[int]] = State(0)
    _hidden: State[int] = State(0)

    def process(self, item: Line) -> None:
        self.words.emit(str(item))


PORTS = {"lines": Line, "side": Line, "words": str, "numbers": int | None}
STATE = {"count": "State[list[Line]]", "by_name": "KeyedState[str, Line]"}
OF_CLASS = {"words": str, "errors": int}


@pytest.mark.parametrize(
    ("component", "ports", "state", "others"),
    [
        (Annotated, PORTS, STATE, (["limit"], ["seen"], ["files"])),
        (OfTheClass, {"lines": Line, **OF_CLASS}, {"count": "State[int]", "_hidden": "State[int]"}, ([], [], [])),
        (as_text.Annotated, {"lines": as_text.Line, "words": str}, STATE, (["limit"], ["seen"], [])),
        (as_text.OfTheClass, {"lines": as_text.Line, **OF_CLASS}, {}, ([], [], ["files"])),
    ],
)
def test_a_declaration_with_an_annotation_is_no_property_and_holds_what_that_says(component, ports, state, others):
    assert component().faults == ()
    declared_ports = {**input_ports(component), **output_ports(component)}
    assert {name: port.payload for name, port in declared_ports.items()} == ports
    assert {name: declared.spelled for name, declared in declared_state(component).items()} == state
    found = (component.model_fields, declared_metrics(component), output_files(component))
    assert tuple(map(list, found)) == others


def test_a_class_that_inherits_them_may_have_properties():
    class Narrower(Annotated):
        lines: InputPort[Line] = InputPort(Line, optional=True)
        depth: int = 1

    assert list(Narrower.model_fields) == ["limit", "depth"]
    assert not input_ports(Narrower)["lines"].required


def test_an_operator_keeps_state_that_is_annotated():
    operator = Annotated()
    operator.count.append(Line())
    operator.seen += 1
    assert (len(operator.count), operator.seen, len(Annotated().count)) == (1, 1, 0)
