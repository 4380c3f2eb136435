"""What a report suggests can be done, and the line it names is the one that is too many."""

import inspect
from typing import Any

import pytest

from dagkit import Config, Dag, InputPort, Module, Operator, OperatorContext, OutputPort, StatelessPartitioner
from dagkit.compiler import compile_application
from dagkit.errors import ApplicationFaults, Severity
from dagkit_operators import PartWriter
from tests.compiler.cast import Keep, Needy, Source, Step, faults


def test_the_end_that_was_led_in_last_is_the_one_too_many():
    dag = Dag()
    a, b, step = dag.add_operator("a", Source()), dag.add_operator("b", Source()), dag.add_operator("step", Step())
    early = dag.add_stream("early", a.out)
    dag.add_stream("late", b.out, step.one)
    early.add_sink(step.one)
    (told,) = faults(dag)
    lines, first = inspect.getsourcelines(test_the_end_that_was_led_in_last_is_the_one_too_many)
    assert told.problem == "step.one is already on stream 'late'"
    assert told.where is not None
    assert "add_sink" in lines[(told.where.line or 0) - first]


def test_no_loop_is_suggested():
    dag = Dag()
    needy, after = dag.add_operator("needy", Needy()), dag.add_operator("after", Step())
    dag.add_stream("on", needy.output, after.one)
    (told,) = [fault for fault in faults(dag) if fault.code == "input-unconnected"]
    assert told.help.startswith("connect an output of int to it")


class Sifting(Operator):
    input = InputPort(int)
    output = OutputPort(int)
    rejected = OutputPort(str)

    def process(self, item: int) -> None:
        self.output.emit(item)


def test_unused_outputs_that_fit_are_suggested_the_nearest_first():
    dag = Dag()
    source, first = dag.add_operator("source", Source()), dag.add_operator("first", Sifting())
    second, kept = dag.add_operator("second", Sifting()), dag.add_operator("kept", Keep[Any]())
    dag.add_stream("in", source.out, first.input)
    dag.add_stream("on", first.output, second.input)
    dag.add_stream("out", second.output, kept.input)
    dag.add_operator("refused", PartWriter(file_path="refused"))
    (unfed,) = [fault for fault in faults(dag) if fault.code == "input-unconnected"]
    assert unfed.help == "connect kept.output or second.rejected or first.rejected to it"


class Half(Module):
    """Contains an operator with a stream into it, and one without."""

    entry = InputPort(int)
    exit = OutputPort(int)

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        step, keep = dag.add_operator("step", Step()), dag.add_operator("keep", Keep[int]())
        dag.expose(self.entry, step.one)
        dag.expose(self.exit, keep.output)


class OtherHalf(Half):
    """Holds the same, on lines of its own."""

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        step, keep = dag.add_operator("step", Step()), dag.add_operator("keep", Keep[int]())
        dag.expose(self.entry, step.one)
        dag.expose(self.exit, keep.output)


def test_what_another_module_holds_is_not_suggested():
    dag = Dag()
    source = dag.add_operator("source", Source())
    for name, module in (("first", Half()), ("second", OtherHalf())):
        half = dag.add_module(name, module)
        step = dag.add_operator(f"after {name}", Step())
        dag.add_stream(f"out of {name}", half.exit, step.one)
    dag.add_stream("into both", source.out, dag.operator("first").entry, dag.operator("second").entry)
    told = {fault.problem: fault.help for fault in faults(dag)}
    for name in ("first", "second"):
        fitting = f"connect {name}$step.more or {name}$step.out to it"
        assert fitting in told[f"no stream feeds {name}$keep.input"]


def test_one_key_is_one_advisory_however_many_bear_it():
    def draw(dag: Dag, conf: Config) -> None:
        for name in "abc":
            dag.add_operator(name, Source())

    key = "dt.operator.*.attr.MEMORY_MB"
    (told,) = compile_application(draw, Config.of({key: 512})).notes
    assert told.problem == "MEMORY_MB of a and 2 more is accepted, but has no effect here"


def test_a_locality_that_cannot_be_kept_is_reported_with_the_reason():
    dag = Dag()
    source, one, two = dag.add_operator("s", Source()), dag.add_operator("one", Step()), dag.add_operator("two", Step())
    dag.add_stream("from driver", source.out, one.one).set_locality("THREAD_LOCAL")
    dag.add_stream("exchange", one.out, two.one).set_locality("CONTAINER_LOCAL")
    dag.set_operator_attribute(two, OperatorContext.PARTITIONER, StatelessPartitioner(2))
    driver, exchange = compile_application(dag).notes
    assert (driver.code, driver.severity) == ("locality-ignored", Severity.ADVISORY)
    assert "s runs on the driver, and one on the workers" in driver.problem
    assert "items change partitions between one and two" in exchange.problem


@pytest.mark.parametrize(
    ("slip", "said"),
    [
        (lambda dag: dag.addOperator("a", Source()), r"a Dag has no 'addOperator'(.|\n)*did you mean 'add_operator'"),
        (lambda dag: dag.add_operator(Source(), "a"), r"did you swap name and operator\?"),
        (lambda dag: dag.add_operator("S", Source()).outt, r"no port 'outt' on S "),
    ],
    ids=["camel case", "swapped", "a port of a placed operator"],
)
def test_a_mistake_in_a_call_is_reported_with_what_was_meant(slip, said):
    def draw(dag: Dag, conf: Config) -> None:
        slip(dag)

    with pytest.raises(ApplicationFaults, match=said):
        compile_application(draw)
