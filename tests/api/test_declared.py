"""Class-level declarations with annotations: none becomes a property, and the annotation says what they hold."""

from collections.abc import Iterator
from typing import Any, ClassVar, Final

import pytest

from dagkit import InputPort, Operator, OutputFiles, OutputPort, RowOperator, State
from dagkit.api.files import output_files
from dagkit.api.metrics import MetricField, auto_metric, declared_metrics
from dagkit.api.ports import input_ports, output_ports
from dagkit.api.state import KeyedState, declared_state
from tests.api import annotated_as_text


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


def payloads(component: type) -> dict[str, Any]:
    return {name: port.payload for name, port in [*input_ports(component).items(), *output_ports(component).items()]}


def declared(component: type) -> dict[str, str]:
    return {name: state.spelled for name, state in declared_state(component).items()}


@pytest.mark.parametrize(
    ("component", "properties"),
    [
        (Annotated, ["limit"]),
        (OfTheClass, []),
        (annotated_as_text.Annotated, ["limit"]),
        (annotated_as_text.OfTheClass, []),
    ],
)
def test_a_declaration_with_an_annotation_is_no_property(component, properties):
    assert list(component.model_fields) == properties
    assert component().faults == ()


def test_a_port_without_a_payload_has_that_of_its_annotation():
    assert payloads(Annotated) == {"lines": Line, "side": Line, "words": str, "numbers": int | None}
    assert payloads(OfTheClass) == {"lines": Line, "words": str, "errors": int}


def test_annotations_that_are_text_are_read_when_they_are_asked_for():
    later = annotated_as_text.Line
    assert payloads(annotated_as_text.Annotated) == {"lines": later, "words": str}
    assert payloads(annotated_as_text.OfTheClass) == {"lines": later, "words": str, "errors": int}
    assert declared(annotated_as_text.Annotated) == {"count": "State[list[Line]]", "by_name": "KeyedState[str, Line]"}


def test_state_holds_what_its_annotation_says():
    assert declared(Annotated) == {"count": "State[list[Line]]", "by_name": "KeyedState[str, Line]"}
    assert declared(OfTheClass) == {"count": "State[int]", "_hidden": "State[int]"}


def test_metrics_and_files_are_found():
    assert list(declared_metrics(Annotated)) == ["seen"]
    assert list(output_files(Annotated)) == ["files"]
    assert list(output_files(annotated_as_text.OfTheClass)) == ["files"]


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
