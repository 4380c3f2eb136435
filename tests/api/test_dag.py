"""The Dag: it writes down what the author said, with the line, and judges only names."""

import inspect
from typing import Any

import pytest

from dagkit import Dag, DagContext, InputOperator, InputPort, Locality, Operator, OutputPort
from tests.cases import cases


class Source(InputOperator):
    out = OutputPort(int)


class Sink(Operator):
    into = InputPort(int)


def _next_line() -> int:
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno + 1


def _told(dag: Dag) -> list[tuple[str, str]]:
    return [(fault.code, fault.problem) for fault in dag.faults]


def test_adding_gives_the_operator_back():
    source = Source()
    assert Dag().add_operator("source", source) is source


def test_the_same_operator_under_the_same_name_again_is_no_news():
    dag, source = Dag(), Source()
    dag.add_operator("source", source)
    dag.add_operator("source", source)
    assert [placement.name for placement in dag.placements] == ["source"]
    assert dag.faults == []


@cases(
    "name, told",
    ("an empty name", "", [("name-missing", "an operator has no name")]),
    ("no name", None, [("name-missing", "an operator has no name")]),
    ("a dot", "Block.reader", [("name-malformed", "the operator name 'Block.reader' contains a dot")]),
    ("a hyphen", "Block-reader", []),
    ("a blank", "file-block metadata", []),
    ("anything else", "Straße $1", []),
)
def test_operator_names(name, told):
    dag = Dag()
    dag.add_operator(name, Source())
    assert _told(dag) == told


@cases(
    "name, told",
    ("an empty name", "", [("name-missing", "a stream has no name")]),
    ("no name", None, [("name-missing", "a stream has no name")]),
    ("a dot", "a.b", [("name-malformed", "the stream name 'a.b' contains a dot")]),
    ("a hyphen", "filtered-records", []),
)
def test_stream_names(name, told):
    dag = Dag()
    dag.add_stream(name)
    assert _told(dag) == told


def test_module_names_are_judged_as_operator_names_are():
    dag = Dag()
    dag.add_module("", Source())
    assert dag.faults[0].code == "name-missing"


def test_two_operators_of_one_name_are_reported_with_the_first_ones_line():
    dag = Dag()
    first = _next_line()
    dag.add_operator("o", Source())
    second = _next_line()
    dag.add_operator("o", Sink())
    (fault,) = dag.faults
    assert fault.code == "operator-duplicated"
    assert fault.problem.endswith(f"test_dag.py:{first}")
    assert fault.where is not None
    assert fault.where.line == second


def test_one_operator_under_two_names_is_reported():
    dag, source = Dag(), Source()
    dag.add_operator("a", source)
    dag.add_operator("b", source)
    assert _told(dag) == [("operator-reused", "one Source is added as 'a' and as 'b'")]


def test_two_streams_of_one_name_are_reported():
    dag = Dag()
    dag.add_stream("s")
    dag.add_stream("s")
    assert [code for code, _ in _told(dag)] == ["stream-duplicated"]


def test_a_stream_may_be_drawn_in_steps():
    dag = Dag()
    source, sink = dag.add_operator("source", Source()), dag.add_operator("sink", Sink())
    stream = dag.add_stream("s").set_source(source.out).add_sink(sink.into).set_locality("NODE_LOCAL")
    assert stream.source is not None
    assert (stream.source.operator, [s.operator for s in stream.sinks]) == (source, [sink])
    assert stream.locality is Locality.NODE_LOCAL
    assert stream.set_locality(None).locality is None


@pytest.mark.parametrize("line", range(5))
def test_what_is_no_port_is_refused_where_it_stands(line):
    dag = Dag()
    source, sink = dag.add_operator("source", Source()), dag.add_operator("sink", Sink())
    wrong: list[Any] = [
        lambda: dag.add_stream("s", source),
        lambda: dag.add_stream("s", source.out, sink),
        lambda: dag.add_stream("s").set_source(source),
        lambda: dag.add_stream("s").add_sink("sink"),
        lambda: dag.add_stream("s").add_sink(Sink.into),
    ]
    with pytest.raises(TypeError, match=r"stream 's' is given .*, which is not a port; write operator\.port"):
        wrong[line]()


def test_a_class_in_the_place_of_an_operator_is_refused():
    with pytest.raises(TypeError, match="did you forget to call the class"):
        Dag().add_operator("source", Source)


def test_a_name_in_the_place_of_an_attribute_is_refused():
    with pytest.raises(TypeError, match="'DEBUG' is not an attribute; use one of DagContext"):
        Dag().set_attribute("DEBUG", True)


def test_an_input_cannot_stand_behind_an_output():
    with pytest.raises(TypeError, match=r"Sink.into cannot be exposed as Source.out"):
        Dag().expose(Source().out, Sink().into)


def test_operators_and_streams_are_found_by_name():
    dag = Dag()
    source = dag.add_operator("source", Source())
    stream = dag.add_stream("records", source.out)
    assert dag.operator("source") is source
    assert dag.stream("records") is stream
    with pytest.raises(KeyError, match=r"no operator 'sorce'; did you mean 'source'\?"):
        dag.operator("sorce")
    with pytest.raises(KeyError, match=r"no stream 'record'; did you mean 'records'\?"):
        dag.stream("record")


def test_every_entry_knows_its_authors_line():
    dag = Dag()
    line = _next_line()
    source = dag.add_operator("source", Source())
    dag.set_attribute(DagContext.DEBUG, False)
    dag.add_stream("s", source.out)
    assert [dag.placements[0].where.line, dag.assignments[0].where.line, dag.streams[0].where.line] == [
        line,
        line + 1,
        line + 2,
    ]
    assert dag.placements[0].where.file.endswith("tests/api/test_dag.py")


def test_a_dag_says_how_big_it_is():
    dag = Dag()
    dag.add_operator("source", Source())
    assert repr(dag) == "<Dag of 1 operators and 0 streams>"


def test_a_dag_that_is_given_a_name_says_where_names_come_from():
    with pytest.raises(
        TypeError, match="a Dag has no name: an application is called after its class, or by APPLICATION"
    ):
        Dag("demo")  # mypy finds it, too
