"""A missing port is reported with all other faults. Its stand-in causes no faults of its own."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from dagkit import (
    AffinityRule,
    AffinityRulesSet,
    AffinityType,
    Config,
    Dag,
    DagContext,
    InputPort,
    Locality,
    Module,
    OperatorContext,
    OutputPort,
    PortContext,
)
from dagkit.compiler import compile_application, compile_until
from dagkit.errors import ApplicationFaults, Diagnostic
from tests.compiler.cast import Checked, Delay, Keep, Needy, Source, Step

Draw = Callable[[Any, Config], None]
"""Draws with what mypy would refuse: ports that are not there."""


def _told(draw: Draw, conf: Config | None = None) -> tuple[Diagnostic, ...]:
    with pytest.raises(ApplicationFaults) as raised:
        compile_application(draw, conf)
    return raised.value.diagnostics


def _marked(draw: Callable[..., Any]) -> list[tuple[str, int]]:
    """The codes that stand behind the lines of a drawing."""
    lines, first = inspect.getsourcelines(draw)
    return [
        (code, first + number)
        for number, line in enumerate(lines)
        for code in line.rpartition("  # ")[2].split()
        if "  # " in line
    ]


def a_source(dag: Any, conf: Config) -> None:
    source, step = dag.add_operator("source", Source()), dag.add_operator("step", Step())
    dag.add_stream("on", source.uot, step.one)  # port-unknown
    dag.add_operator("checked", Checked(count=1))  # property-invalid
    dag.add_stream("lost", step.out)  # stream-unread


def a_sink_that_must_be_fed(dag: Any, conf: Config) -> None:
    source, needy = dag.add_operator("source", Source()), dag.add_operator("needy", Needy())
    dag.add_stream("on", source.out, needy.inputt)  # port-unknown
    dag.add_stream("off", needy.outputs, dag.add_operator("last", Step()).one)  # port-unknown


def a_name_that_is_like_none(dag: Any, conf: Config) -> None:
    source, needy = dag.add_operator("source", Source()), dag.add_operator("needy", Needy())
    dag.add_stream("on", source.records, needy.zzz)  # port-unknown port-unknown
    dag.add_stream("off", needy.output, dag.add_operator("last", Step()).one)
    dag.add_operator("alone", Step())  # root-not-input


def steps(dag: Any, conf: Config) -> None:
    source, needy = dag.add_operator("source", Source()), dag.add_operator("needy", Needy())
    stream = dag.add_stream("on")
    stream.set_source(source.uot)  # port-unknown
    stream.add_sink(needy.inptu)  # port-unknown
    dag.add_stream("off", needy.output, dag.add_operator("last", Step()).one)


def wires_from(dag: Any, conf: Config) -> None:
    source, keep, needy = dag.add_operator("s", Source()), dag.add_operator("k", Keep()), dag.add_operator("n", Needy())
    source.uot.named("records") >> keep >> needy.input  # port-unknown
    needy.outptu >> dag.add_operator("last", Step()).one  # port-unknown
    dag.add_operator("alone", Step())  # root-not-input


def wires_into(dag: Any, conf: Config) -> None:
    source, needy, keep = dag.add_operator("s", Source()), dag.add_operator("n", Needy()), dag.add_operator("k", Keep())
    source >> needy.inputt >> keep  # port-unknown
    source.out >> dag.add_operator("more", Step()).onee  # port-unknown


def attributes(dag: Any, conf: Config) -> None:
    source, step = dag.add_operator("source", Source()), dag.add_operator("step", Step())
    dag.add_stream("on", source.out, step.ones)  # port-unknown
    dag.set_input_port_attribute(step.one, PortContext.QUEUE_CAPACITY, 8)
    dag.set_input_port_attribute(step.oen, PortContext.QUEUE_CAPACITY, 8)  # port-unknown
    dag.set_output_port_attribute(source.uot, PortContext.QUEUE_CAPACITY, 8)  # port-unknown
    dag.set_attribute(PortContext.QUEUE_CAPACITY, 8)  # attribute-misplaced


def ways_back(dag: Any, conf: Config) -> None:
    first, delay = dag.add_operator("first", Step()), dag.add_operator("delay", Delay())
    second = dag.add_operator("second", Step())
    dag.add_stream("in", dag.add_operator("source", Source()).out, first.one)
    dag.add_stream("on", first.uot, second.one)  # port-unknown
    dag.add_stream("to", second.out, delay.input)
    dag.add_stream("back", delay.output, first.two)
    together = AffinityRule(type=AffinityType.AFFINITY, locality=Locality.THREAD_LOCAL, operators=("first", "second"))
    dag.set_attribute(DagContext.AFFINITY_RULES_SET, AffinityRulesSet(affinity_rules=(together,)))


def a_way_into_a_loop(dag: Any, conf: Config) -> None:
    step, delay = dag.add_operator("step", Step()), dag.add_operator("delay", Delay())
    dag.add_stream("in", dag.add_operator("source", Source()).out, step.onee)  # port-unknown
    dag.add_stream("to", step.out, delay.input)
    dag.add_stream("back", delay.output, step.two)


class Through(Module):
    """Leads through a step."""

    input = InputPort(int)
    output = OutputPort(int)

    def populate_dag(self, dag: Any, conf: Config) -> None:
        needy = dag.add_operator("needy", Needy())
        dag.expose(self.input, needy.input)
        dag.expose(self.output, needy.output)


def ports_of_a_module(dag: Any, conf: Config) -> None:
    source, through = dag.add_operator("source", Source()), dag.add_module("through", Through())
    dag.add_stream("on", source.out, through.inptu)  # port-unknown
    dag.add_stream("off", through.output, dag.add_operator("last", Step()).one)
    dag.add_operator("alone", Step())  # root-not-input


DRAWINGS: list[Draw] = [
    a_source,
    a_sink_that_must_be_fed,
    a_name_that_is_like_none,
    steps,
    wires_from,
    wires_into,
    attributes,
    ways_back,
    a_way_into_a_loop,
    ports_of_a_module,
]


@pytest.mark.parametrize("draw", DRAWINGS, ids=lambda draw: draw.__name__.replace("_", " "))
def test_what_is_missing_and_what_comes_after_it_is_reported_and_nothing_else(draw):
    assert [(fault.code, fault.where.line if fault.where else None) for fault in _told(draw)] == _marked(draw)


class Inward(Module):
    """Exposes a port that the operator inside does not have."""

    input = InputPort(int)
    output = OutputPort(int)

    def populate_dag(self, dag: Any, conf: Config) -> None:
        needy = dag.add_operator("needy", Needy())
        dag.expose(self.input, needy.inputt)  # port-unknown
        dag.expose(self.output, needy.output)
        dag.add_operator("alone", Step())  # root-not-input


class Outward(Module):
    """Exposes a port that it does not have itself."""

    input = InputPort(int)
    output = OutputPort(int)

    def populate_dag(self, dag: Any, conf: Config) -> None:
        needy = dag.add_operator("needy", Needy())
        dag.expose(self.inputt, needy.input)  # port-unknown
        dag.expose(self.output, needy.output)
        dag.add_operator("alone", Step())  # root-not-input


@pytest.mark.parametrize("module", [Inward(), Outward()], ids=["of what is inside", "of its own"])
def test_what_a_module_exposes_may_be_missing(module):
    def draw(dag: Any, conf: Config) -> None:
        placed = dag.add_module("module", module)
        dag.add_stream("on", dag.add_operator("source", Source()).out, placed.input)
        dag.add_stream("off", placed.output, dag.add_operator("last", Step()).one)

    assert [(told.code, told.where.line if told.where else None) for told in _told(draw)] == _marked(
        type(module).populate_dag
    )


def test_keys_of_the_stream_and_of_the_ports_that_may_be_meant_are_not_reported_as_matching_nothing():
    def draw(dag: Any, conf: Config) -> None:
        source, step = dag.add_operator("source", Source()), dag.add_operator("step", Step())
        source.uot.named("records") >> step.oen

    conf = Config.of(
        {
            "dt.stream.records.locality": "NODE_LOCAL",
            "dt.operator.step.inputport.one.attr.QUEUE_CAPACITY": 8,
            "dt.operator.source.outputport.out.attr.QUEUE_CAPACITY": 8,
            "dt.operator.source.outputport.out.unifier.attr.TIMEOUT_WINDOW_COUNT": 8,
        }
    )
    assert [told.code for told in _told(draw, conf)] == ["port-unknown", "port-unknown"]


def test_one_line_that_asks_several_of_one_class_is_reported_once():
    def draw(dag: Any, conf: Config) -> None:
        source = dag.add_operator("source", Source())
        for name in ("a", "b", "c"):
            dag.add_stream(name, source.out, dag.add_operator(name, Needy()).inputt)

    assert [told.problem for told in _told(draw) if told.code == "port-unknown"] == ["no port 'inputt' on a"]


def test_whether_a_port_is_there_is_answered_truly_in_every_drawing():
    heard: list[object] = []

    def draw(dag: Any, conf: Config) -> None:
        source, step = dag.add_operator("source", Source()), dag.add_operator("step", Step())
        heard.append(hasattr(source, "uot"))
        heard.append(getattr(source, "uot", None))
        dag.add_stream("on", source.uot, step.one)
        heard.append(hasattr(source, "uot"))

    assert [told.code for told in _told(draw)] == ["port-unknown"]
    assert heard == [False, None, False, None, False]
    assert not hasattr(Source(), "uot")
    assert not hasattr(Source, "uot")


def test_an_application_that_draws_to_its_end_is_drawn_once():
    drawings: list[Dag] = []

    def draw(dag: Any, conf: Config) -> None:
        drawings.append(dag)
        source = dag.add_operator("source", Source())
        try:
            source.uot  # noqa: B018
        except AttributeError:
            dag.add_stream("on", source.out, dag.add_operator("step", Step()).one)

    compile_application(draw)
    assert len(drawings) == 1


def a_method(dag: Any, conf: Config) -> None:
    dag.add_operator("source", Source()).outt(5)  # port-unknown
    dag.add_operator("alone", Step())


def a_value(dag: Any, conf: Config) -> None:
    source = dag.add_operator("source", Source())
    dag.add_operator("checked", Checked(count=source.outt))  # port-unknown
    dag.add_operator("alone", Step())


def a_property(dag: Any, conf: Config) -> None:
    checked = dag.add_operator("checked", Checked())
    dag.add_operator("again", Checked(count=checked.cuont))  # port-unknown
    dag.add_operator("alone", Step())


def what_a_stand_in_has_not(dag: Any, conf: Config) -> None:
    source = dag.add_operator("source", Source())
    dag.add_stream("on", source.uot, dag.add_operator("step", Step()).one)  # port-unknown
    dag.add_operator("more", Source()).outt.payload.made(1)  # port-unknown
    dag.add_operator("alone", Step())


@pytest.mark.parametrize("draw", [a_method, a_value, a_property, what_a_stand_in_has_not])
def test_what_is_taken_for_something_else_than_a_port_ends_the_drawing(draw):
    assert [(fault.code, fault.where.line if fault.where else None) for fault in _told(draw)] == _marked(draw)


def test_what_ends_the_drawing_after_a_missing_port_is_reported_beside_it():
    def draw(dag: Any, conf: Config) -> None:
        source = dag.add_operator("source", Source())
        dag.add_stream("on", source.uot, dag.add_operator("step", Step()).one)
        raise LookupError("no such table")

    missing, failed = _told(draw)
    assert (missing.code, failed.code) == ("port-unknown", "populate-failed")
    assert failed.problem.endswith("raised LookupError: no such table")


@pytest.mark.parametrize("named", ["operator", "stream"])
def test_a_drawing_that_does_not_begin_as_it_did_is_not_believed(named):
    names = iter(["first", "second"])

    def draw(dag: Any, conf: Config) -> None:
        called = {"operator": "source", "stream": "on", named: next(names)}
        source = dag.add_operator(called["operator"], Source())
        dag.add_stream(called["stream"], source.out, dag.add_operator("step", Step()).one)
        dag.add_stream("off", source.uot)
        dag.add_operator("alone", Step())

    assert [told.code for told in _told(draw)] == ["port-unknown"]


class Failing(Source):
    """Has what was asked for, and it fails."""

    @property
    def outlet(self) -> Any:
        raise AttributeError("not yet")


def test_what_is_there_and_fails_is_left_as_it_is():
    there = Failing.outlet

    def draw(dag: Any, conf: Config) -> None:
        dag.add_stream("on", dag.add_operator("failing", Failing()).outlet)
        dag.add_operator("alone", Step())

    assert [told.code for told in _told(draw)] == ["port-unknown"]
    assert Failing.outlet is there


def test_a_dag_that_is_drawn_by_hand_raises_as_it_did():
    source: Any = Dag().add_operator("source", Source())
    with pytest.raises(AttributeError, match="'uot'"):
        source.uot  # noqa: B018


def test_the_graph_is_there_up_to_the_laws():
    graph = compile_until("resolved", a_source).graph
    assert [node.name for node in graph.nodes] == ["source", "step", "checked"]
    cut, _ = graph.streams
    assert (cut.name, cut.source, cut.cut_short) == ("on", None, True)


def test_operator_attributes_of_what_is_there_are_kept():
    def draw(dag: Any, conf: Config) -> None:
        source, step = dag.add_operator("source", Source()), dag.add_operator("step", Step())
        dag.add_stream("on", source.uot, step.one)
        dag.set_operator_attribute(step, OperatorContext.TIMEOUT_WINDOW_COUNT, "many")

    assert [told.code for told in _told(draw)] == ["port-unknown", "attribute-invalid"]
