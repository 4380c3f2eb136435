"""Modules: what they hold takes their place, under names that begin with theirs."""

from typing import Any

import numpy as np
from pydantic import PositiveInt

from dagkit import (
    Config,
    Dag,
    DagContext,
    InputPort,
    Module,
    OperatorContext,
    OutputPort,
    PortContext,
    StatelessPartitioner,
    StreamingApplication,
)
from dagkit.compiler import compile_until
from dagkit.plan.model import Plan
from tests.cases import cases
from tests.compiler.cast import Needy, Source, Step, codes, compiled, faults


class Twice(Module):
    """Two steps in a row."""

    input = InputPort(int)
    output = OutputPort(int)

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        first, second = dag.add_operator("first", Step()), dag.add_operator("second", Step())
        dag.add_stream("between", first.out, second.one)
        dag.expose(self.input, first.one)
        dag.expose(self.output, second.out)


class Outer(Module):
    """A module in a module, and a step after it."""

    input = InputPort(int)
    output = OutputPort(int)

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        inner, last = dag.add_module("Inner", Twice()), dag.add_operator("last", Step())
        dag.add_stream("on", inner.output, last.one)
        dag.expose(self.input, inner.input)
        dag.expose(self.output, last.out)


class Fork(Module):
    """One input that two operators read."""

    input = InputPort(int)

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        for name in ("left", "right"):
            dag.expose(self.input, dag.add_operator(name, Step()).one)


class Shut(Module):
    """Ports that nothing stands behind."""

    input = InputPort(int)
    output = OutputPort(int)

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        dag.expose(self.output, dag.add_operator("source", Source()).out)


class Feeder(Module):
    """A source with a configured number of steps."""

    output = OutputPort(int)
    steps: PositiveInt = 1

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        outlet = dag.add_operator("source", Source()).out
        for number in range(self.steps):
            step = dag.add_operator(f"step {number}", Step())
            dag.add_stream(f"to {number}", outlet, step.one)
            outlet = step.out
        dag.expose(self.output, outlet)


class Endless(Module):
    """A module that contains itself."""

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        dag.add_module("again", Endless())


class Deeper(Module):
    """One that holds one of its kind, though never quite itself."""

    depth: int = 0

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        dag.add_module("in", Deeper(depth=self.depth + 1))


class Nested(Module):
    """A module that contains a configured number of its kind."""

    output = OutputPort(int)
    depth: int

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        inner = dag.add_module("in", Nested(depth=self.depth - 1)) if self.depth else dag.add_module("in", Feeder())
        dag.expose(self.output, inner.output)


class Forgetful(Module):
    """One that exposes a port of an operator it never added."""

    input = InputPort(int)

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        dag.add_operator("source", Source())
        dag.expose(self.input, Step().one)


class Broken(Module):
    """One that does not come to the end."""

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        dag.add_operator("source", Source())
        raise RuntimeError("half way")


def _around(module: Module) -> Dag:
    """A source into the module, and the module into a sink."""
    dag = Dag()
    source, placed, sink = dag.add_operator("source", Source()), dag.add_module("M", module), Step()
    dag.add_operator("sink", sink)
    dag.add_stream("in", source.out, placed.input)
    dag.add_stream("out", placed.output, sink.one)
    return dag


def _streams(plan: Plan) -> dict[str, str]:
    return {s.name: f"{s.source} > {', '.join(map(str, s.sinks))}" for s in plan.streams}


def test_a_modules_operators_take_its_place():
    plan = compiled(_around(Twice())).plan
    assert [operator.name for operator in plan.operators] == ["source", "M$first", "M$second", "sink"]
    assert _streams(plan) == {
        "in": "source.out > M$first.one",
        "M$between": "M$first.out > M$second.one",
        "out": "M$second.out > sink.one",
    }


def test_modules_nest_and_so_do_names():
    plan = compiled(_around(Outer())).plan
    assert [o.name for o in plan.operators] == ["source", "M$Inner$first", "M$Inner$second", "M$last", "sink"]
    assert _streams(plan) == {
        "in": "source.out > M$Inner$first.one",
        "M$Inner$between": "M$Inner$first.out > M$Inner$second.one",
        "M$on": "M$Inner$second.out > M$last.one",
        "out": "M$last.out > sink.one",
    }


def test_a_module_costs_nothing_once_it_is_compiled():
    by_hand = Dag()
    source, first, second, sink = Source(), Step(), Step(), Step()
    for name, operator in (("source", source), ("M$first", first), ("M$second", second), ("sink", sink)):
        by_hand.add_operator(name, operator)
    by_hand.add_stream("in", source.out, first.one)
    by_hand.add_stream("M$between", first.out, second.one)
    by_hand.add_stream("out", second.out, sink.one)
    assert compiled(_around(Twice())).plan == compiled(by_hand).plan


def test_one_port_of_a_module_may_lead_to_several_inside():
    dag = Dag()
    dag.add_stream("in", dag.add_operator("source", Source()).out, dag.add_module("M", Fork()).input)
    assert _streams(compiled(dag).plan) == {"in": "source.out > M$left.one, M$right.one"}


def test_two_modules_of_one_class_stand_side_by_side():
    dag = Dag()
    a, b = dag.add_module("A", Feeder()), dag.add_module("B", Feeder(steps=2))
    sink = dag.add_operator("sink", Step())
    dag.add_stream("a", a.output, sink.one)
    dag.add_stream("b", b.output, sink.two)
    assert [o.name for o in compiled(dag).plan.operators] == [
        "A$source",
        "A$step 0",
        "B$source",
        "B$step 0",
        "B$step 1",
        "sink",
    ]


def test_attributes_of_a_module_hold_for_what_is_inside_unless_set_there():
    class Slow(Twice):
        def populate_dag(self, dag: Dag, conf: Config) -> None:
            super().populate_dag(dag, conf)
            dag.set_operator_attribute(dag.operator("second"), OperatorContext.TIMEOUT_WINDOW_COUNT, 7)

    dag = _around(Slow())
    dag.set_operator_attribute(dag.operator("M"), OperatorContext.TIMEOUT_WINDOW_COUNT, 5)
    plan = compiled(dag).plan
    assert {o.name: o.attributes.get("TIMEOUT_WINDOW_COUNT") for o in plan.operators} == {
        "source": None,
        "M$first": 5,
        "M$second": 7,
        "sink": None,
    }


def test_attributes_of_a_modules_ports_hold_for_the_ports_behind_them_however_deep():
    dag = _around(Outer())
    module = dag.operator("M")
    dag.set_input_port_attribute(module.input, PortContext.QUEUE_CAPACITY, 8)
    dag.set_output_port_attribute(module.output, PortContext.UNIFIER_LIMIT, 2)
    dag.set_unifier_attribute(module.output, OperatorContext.TIMEOUT_WINDOW_COUNT, 3)
    dag.set_operator_attribute(module, OperatorContext.PARTITIONER, StatelessPartitioner(3))
    plan = compiled(dag).plan
    ports = {f"{o.name}.{p.name}": dict(p.attributes) for o in plan.operators for p in o.ports if p.attributes}
    assert ports == {"M$Inner$first.one": {"QUEUE_CAPACITY": 8}, "M$last.out": {"UNIFIER_LIMIT": 2}}
    (out,) = [stream for stream in plan.streams if stream.name == "out"]
    assert {(u.level, u.attributes["TIMEOUT_WINDOW_COUNT"]) for u in out.unifiers} == {(0, 3), (1, 3)}
    assert {o.name: o.count for o in plan.operators} == {
        "source": 1,
        "M$Inner$first": 3,
        "M$Inner$second": 3,
        "M$last": 3,
        "sink": 1,
    }


def test_a_stream_to_a_port_that_nothing_stands_behind_is_the_one_fault():
    (fault,) = faults(_around(Shut()))
    assert fault.code == "port-unexposed"
    assert fault.problem == "stream 'in' is connected to M.input, but the module exposes nothing there"
    assert fault.help == "in populate_dag of Shut, call dag.expose(self.input, …)"


@cases(
    "module, told",
    (
        "an operator never added is exposed",
        Forgetful(),
        ["operator-unknown: Step.one is exposed, but its operator was never added to the module"],
    ),
    ("it does not finish", Broken(), ["populate-failed: populate_dag of Broken raised RuntimeError: half way"]),
    ("a property is wrong", Feeder(steps=0), ["property-invalid: M.steps cannot be 0: input should be greater than 0"]),
    ("it holds deeper ones", Deeper(), ["populate-failed: module M contains modules more than 100 deep"]),
    ("it contains itself", Endless(), ["populate-failed: module M never ends: Endless contains itself"]),
)
def test_what_is_wrong_with_a_module_is_reported(module, told):
    dag = Dag()
    dag.add_module("M", module)
    assert [f"{fault.code}: {fault.problem}" for fault in faults(dag)] == told


def test_what_is_wrong_inside_a_module_is_reported_by_its_full_name():
    class Hungry(Module):
        def populate_dag(self, dag: Dag, conf: Config) -> None:
            dag.add_operator("needy", Needy())

    dag = Dag()
    dag.add_module("M", Hungry())
    assert [fault.problem for fault in faults(dag)] == [
        "no stream feeds M$needy.input",
        "no stream reads M$needy.output, which must be connected",
    ]


def test_a_name_that_a_module_makes_may_be_taken():
    dag = _around(Twice())
    taken = dag.add_operator("M$first", Step())
    dag.add_stream("M$between", dag.operator("sink").out, taken.one)
    assert codes(dag) == ["operator-duplicated", "stream-duplicated"]


def test_the_drawn_form_holds_the_module_and_the_expanded_one_what_is_in_it():
    compilation = compile_until("expanded", _around(Twice()))
    drawn, expanded = compilation.steps["drawn"], compilation.steps["expanded"]
    assert [node.name for node in drawn.nodes] == ["source", "M", "sink"]
    assert [n.name for n in expanded.nodes] == ["source", "M$first", "M$second", "sink"]


def test_a_module_meets_the_configuration_of_the_launch():
    class Asks(Module):
        def populate_dag(self, dag: Dag, conf: Config) -> None:
            dag.add_operator(conf["name"], Source())

    class App(StreamingApplication):
        def populate_dag(self, dag: Dag, conf: Config) -> None:
            dag.add_module("M", Asks())

    compilation = compile_until("ordered", App(), Config.of({"name": "asked"}))
    assert [operator.name for operator in compilation.plan.operators] == ["M$asked"]


def test_a_module_may_hold_others_of_its_kind_as_long_as_it_comes_to_an_end():
    dag = Dag()
    dag.add_stream("out", dag.add_module("M", Nested(depth=3)).output, dag.add_operator("sink", Step()).one)
    assert [o.name for o in compiled(dag).plan.operators] == ["M$in$in$in$in$source", "M$in$in$in$in$step 0", "sink"]


def test_operator_attributes_that_a_module_sets_for_all_hold_inside_it():
    class Patient(Twice):
        def populate_dag(self, dag: Dag, conf: Config) -> None:
            super().populate_dag(dag, conf)
            dag.set_attribute(OperatorContext.TIMEOUT_WINDOW_COUNT, 9)

    plan = compiled(_around(Patient())).plan
    assert {o.name: o.attributes.get("TIMEOUT_WINDOW_COUNT") for o in plan.operators} == {
        "source": None,
        "M$first": 9,
        "M$second": 9,
        "sink": None,
    }


def test_a_module_cannot_set_what_belongs_to_the_application():
    class Bossy(Twice):
        def populate_dag(self, dag: Dag, conf: Config) -> None:
            super().populate_dag(dag, conf)
            dag.set_attribute(DagContext.STREAMING_WINDOW_SIZE_MILLIS, 9)

    assert [fault.problem for fault in faults(_around(Bossy()))] == [
        "DAGContext.STREAMING_WINDOW_SIZE_MILLIS is set in module M, but it belongs to the application"
    ]


class Shortening(Module):
    """Holds others of its class, each with a shorter array, until none is left."""

    output = OutputPort(int)
    left: Any = None

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        if not len(self.left):
            dag.expose(self.output, dag.add_operator("source", Source()).out)
        else:
            dag.expose(self.output, dag.add_module("inner", Shortening(left=self.left[1:])).output)


def test_modules_in_one_another_are_distinguished_by_arrays():
    dag = Dag()
    nested = dag.add_module("nested", Shortening(left=np.array([1, 2, 3])))
    dag.add_stream("on", nested.output, dag.add_operator("last", Step()).one)
    assert compiled(dag).plan.operators[0].name == "nested$inner$inner$inner$source"


ELSEWHERE = Twice()


class Stranger(Module):
    """Exposes the port of another module as its own."""

    input = InputPort(int)

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        dag.expose(ELSEWHERE.input, dag.add_operator("step", Step()).one)


def test_a_module_exposes_ports_of_its_own():
    dag = Dag()
    dag.add_stream("on", dag.add_operator("source", Source()).out, dag.add_module("stranger", Stranger()).input)
    fault = faults(dag)[0]
    assert fault.code == "operator-unknown"
    assert fault.problem == "module stranger exposes Twice.input, which is not a port of the module"
    assert fault.where is not None
