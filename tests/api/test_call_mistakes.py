"""Calls with the wrong thing in the right place: each is a diagnostic at its line, and the drawing goes on."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from dagkit import Dag, InputOperator, InputPort, Operator, OperatorContext, OutputPort, PortContext
from dagkit.errors import Diagnostic

QUEUE, TIMEOUT = PortContext.QUEUE_CAPACITY, OperatorContext.TIMEOUT_WINDOW_COUNT


class Source(InputOperator):
    """A root."""

    out = OutputPort(int)


class Sink(Operator):
    """An end."""

    into = InputPort(int)

    def process(self, item: int) -> None: ...


def _told(slip: Callable[[Dag, Any, Any], object]) -> list[Diagnostic]:
    dag = Dag()
    slip(dag, dag.add_operator("A", Source()), dag.add_operator("B", Sink()))
    return dag.faults


@pytest.mark.parametrize(
    ("slip", "problem", "help_"),
    [
        (
            lambda dag, a, b: dag.add_stream("s", b.into, a.out),
            "begins at B.into, an input, and ends at A.out",
            "first",
        ),
        (lambda dag, a, b: dag.add_stream("s", b.into), "begins at B.into, an input", "the output first"),
        (lambda dag, a, b: dag.add_stream("s", None, a.out), "ends at A.out, an output", "the output first"),
        (lambda dag, a, b: dag.add_stream("s").set_source(b.into), "begins at B.into", "the output first"),
        (lambda dag, a, b: dag.add_stream("s").add_sink(a.out), "ends at A.out", "the output first"),
    ],
    ids=["turned round", "an input as the source", "an output as a sink", "set_source", "add_sink"],
)
def test_a_stream_that_is_turned_round_is_reported(slip, problem, help_):
    (told,) = _told(slip)
    assert told.code == "stream-reversed"
    assert problem in told.problem
    assert help_ in told.help
    assert told.where is not None
    assert told.where.line == inspect.getsourcelines(slip)[1]


@pytest.mark.parametrize(
    ("slip", "problem", "help_"),
    [
        (
            lambda dag, a, b: dag.set_input_port_attribute(a.out, QUEUE, 1),
            "A.out, which is not an input port",
            "call set_output_port_attribute",
        ),
        (
            lambda dag, a, b: dag.set_output_port_attribute(b.into, QUEUE, 1),
            "B.into, which is not an output port",
            "call set_input_port_attribute",
        ),
        (
            lambda dag, a, b: dag.set_unifier_attribute(a, TIMEOUT, 1),
            "set_unifier_attribute is given A, which is not an output port",
            "a port of A: out",
        ),
        (
            lambda dag, a, b: dag.set_operator_attribute(b.into, QUEUE, 1),
            "B.into, which is not an operator",
            "call set_input_port_attribute",
        ),
        (
            lambda dag, a, b: dag.set_operator_attribute(None, TIMEOUT, 1),
            "None, which is not an operator",
            "that add_operator returned",
        ),
    ],
    ids=["an output as an input", "an input as an output", "an operator for a unifier", "a port", "nothing"],
)
def test_an_attribute_is_set_on_what_the_method_is_for(slip, problem, help_):
    (told,) = _told(slip)
    assert told.code == "attribute-misplaced"
    assert problem in told.problem
    assert help_ in told.help


def test_a_locality_that_is_none_is_reported_with_a_near_name():
    (told,) = _told(lambda dag, a, b: dag.add_stream("s", a.out, b.into).set_locality("thread_locl"))
    assert (told.code, told.problem) == ("locality-invalid", "stream 's' cannot have the locality 'thread_locl'")
    assert told.help == "did you mean 'THREAD_LOCAL'?"


def test_an_end_is_called_by_the_name_its_operator_was_placed_under():
    dag = Dag()
    assert repr(Sink().into) == "Sink.into"
    assert repr(dag.add_operator("B", Sink()).into) == "B.into"
