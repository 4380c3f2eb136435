"""Ports: what flows, what must be connected, and which class a port belongs to."""

from typing import Any, Generic, TypeVar

from dagkit import Inlet, InputPort, Operator, Outlet, OutputPort
from dagkit.api.ports import input_ports, output_ports
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
