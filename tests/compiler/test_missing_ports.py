"""A missing port is reported with all other faults. Its stand-in causes no faults of its own."""

import pytest

from dagkit import AffinityRule, AffinityRulesSet, AffinityType, Dag, DagContext, Locality, OperatorContext, PortContext
from dagkit.api.configuration import Config
from dagkit.compiler import compile_application, compile_until
from tests.compiler.cast import Checked, Delay, Keep, Needy, Source, Step, codes, problems, told
from tests.compiler.sketches import marked, module

DRAWINGS = []


def drawing(draw):
    DRAWINGS.append(draw)
    return draw


@drawing
def streams(dag, conf):
    source, step, needy = dag.add_operator("s", Source()), dag.add_operator("t", Step()), dag.add_operator("n", Needy())
    dag.add_stream("on", source.uot, step.one)  # port-unknown
    dag.add_operator("checked", Checked(count=1))  # property-invalid
    dag.add_stream("lost", step.out)  # stream-unread
    dag.add_stream("into needy", source.out, needy.inputt)  # port-unknown
    dag.add_stream("out of needy", needy.outputs, dag.add_operator("last", Step()).one)  # port-unknown
    another, like_none = dag.add_operator("another", Source()), dag.add_operator("like none", Needy())
    dag.add_stream("no near name", another.records, like_none.zzz)  # port-unknown port-unknown
    dag.add_stream("read", like_none.output, dag.add_operator("alone", Step()).one)
    dag.add_operator("lonely", Step())  # root-not-input


@drawing
def steps(dag, conf):
    source, needy = dag.add_operator("source", Source()), dag.add_operator("needy", Needy())
    stream = dag.add_stream("on")
    stream.set_source(source.uot)  # port-unknown
    stream.add_sink(needy.inptu)  # port-unknown
    dag.add_stream("off", needy.output, dag.add_operator("last", Step()).one)


@drawing
def wires(dag, conf):
    source, keep, needy = dag.add_operator("s", Source()), dag.add_operator("k", Keep()), dag.add_operator("n", Needy())
    source.uot.named("records") >> keep >> needy.input  # port-unknown
    needy.outptu >> dag.add_operator("last", Step()).one  # port-unknown
    source, needy, keep = dag.add_operator("t", Source()), dag.add_operator("o", Needy()), dag.add_operator("l", Keep())
    source >> needy.inputt >> keep  # port-unknown
    source.out >> dag.add_operator("more", Step()).onee  # port-unknown
    dag.add_operator("alone", Step())  # root-not-input


@drawing
def attributes(dag, conf):
    source, step = dag.add_operator("source", Source()), dag.add_operator("step", Step())
    dag.add_stream("on", source.out, step.ones)  # port-unknown
    dag.set_input_port_attribute(step.one, PortContext.QUEUE_CAPACITY, 8)
    dag.set_input_port_attribute(step.oen, PortContext.QUEUE_CAPACITY, 8)  # port-unknown
    dag.set_output_port_attribute(source.uot, PortContext.QUEUE_CAPACITY, 8)  # port-unknown
    dag.set_attribute(PortContext.QUEUE_CAPACITY, 8)  # attribute-misplaced
    dag.set_operator_attribute(step, OperatorContext.RECOVERY_ATTEMPTS, "many")  # attribute-invalid


@drawing
def ways_back(dag, conf):
    first, second, delay = dag.add_operator("1", Step()), dag.add_operator("2", Step()), dag.add_operator("d", Delay())
    dag.add_stream("in", dag.add_operator("source", Source()).out, first.one)
    dag.add_stream("on", first.uot, second.one)  # port-unknown
    dag.add_stream("to", second.out, delay.input)
    dag.add_stream("back", delay.output, first.two)
    step, round_ = dag.add_operator("3", Step()), dag.add_operator("e", Delay())
    dag.add_stream("into the loop", dag.add_operator("more", Source()).out, step.onee)  # port-unknown
    dag.add_stream("round", step.out, round_.input)
    dag.add_stream("and back", round_.output, step.two)
    together = AffinityRule(type=AffinityType.AFFINITY, locality=Locality.THREAD_LOCAL, operators=("1", "2"))
    dag.set_attribute(DagContext.AFFINITY_RULES_SET, AffinityRulesSet(affinity_rules=(together,)))


@module("input", "output")
def through(self, dag):
    needy = dag.add_operator("needy", Needy())
    dag.expose(self.input, needy.input)
    dag.expose(self.output, needy.output)


@drawing
def ports_of_a_module(dag, conf):
    source, placed = dag.add_operator("source", Source()), dag.add_module("through", through())
    dag.add_stream("on", source.out, placed.inptu)  # port-unknown
    dag.add_stream("off", placed.output, dag.add_operator("last", Step()).one)
    dag.add_operator("alone", Step())  # root-not-input


@drawing
def a_call_which_ends_the_drawing(dag, conf):
    dag.add_operator("source", Source()).outt(5)  # port-unknown
    dag.add_operator("alone", Step())


@drawing
def a_value_which_ends_the_drawing(dag, conf):
    source = dag.add_operator("source", Source())
    dag.add_operator("checked", Checked(count=source.outt))  # port-unknown
    dag.add_operator("alone", Step())


@drawing
def a_property_which_ends_the_drawing(dag, conf):
    checked = dag.add_operator("checked", Checked())
    dag.add_operator("again", Checked(count=checked.cuont))  # port-unknown
    dag.add_operator("alone", Step())


@drawing
def what_a_stand_in_has_not_and_which_ends_the_drawing(dag, conf):
    source = dag.add_operator("source", Source())
    dag.add_stream("on", source.uot, dag.add_operator("step", Step()).one)  # port-unknown
    dag.add_operator("more", Source()).outt.payload.made(1)  # port-unknown
    dag.add_operator("alone", Step())


@pytest.mark.parametrize("draw", DRAWINGS, ids=lambda draw: draw.__name__.replace("_", " "))
def test_what_is_missing_and_what_comes_after_it_is_reported_and_nothing_else(draw):
    assert [(fault.code, fault.where.line) for fault in told(draw)] == marked(draw)


def inward(self, dag):
    needy = dag.add_operator("needy", Needy())
    dag.expose(self.input, needy.inputt)  # port-unknown
    dag.expose(self.output, needy.output)
    dag.add_operator("alone", Step())  # root-not-input


def outward(self, dag):
    needy = dag.add_operator("needy", Needy())
    dag.expose(self.inputt, needy.input)  # port-unknown
    dag.expose(self.output, needy.output)
    dag.add_operator("alone", Step())  # root-not-input


@pytest.mark.parametrize("exposing", [inward, outward])
def test_what_a_module_exposes_may_be_missing(exposing):
    def draw(dag, conf):
        placed = dag.add_module("module", module("input", "output")(exposing)())
        dag.add_stream("on", dag.add_operator("source", Source()).out, placed.input)
        dag.add_stream("off", placed.output, dag.add_operator("last", Step()).one)

    assert [(fault.code, fault.where.line) for fault in told(draw)] == marked(exposing)


def test_keys_of_the_stream_and_of_the_ports_that_may_be_meant_are_not_reported_as_matching_nothing():
    def draw(dag, conf):
        source, step = dag.add_operator("source", Source()), dag.add_operator("step", Step())
        source.uot.named("records") >> step.oen

    conf = {
        "dt.stream.records.locality": "NODE_LOCAL",
        "dt.operator.step.inputport.one.attr.QUEUE_CAPACITY": 8,
        "dt.operator.source.outputport.out.attr.QUEUE_CAPACITY": 8,
        "dt.operator.source.outputport.out.unifier.attr.TIMEOUT_WINDOW_COUNT": 8,
    }
    assert codes(draw, Config.of(conf)) == ["port-unknown", "port-unknown"]


def test_one_line_that_asks_several_of_one_class_is_reported_once():
    def draw(dag, conf):
        source = dag.add_operator("source", Source())
        for name in ("a", "b", "c"):
            dag.add_stream(name, source.out, dag.add_operator(name, Needy()).inputt)

    assert [problem for problem in problems(draw) if "inputt" in problem] == ["no port 'inputt' on a"]


def test_whether_a_port_is_there_is_answered_truly_in_every_drawing():
    heard = []

    def draw(dag, conf):
        source, step = dag.add_operator("source", Source()), dag.add_operator("step", Step())
        heard.append((hasattr(source, "uot"), getattr(source, "uot", None)))
        dag.add_stream("on", source.uot, step.one)
        heard.append(hasattr(source, "uot"))
        raise LookupError("no such table")

    assert codes(draw) == ["port-unknown", "populate-failed"]
    assert heard == [(False, None), (False, None), False]
    assert problems(draw)[1].endswith("raised LookupError: no such table")
    assert not hasattr(Source(), "uot")
    with pytest.raises(AttributeError, match="'uot'"):
        Dag().add_operator("source", Source()).uot  # noqa: B018 - a Dag that is drawn by hand


def test_an_application_that_draws_to_its_end_is_drawn_once():
    drawings = []

    def draw(dag, conf):
        drawings.append(dag)
        source = dag.add_operator("source", Source())
        try:
            source.uot  # noqa: B018
        except AttributeError:
            dag.add_stream("on", source.out, dag.add_operator("step", Step()).one)

    compile_application(draw)
    assert len(drawings) == 1


@pytest.mark.parametrize("named", ["operator", "stream"])
def test_a_drawing_that_does_not_begin_as_it_did_is_not_believed(named):
    names = iter(["first", "second"])

    def draw(dag, conf):
        called = {"operator": "source", "stream": "on", named: next(names)}
        source = dag.add_operator(called["operator"], Source())
        dag.add_stream(called["stream"], source.out, dag.add_operator("step", Step()).one)
        dag.add_stream("off", source.uot)
        dag.add_operator("alone", Step())

    assert codes(draw) == ["port-unknown"]


class Failing(Source):
    @property
    def outlet(self):
        raise AttributeError("not yet")


def test_what_is_there_and_fails_is_left_as_it_is():
    there = Failing.outlet

    def draw(dag, conf):
        dag.add_stream("on", dag.add_operator("failing", Failing()).outlet)
        dag.add_operator("alone", Step())

    assert codes(draw) == ["port-unknown"]
    assert Failing.outlet is there


def test_the_graph_is_there_up_to_the_laws():
    graph = compile_until("resolved", steps).graph
    assert [node.name for node in graph.nodes] == ["source", "needy", "last"]
    cut, _ = graph.streams
    assert (cut.name, cut.source, cut.cut_short) == ("on", None, True)
