"""Calls with the wrong thing in the right place: each is a diagnostic at its line, and the drawing goes on."""

import inspect

import pytest

from dagkit import Dag, OperatorContext, PortContext
from tests.compiler.cast import Reader, Source

QUEUE, TIMEOUT = PortContext.QUEUE_CAPACITY, OperatorContext.TIMEOUT_WINDOW_COUNT


def _told(mistake):
    dag = Dag()
    mistake(dag, dag.add_operator("A", Source()), dag.add_operator("B", Reader()))
    (fault,) = dag.faults
    return fault


@pytest.mark.parametrize(
    ("mistake", "problem", "help_"),
    [
        (lambda dag, a, b: dag.add_stream("s", b.input, a.out), "begins at B.input, an input, and ends at", "first"),
        (lambda dag, a, b: dag.add_stream("s", b.input), "begins at B.input, an input", "the output first"),
        (lambda dag, a, b: dag.add_stream("s", None, a.out), "ends at A.out, an output", "the output first"),
        (lambda dag, a, b: dag.add_stream("s").set_source(b.input), "begins at B.input", "the output first"),
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
        ("set_output_port_attribute", "B.input", QUEUE, "B.input, which is not an out", "call set_input_port_attrib"),
        ("set_unifier_attribute", "A", TIMEOUT, "set_unifier_attribute is given A, which is not", "a port of A: out"),
        ("set_operator_attribute", "B.input", QUEUE, "B.input, which is not an op", "call set_input_port_attribute"),
        ("set_operator_attribute", None, TIMEOUT, "None, which is not an operator", "that add_operator returned"),
    ],
)
def test_an_attribute_is_set_on_what_the_method_is_for(method, bearer, attribute, problem, help_):
    def mistake(dag, a, b):
        given = {"A": a, "A.out": a.out, "B.input": b.input, None: None}
        getattr(dag, method)(given[bearer], attribute, 1)

    told = _told(mistake)
    assert told.code == "attribute-misplaced"
    assert problem in told.problem
    assert help_ in told.help


def test_a_locality_that_is_none_is_reported_with_a_near_name():
    told = _told(lambda dag, a, b: dag.add_stream("s", a.out, b.input).set_locality("thread_locl"))
    assert (told.code, told.problem) == ("locality-invalid", "stream 's' cannot have the locality 'thread_locl'")
    assert told.help == "did you mean 'THREAD_LOCAL'?"


def test_an_end_is_called_by_the_name_its_operator_was_placed_under():
    assert repr(Reader().input) == "Reader.input"
    assert repr(Dag().add_operator("B", Reader()).input) == "B.input"
