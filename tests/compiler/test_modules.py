"""Modules: what they hold takes their place, under names that begin with theirs."""

from typing import Any

import numpy as np
import pytest
from pydantic import Field, PositiveInt

from dagkit import Config, Dag, DagContext, Module, OperatorContext, OutputPort, PortContext, ProcessingMode
from dagkit.compiler import compile_application, compile_until
from dagkit.compiler.alike import merge_alike
from dagkit.errors import Diagnostic, Where
from dagkit.graph import Graph, Node
from tests.cases import cases
from tests.compiler.cast import Checked, Deal, Needy, Source, Split, Step, codes, compiled, faults, problems
from tests.compiler.sketches import module, partition, sketch


def two_steps(self, dag):
    first, second = dag.add_operator("first", Step()), dag.add_operator("second", Step())
    dag.add_stream("between", first.out, second.one)
    dag.expose(self.input, first.one)
    dag.expose(self.output, second.out)


twice = module("input", "output")(two_steps)


@module("input", "output")
def outer(self, dag):
    inner, last = dag.add_module("Inner", twice()), dag.add_operator("last", Step())
    dag.add_stream("on", inner.output, last.one)
    dag.expose(self.input, inner.input)
    dag.expose(self.output, last.out)


@module("input")
def fork(self, dag):
    for name in ("left", "right"):
        dag.expose(self.input, dag.add_operator(name, Step()).one)


@module("input", "output")
def shut(self, dag):
    dag.expose(self.output, dag.add_operator("source", Source()).out)


@module()
def endless(self, dag):
    dag.add_module("again", endless())


@module("input")
def forgetful(self, dag):
    dag.add_operator("source", Source())
    dag.expose(self.input, Step().one)


@module()
def broken(self, dag):
    dag.add_operator("source", Source())
    raise RuntimeError("half way")


@module("input")
def stranger(self, dag):
    """Exposes the port of another module as its own."""
    dag.expose(ELSEWHERE.input, dag.add_operator("step", Step()).one)


@module()
def hungry(self, dag):
    dag.add_operator("needy", Needy())


@module("input", "output")
def slow(self, dag):
    two_steps(self, dag)
    dag.set_operator_attribute(dag.operator("second"), OperatorContext.TIMEOUT_WINDOW_COUNT, 7)


@module("input", "output")
def patient(self, dag):
    two_steps(self, dag)
    dag.set_attribute(OperatorContext.TIMEOUT_WINDOW_COUNT, 9)


class Feeder(Module):
    output = OutputPort(int)
    steps: PositiveInt = 1

    def populate_dag(self, dag, conf):
        outlet = dag.add_operator("source", Source()).out
        for number in range(self.steps):
            step = dag.add_operator(f"step {number}", Step())
            dag.add_stream(f"to {number}", outlet, step.one)
            outlet = step.out
        dag.expose(self.output, outlet)


class Deeper(Module):
    """Holds one of its kind, though never quite itself."""

    depth: int = 0

    def populate_dag(self, dag, conf):
        dag.add_module("in", Deeper(depth=self.depth + 1))


class Shortening(Module):
    """Holds others of its class, each with less left, until a feeder is left."""

    output = OutputPort(int)
    left: Any = None

    def populate_dag(self, dag, conf):
        inner = Shortening(left=self.left[1:]) if len(self.left) else Feeder()
        dag.expose(self.output, dag.add_module("in", inner).output)


class Asks(Module):
    def populate_dag(self, dag, conf):
        dag.add_operator(conf["name"], Source())


ELSEWHERE = twice()


def _holding(held):
    """A source into the module, if it has an input, and the module into a sink, if it has an output."""
    dag = Dag()
    source, placed = dag.add_operator("source", Source()), dag.add_module("M", held)
    if hasattr(held, "input"):
        dag.add_stream("in", source.out, placed.input)
    if hasattr(held, "output"):
        dag.add_stream("out", placed.output, dag.add_operator("sink", Step()).one)
    return dag


def _names(dag):
    return [operator.name for operator in compiled(dag).plan.operators]


def _streams(dag):
    return {s.name: f"{s.source} > {', '.join(map(str, s.sinks))}" for s in compiled(dag).plan.streams}


def test_a_modules_operators_take_its_place_and_it_costs_nothing_once_it_is_compiled():
    by_hand, source, first, second, sink = Dag(), Source(), Step(), Step(), Step()
    for name, operator in (("source", source), ("M$first", first), ("M$second", second), ("sink", sink)):
        by_hand.add_operator(name, operator)
    by_hand.add_stream("in", source.out, first.one)
    by_hand.add_stream("M$between", first.out, second.one)
    by_hand.add_stream("out", second.out, sink.one)
    assert compiled(_holding(twice())).plan == compiled(by_hand).plan


def test_modules_nest_and_so_do_names_and_one_port_may_lead_to_several_inside():
    assert _names(_holding(outer())) == ["source", "M$Inner$first", "M$Inner$second", "M$last", "sink"]
    assert _streams(_holding(outer())) == {
        "in": "source.out > M$Inner$first.one",
        "M$Inner$between": "M$Inner$first.out > M$Inner$second.one",
        "M$on": "M$Inner$second.out > M$last.one",
        "out": "M$last.out > sink.one",
    }
    assert _streams(_holding(fork())) == {"in": "source.out > M$left.one, M$right.one"}
    steps = compile_until("expanded", _holding(twice())).steps
    assert [node.name for node in steps["drawn"].nodes] == ["source", "M", "sink"]
    assert [node.name for node in steps["expanded"].nodes] == ["source", "M$first", "M$second", "sink"]


def _timeouts(dag):
    return {o.name: o.attributes.get("TIMEOUT_WINDOW_COUNT") for o in compiled(dag).plan.operators}


def test_attributes_of_a_module_and_those_that_it_sets_for_all_hold_inside_unless_set_there():
    dag = _holding(slow())
    dag.set_operator_attribute(dag.operator("M"), OperatorContext.TIMEOUT_WINDOW_COUNT, 5)
    assert _timeouts(dag) == {"source": None, "M$first": 5, "M$second": 7, "sink": None}
    assert _timeouts(_holding(patient())) == {"source": None, "M$first": 9, "M$second": 9, "sink": None}


def test_attributes_of_a_modules_ports_hold_for_the_ports_behind_them_however_deep():
    dag = _holding(outer())
    module = dag.operator("M")
    dag.set_input_port_attribute(module.input, PortContext.QUEUE_CAPACITY, 8)
    dag.set_output_port_attribute(module.output, PortContext.UNIFIER_LIMIT, 2)
    dag.set_unifier_attribute(module.output, OperatorContext.TIMEOUT_WINDOW_COUNT, 3)
    partition(dag, module, 3)
    plan = compiled(dag).plan
    ports = {f"{o.name}.{p.name}": dict(p.attributes) for o in plan.operators for p in o.ports if p.attributes}
    assert ports == {"M$Inner$first.one": {"QUEUE_CAPACITY": 8}, "M$last.out": {"UNIFIER_LIMIT": 2}}
    (out,) = [stream for stream in plan.streams if stream.name == "out"]
    assert {(u.level, u.attributes["TIMEOUT_WINDOW_COUNT"]) for u in out.unifiers} == {(0, 3), (1, 3)}
    inside = dict.fromkeys(("M$Inner$first", "M$Inner$second", "M$last"), 3)
    assert {o.name: o.count for o in plan.operators} == {"source": 1, **inside, "sink": 1}


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        (forgetful(), ["operator-unknown: Step.one is exposed, but its operator was never added to the module"]),
        (broken(), ["populate-failed: populate_dag of broken raised RuntimeError: half way"]),
        (Feeder(steps=0), ["property-invalid: M.steps cannot be 0: input should be greater than 0"]),
        (Deeper(), ["populate-failed: module M contains modules more than 100 deep"]),
        (endless(), ["populate-failed: module M never ends: endless contains itself"]),
        (stranger(), ["operator-unknown: module M exposes two_steps.input, which is not", "root-not", "port-un"]),
        (shut(), ["port-unexposed: stream 'in' is connected to M.input, but the module exposes nothing there"]),
        (hungry(), ["input-unconnected: no stream feeds M$needy.input", "output-unconnected: no stream reads M$needy"]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_wrong_with_a_module_is_reported(held, expected):
    told = faults(_holding(held))
    assert len(told) == len(expected)
    for fault, beginning in zip(told, expected, strict=True):
        assert f"{fault.code}: {fault.problem}".startswith(beginning)
        assert fault.where
    assert told[0].help == "in populate_dag of shut, call dag.expose(self.input, …)" or not isinstance(held, shut)


def test_a_name_that_a_module_makes_may_be_taken():
    dag = _holding(twice())
    taken = dag.add_operator("M$first", Step())
    dag.add_stream("M$between", dag.operator("sink").out, taken.one)
    assert codes(dag) == ["operator-duplicated", "stream-duplicated"]


def test_two_modules_of_one_class_stand_side_by_side_and_each_meets_the_configuration():
    dag = Dag()
    sink = dag.add_operator("sink", Step())
    dag.add_stream("a", dag.add_module("A", Feeder()).output, sink.one)
    dag.add_stream("b", dag.add_module("B", Feeder(steps=2)).output, sink.two)
    assert _names(dag) == ["A$source", "A$step 0", "B$source", "B$step 0", "B$step 1", "sink"]
    plan = compile_application(lambda dag, conf: dag.add_module("M", Asks()), Config.of({"name": "asked"})).plan
    assert [operator.name for operator in plan.operators] == ["M$asked"]


@cases("left", ("text", "abc"), ("an array", np.array([1, 2, 3])))
def test_a_module_may_hold_others_of_its_kind_as_long_as_it_comes_to_an_end(left):
    assert "M$in$in$in$in$step 0" in _names(_holding(Shortening(left=left)))


@module("output")
def leading_out(self, dag):
    dag.expose(self.output, dag.add_operator("needy", Needy()).output)


@module()
def nest(self, dag):
    for name in ("left", "right"):
        step = dag.add_operator(f"after {name}", Step())
        dag.add_stream(f"on {name}", dag.add_module(name, leading_out()).output, step.one)


class Counting(Module):
    count: int = Field(default=2)

    def populate_dag(self, dag, conf):
        dag.add_operator("checked", Checked(count=self.count))


@module("input")
def splitting(self, dag):
    dag.expose(self.input, dag.add_operator("split", Split()).lines)


@module()
def mismatched(self, dag):
    """Leads one stream into two modules, of which neither takes what flows."""
    a, b = dag.add_module("a", splitting()), dag.add_module("b", splitting())
    dag.add_stream("numbers", dag.add_operator("source", Source()).out, a.input, b.input)


@module()
def losing(self, dag):
    source = sketch("source>step", dag).operator("source")
    dag.set_operator_attribute(source, OperatorContext.PROCESSING_MODE, ProcessingMode.AT_MOST_ONCE)


@module()
def overbearing(self, dag):
    dag.add_operator("source", Source())
    dag.set_attribute(DagContext.STREAMING_WINDOW_SIZE_MILLIS, 2)


@module()
def dealt(self, dag):
    step = sketch("s>step", dag).operator("step")
    dag.set_operator_attribute(step, OperatorContext.PARTITIONER, Deal(0))


def _used(*modules):
    dag = Dag()
    for name, held in zip("ABCDEFGHIJ", modules, strict=False):
        dag.add_module(name, held)
    return dag


def test_a_breach_inside_a_module_that_is_used_twice_is_reported_once_with_both_places():
    dag = _used(leading_out(), leading_out())
    for name in "AB":
        dag.add_stream(f"out of {name}", dag.operator(name).output, dag.add_operator(f"after {name}", Step()).one)
    (fault,) = faults(dag)
    assert (fault.code, fault.problem) == ("input-unconnected", "no stream feeds A$needy.input; likewise in B")
    assert fault.where.file == "tests/compiler/test_modules.py"


def test_modules_in_modules_are_reported_by_their_full_names_some_of_very_many_and_the_rest_is_counted():
    told = "no stream feeds A$left$needy.input; likewise in A$right, B$left"
    assert problems(_used(nest(), nest())) == [f"{told} and B$right"]
    assert problems(_used(*(nest() for _ in range(5)))) == [f"{told}, B$right, C$left, C$right and 4 more"]


def test_faults_that_differ_in_more_than_the_module_stay_apart_and_so_do_those_of_the_application_itself():
    wrong = "{} cannot be {}: input should be greater than or equal to {}"
    assert compile_application(_used(Counting(), Counting())).notes == ()
    assert problems(_used(Counting(count=1), Counting(count=2))) == [wrong.format("A$checked.count", 1, 2)]
    assert problems(_used(Counting(count=1), Counting(count=0))) == [
        wrong.format("A$checked.count", 1, 2),
        wrong.format("B$checked.count", 0, 2),
    ]
    dag = sketch("a>after_a b>after_b", a=Needy, b=Needy)
    assert problems(dag) == ["no stream feeds a.input", "no stream feeds b.input"]


def test_what_one_module_says_of_two_others_stays_two_faults():
    told = problems(_used(mismatched(), mismatched()))
    assert [problem.partition(" (")[0] for problem in told] == ["stream 'A$numbers' joins A$source.out"] * 2
    assert all(problem.endswith("; likewise in B") for problem in told)


def test_faults_before_the_laws_in_drawing_and_of_partitions_are_reported_once_too():
    notes = compile_until("resolved", _used(losing(), losing())).notes
    assert [note.problem for note in notes] == [
        "A$step becomes AT_MOST_ONCE, because A$source feeds it and is AT_MOST_ONCE; likewise in B"
    ]
    assert problems(_used(overbearing(), overbearing())) == [
        "DAGContext.STREAMING_WINDOW_SIZE_MILLIS is set in module A, but it belongs to the application; likewise in B"
    ]
    assert problems(_used(dealt(), dealt())) == ["the Deal of A$step returned no partitions; likewise in B"]


def test_names_that_end_alike_are_distinguished():
    where, names = Where("app.py", 1), ("A$x", "BA$x", "A$C$x")
    graph = Graph("app", tuple(Node(name, Step(), where) for name in names))
    told = [Diagnostic("input-unconnected", f"no stream feeds {name}.one", "", where) for name in names]
    assert [once.problem for once in merge_alike(told, graph)] == ["no stream feeds A$x.one; likewise in BA and A$C"]
