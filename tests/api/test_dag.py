"""The Dag: it writes down what the author said, with the line, judges only names, and reports wrong calls."""

import inspect

import pytest

from dagkit import Dag, DagContext, Locality, OperatorContext, PortContext
from tests.cases import cases
from tests.compiler.cast import Reader, Source


def _next_line():
    return inspect.currentframe().f_back.f_lineno + 1


def _told(dag):
    return [(fault.code, fault.problem) for fault in dag.faults]


def test_adding_gives_the_operator_back_and_adding_it_again_is_no_news():
    dag, source = Dag(), Source()
    assert dag.add_operator("source", source) is source
    assert dag.add_operator("source", source) is source
    assert [placement.name for placement in dag.placements] == ["source"]
    assert dag.faults == []
    assert repr(dag) == "<Dag of 1 operators and 0 streams>"


@pytest.mark.parametrize("of", ["an operator", "a stream"])
@cases(
    "name, told",
    ("an empty name", "", [("name-missing", "{0} has no name")]),
    ("no name", None, [("name-missing", "{0} has no name")]),
    ("a dot", "a.b", [("name-malformed", "the {1} name 'a.b' contains a dot")]),
    ("a hyphen", "Block-reader", []),
    ("a blank", "file-block metadata", []),
    ("anything else", "Straße $1", []),
)
def test_names(name, told, of):
    dag = Dag()
    dag.add_stream(name) if of == "a stream" else dag.add_operator(name, Source())
    assert _told(dag) == [(code, problem.format(of, of.split()[1])) for code, problem in told]
    (modules := Dag()).add_module("", Source())
    assert modules.faults[0].code == "name-missing"


def test_two_operators_of_one_name_are_reported_with_the_first_ones_line():
    dag = Dag()
    first = _next_line()
    dag.add_operator("o", Source())
    second = _next_line()
    dag.add_operator("o", Reader())
    (fault,) = dag.faults
    assert (fault.code, fault.where.line) == ("operator-duplicated", second)
    assert fault.problem.endswith(f"test_dag.py:{first}")


def test_a_stream_may_be_drawn_in_steps():
    dag = Dag()
    source, sink = dag.add_operator("source", Source()), dag.add_operator("sink", Reader())
    stream = dag.add_stream("s").set_source(source.out).add_sink(sink.input).set_locality("NODE_LOCAL")
    assert (stream.source.operator, [s.operator for s in stream.sinks]) == (source, [sink])
    assert stream.locality is Locality.NODE_LOCAL
    assert stream.set_locality(None).locality is None


@pytest.mark.parametrize(
    "mistake",
    [
        lambda dag, source, sink: dag.add_stream("s", source),
        lambda dag, source, sink: dag.add_stream("s", source.out, sink),
        lambda dag, source, sink: dag.add_stream("s").set_source(source),
        lambda dag, source, sink: dag.add_stream("s").add_sink("sink"),
        lambda dag, source, sink: dag.add_stream("s").add_sink(Reader.input),
    ],
)
def test_what_is_no_port_is_refused_where_it_stands(mistake):
    dag = Dag()
    with pytest.raises(TypeError, match=r"stream 's' is given .*, which is not a port; write operator\.port"):
        mistake(dag, dag.add_operator("source", Source()), dag.add_operator("sink", Reader()))


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        (lambda: Dag().add_operator("source", Source), "did you forget to call the class"),
        (lambda: Dag().set_attribute("DEBUG", True), "'DEBUG' is not an attribute; use one of DagContext"),
        (lambda: Dag().expose(Source().out, Reader().input), r"Reader.input cannot be exposed as Source.out"),
        (lambda: Dag("demo"), "a Dag has no name: an application is called after its class, or by APPLICATION"),
    ],
)
def test_what_cannot_be_drawn_is_refused(mistake, words):
    with pytest.raises(TypeError, match=words):
        mistake()


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
    entries = (dag.placements[0], dag.assignments[0], dag.streams[0])
    assert [entry.where.line for entry in entries] == [line, line + 1, line + 2]
    assert dag.placements[0].where.file.endswith("tests/api/test_dag.py")


QUEUE, TIMEOUT = PortContext.QUEUE_CAPACITY, OperatorContext.TIMEOUT_WINDOW_COUNT


def _fault_of(mistake):
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
    told = _fault_of(mistake)
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

    told = _fault_of(mistake)
    assert told.code == "attribute-misplaced"
    assert problem in told.problem
    assert help_ in told.help


def test_a_locality_that_is_none_is_reported_with_a_near_name():
    told = _fault_of(lambda dag, a, b: dag.add_stream("s", a.out, b.input).set_locality("thread_locl"))
    assert (told.code, told.problem) == ("locality-invalid", "stream 's' cannot have the locality 'thread_locl'")
    assert told.help == "did you mean 'THREAD_LOCAL'?"


def test_an_end_is_called_by_the_name_its_operator_was_placed_under():
    assert repr(Reader().input) == "Reader.input"
    assert repr(Dag().add_operator("B", Reader()).input) == "B.input"
