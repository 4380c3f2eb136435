"""What a report suggests can be done, and the line it names is the one that is too many."""

import inspect
from typing import Any

from dagkit import Config, Dag, InputPort, Operator, OutputPort
from dagkit.errors import Severity
from dagkit_operators import PartWriter
from tests.cases import cases
from tests.compiler.cast import Keep, Needy, Source, Step, faults, told
from tests.compiler.sketches import module, sketch


def test_the_end_that_was_led_in_last_is_the_one_too_many():
    dag = sketch("a b step", step=Step)
    early = dag.add_stream("early", dag.operator("a").out)
    dag.add_stream("late", dag.operator("b").out, dag.operator("step").one)
    early.add_sink(dag.operator("step").one)
    (fault,) = faults(dag)
    assert fault.problem == "step.one is already on stream 'late'"
    lines, first = inspect.getsourcelines(test_the_end_that_was_led_in_last_is_the_one_too_many)
    assert "add_sink" in lines[fault.where.line - first]


def _unfed(dag):
    return [fault.help for fault in faults(dag) if fault.code == "input-unconnected"]


def test_no_loop_is_suggested():
    (help_,) = _unfed(sketch("needy>next", needy=Needy))
    assert help_.startswith("connect an output of int to it")


class Sifting(Operator):
    input = InputPort(int)
    output = OutputPort(int)
    rejected = OutputPort(str)

    def process(self, item: int) -> None: ...


def test_unused_outputs_that_fit_are_suggested_the_nearest_first():
    dag = sketch("s>first first>second second>kept", first=Sifting, second=Sifting, kept=Keep[Any]())
    dag.add_operator("refused", PartWriter(file_path="refused"))
    assert _unfed(dag) == ["connect kept.output or second.rejected or first.rejected to it"]


@module("input", "output")
def half(self, dag):
    """Contains an operator with a stream into it, and one without."""
    step, keep = dag.add_operator("step", Step()), dag.add_operator("keep", Keep[int]())
    dag.expose(self.input, step.one)
    dag.expose(self.output, keep.output)


@module("input", "output")
def other_half(self, dag):
    """Holds the same, on lines of its own."""
    step, keep = dag.add_operator("step", Step()), dag.add_operator("keep", Keep[int]())
    dag.expose(self.input, step.one)
    dag.expose(self.output, keep.output)


def test_what_another_module_holds_is_not_suggested():
    dag = Dag()
    for name, held in (("first", half()), ("second", other_half())):
        dag.add_stream(
            f"out of {name}", dag.add_module(name, held).output, dag.add_operator(f"after {name}", Step()).one
        )
    source = dag.add_operator("source", Source())
    dag.add_stream("into both", source.out, dag.operator("first").input, dag.operator("second").input)
    helps = {fault.problem: fault.help for fault in faults(dag)}
    for name in ("first", "second"):
        assert f"connect {name}$step.more or {name}$step.out to it" in helps[f"no stream feeds {name}$keep.input"]


def test_one_key_is_one_advisory_however_many_bear_it():
    def draw(dag, conf):
        for name in "abc":
            dag.add_operator(name, Source())

    (note,) = told(draw, Config.of({"dt.operator.*.attr.MEMORY_MB": 512}))
    assert note.problem == "MEMORY_MB of a and 2 more is accepted, but has no effect here"


def test_a_locality_that_cannot_be_kept_is_reported_with_the_reason():
    dag = sketch("s>one one>two*2")
    dag.stream("s").set_locality("THREAD_LOCAL")
    dag.stream("one").set_locality("CONTAINER_LOCAL")
    driver, exchange = told(dag)
    assert (driver.code, driver.severity) == ("locality-ignored", Severity.ADVISORY)
    assert "s runs on the driver, and one on the workers" in driver.problem
    assert "items change partitions between one and two" in exchange.problem


@cases(
    "mistake, problem, meant",
    ("camel case", lambda dag: dag.addOperator("a", Source()), "has no 'addOperator'", "did you mean 'add_operator'"),
    ("swapped", lambda dag: dag.add_operator(Source(), "a"), "", "did you swap name and operator?"),
    ("a port", lambda dag: dag.add_operator("S", Source()).uot, "no port 'uot' on S", "did you mean 'out'?"),
)
def test_a_mistake_in_a_call_is_reported_with_what_was_meant(mistake, problem, meant):
    (fault,) = faults(lambda dag, conf: mistake(dag))
    assert problem in fault.problem
    assert meant in f"{fault.problem} {fault.help}"
    assert fault.where.file == "tests/compiler/test_suggestions.py"
