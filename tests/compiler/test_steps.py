"""The steps: which forms compiling passes through, what each holds, and what stops it."""

import pytest

from dagkit import Config, Dag, DagContext, OperatorContext, ProcessingMode, StreamingApplication
from dagkit.compiler import STEPS, compile_application, compile_until
from dagkit.compiler.fuse import Fused
from dagkit.errors import ApplicationFaults
from dagkit.graph import Graph
from dagkit.plan import Plan
from tests.cases import cases
from tests.compiler.cast import Source, Step, codes, faults
from tests.compiler.sketches import sketch


class Named(StreamingApplication):
    name = "A name with blanks"

    def populate_dag(self, dag, conf):
        dag.add_operator("source", Source())


class Plain(StreamingApplication):
    outputs: int = 1

    def populate_dag(self, dag, conf):
        source = dag.add_operator("source", Source())
        dag.add_stream("out", source.out, *(dag.add_operator(f"sink {i}", Step()).one for i in range(self.outputs)))


def by_function(dag, conf):
    dag.add_operator(conf.read("called", str, "source"), Source())


@pytest.mark.parametrize("last", STEPS)
def test_each_form_can_be_asked_for(last):
    compilation = compile_until(last, sketch("s>a"))
    assert tuple(compilation.steps) == STEPS[: STEPS.index(last) + 1]
    assert isinstance(compilation.steps[last], {"fused": Fused, "ordered": Plan}.get(last, Graph))


@pytest.mark.parametrize("last", ["drawn", "expanded", "resolved"])
def test_a_faulty_application_has_forms_up_to_the_laws_and_its_faults_as_notes(last):
    dag = sketch("s>a")
    dag.add_operator("s", Source())
    compilation = compile_until(last, dag)
    assert [node.name for node in compilation.graph.nodes] == ["s", "a", "s\N{PRIME}"]
    assert [note.code for note in compilation.notes] == ["operator-duplicated"]


@pytest.mark.parametrize("last", ["checked", "fused", "ordered"])
def test_from_the_laws_on_a_faulty_application_has_none(last):
    with pytest.raises(ApplicationFaults, match="loop-undelayed"):
        compile_until(last, sketch("s>a a>b b>a"))


def test_what_is_resolved_is_seen_in_the_resolved_form_and_not_before():
    dag = sketch("s>a a>b")
    dag.set_operator_attribute(dag.operator("a"), OperatorContext.PROCESSING_MODE, ProcessingMode.AT_MOST_ONCE)
    steps = compile_until("resolved", dag).steps
    told = {step: OperatorContext.PROCESSING_MODE in form.by_name["b"].attributes for step, form in steps.items()}
    assert told == {"drawn": False, "expanded": False, "resolved": True}


@cases(
    "author, name",
    ("an application with a name", Named(), "A name with blanks"),
    ("one without", Plain(), "Plain"),
    ("a function", by_function, __name__),
    ("a Dag drawn by hand", sketch("s>a"), "Dag"),
)
def test_whatever_draws_can_be_compiled(author, name):
    assert compile_application(author).plan.application == name


def test_an_application_draws_with_its_properties_and_meets_the_configuration():
    assert len(compile_application(Plain(outputs=3)).plan.operators) == 4
    assert compile_application(by_function, Config.of({"called": "asked"})).plan.operators[0].name == "asked"


def test_a_wrong_property_of_the_application_is_reported_at_populate_dag():
    with pytest.raises(ApplicationFaults, match=r"Plain\.outputs cannot be 'many'") as raised:
        compile_application(Plain(outputs="many"))
    assert raised.value.codes[0] in ("property-invalid", "populate-failed")


class Fails(StreamingApplication):
    def populate_dag(self, dag, conf):
        dag.add_operator("source", Source())
        dag.add_operator("lonely", Step())
        dag.add_operator("wrong.name", Source())
        raise LookupError("no such table")


def test_what_is_raised_while_drawing_is_reported_with_its_line_and_the_mistakes_before_it():
    with pytest.raises(ApplicationFaults) as raised:
        compile_application(Fails())
    named, failed = raised.value.diagnostics
    assert (named.code, failed.code) == ("name-malformed", "populate-failed")
    assert failed.problem == "populate_dag of Fails raised LookupError: no such table"
    assert failed.where.line == named.where.line + 1
    assert isinstance(raised.value.__cause__, LookupError)
    unfinished = compile_until("resolved", Fails())
    assert list(unfinished.steps) == ["drawn"]
    assert [node.name for node in unfinished.graph.nodes] == ["source", "lonely", "wrong.name"]


@cases("name", ("half a character", "half \ud800"), ("a line end", "two\nlines"))
def test_a_name_that_cannot_be_printed_is_reported(name):
    dag = sketch("s>a")
    dag.set_attribute(DagContext.APPLICATION_NAME, name)
    (fault,) = faults(dag)
    problem = f"the application name {name!r} contains characters that cannot be printed"
    assert (fault.code, fault.problem) == ("name-malformed", problem)
    of_an_operator = Dag()
    of_an_operator.add_operator(name, Source())
    assert codes(of_an_operator) == ["name-malformed"]


@cases("name", ("the folder above", ".."), ("a hidden folder", ".name"))
def test_an_application_name_that_begins_with_a_dot_is_reported(name):
    dag = sketch("s>a")
    dag.set_attribute(DagContext.APPLICATION_NAME, name)
    (fault,) = faults(dag)
    assert (fault.code, fault.problem) == ("name-malformed", f"the application name {name!r} begins with a dot")


EVERY = Config.of({"dt.stream.*.locality": "NODE_LOCAL", "dt.stream.*.schema": "builtins.int"})


def test_the_graph_is_copied_as_often_for_many_streams_as_for_one(monkeypatch):
    copies, making = [], Graph.__init__

    def counted(graph, *given, **named):
        copies.append(graph)
        making(graph, *given, **named)

    def copies_of_a_chain(streams):
        copies.clear()
        compile_until("resolved", sketch(" ".join(f"{n}>{n + 1}" for n in range(streams))), EVERY)
        return len(copies)

    monkeypatch.setattr(Graph, "__init__", counted)
    assert copies_of_a_chain(1) == copies_of_a_chain(20) > 0


def test_what_configuration_says_of_every_stream_holds_for_each():
    graph = compile_until("resolved", sketch("a>b a>c b>d"), EVERY).graph
    assert [stream.locality for stream in graph.streams] == ["NODE_LOCAL", "NODE_LOCAL"]
    assert [str(stream.locality_origin.key) for stream in graph.streams] == ["dt.stream.*.locality"] * 2
    told = {f"{node.name}.{port}" for node in graph.nodes for port in (*node.inputs, *node.outputs)}
    assert told == {"a.out", "b.one", "c.one", "b.out", "d.one"}
