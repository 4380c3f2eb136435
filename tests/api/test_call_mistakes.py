"""Calls with the wrong thing in the right place: each is a diagnostic at its line, and the drawing goes on."""

import inspect

import pytest

from dagkit import Dag, InputOperator, InputPort, Operator, OperatorContext, OutputPort, PortContext

QUEUE, TIMEOUT = PortContext.QUEUE_CAPACITY, OperatorContext.TIMEOUT_WINDOW_COUNT


class Source(InputOperator):
    out = OutputPort(int)


class Sink(Operator):
    into = InputPort(int)


def _told(mistake):
    dag = Dag()
    mistake(dag, dag.add_operator("A", Source()), dag.add_operator("B", Sink()))
    (fault,) = dag.faults
    return fault


@pytest.mark.parametrize(
    ("mistake", "problem", "help_"),
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
)
def test_a_stream_that_is_turned_round_is_reported(mistake, problem, help_):
    told = _told(mistake)
    assert (told.code, told.where.line) == ("stream-reversed", inspect.getsourcelines(mistake)[1])
    assert problem in told.problem
    assert help_ in told.help


@pytest.mark.parametrize(
    ("method", "bearer", "attribute", "problem", "help_"),
    [
        ("set_input_port_attribute", "A.out", QUEUE, "A.out, which is not an input", "call set_output_port_attribute"),
        ("set_output_port_attribute", "B.into", QUEUE, "B.into, which is not an out", "call set_input_port_attribute"),
        ("set_unifier_attribute", "A", TIMEOUT, "set_unifier_attribute is given A, which is not", "a port of A: out"),
        ("set_operator_attribute", "B.into", QUEUE, "B.into, which is not an oper", "call set_input_port_attribute"),
        ("set_operator_attribute", None, TIMEOUT, "None, which is not an operator", "that add_operator returned"),
    ],
)
def test_an_attribute_is_set_on_what_the_method_is_for(method, bearer, attribute, problem, help_):
    def mistake(dag, a, b):
        given = {"A": a, "A.out": a.out, "B.into": b.into, None: None}
        getattr(dag, method)(given[bearer], attribute, 1)

    told = _told(mistake)
    assert told.code == "attribute-misplaced"
    assert problem in told.problem
    assert help_ in told.help


def test_a_locality_that_is_none_is_reported_with_a_near_name():
    told = _told(lambda dag, a, b: dag.add_stream("s", a.out, b.into).set_locality("thread_locl"))
    assert (told.code, told.problem) == ("locality-invalid", "stream 's' cannot have the locality 'thread_locl'")
    assert told.help == "did you mean 'THREAD_LOCAL'?"


def test_an_end_is_called_by_the_name_its_operator_was_placed_under():
    assert repr(Sink().into) == "Sink.into"
    assert repr(Dag().add_operator("B", Sink()).into) == "B.into"
