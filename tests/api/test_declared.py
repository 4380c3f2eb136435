"""Class-level declarations with annotations: none becomes a property, and the annotation says what they hold."""

from collections.abc import Iterator
from typing import ClassVar, Final

import pytest

from dagkit import InputPort, Operator, OutputFiles, OutputPort, RowOperator, State
from dagkit.api.files import output_files
from dagkit.api.metrics import MetricField, auto_metric, declared_metrics
from dagkit.api.ports import input_ports, output_ports
from dagkit.api.state import KeyedState, declared_state
from tests.api import annotated_as_text as as_text


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
