"""Ten mistakes in one application are ten diagnostics in one report, each at its line, in the order of declaration."""

import ast
import inspect
import sys
from pathlib import Path
from typing import Any

import pytest

import dagkit
from dagkit import Config, Dag, InputPort, Operator, OutputPort, PortContext, StreamingApplication
from dagkit.compiler import compile_application
from dagkit.compiler.draw import where_of
from dagkit.conf.declared.declarative import declared_application
from dagkit.errors import CODES, ApplicationFaults, Severity
from dagkit_operators import PartWriter
from tests.cases import cases
from tests.compiler.cast import Checked, Count, Keep, Lines, Needy, Settled, Source, Step, faults, told
from tests.compiler.sketches import marked, module, sketch


class Mistakes(StreamingApplication):
    """Each line that ends in a code holds the one mistake that the code names."""

    def populate_dag(self, dag, conf):
        lines = dag.add_operator("lines", Lines())
        source = dag.add_operator("source", Source())
        dotted = dag.add_operator("block.reader", Source())  # name-malformed
        checked = dag.add_operator("checked", Checked(count=1))  # property-invalid
        dag.add_operator("lonely", Step())  # root-not-input
        count = dag.add_operator("count", Count())
        last = dag.add_operator("last", Step())
        settled = dag.add_operator("settled", Settled())
        needy = dag.add_operator("needy", Needy())  # output-unconnected
        dag.add_stream("lines", lines.lines, count.words)  # port-type-mismatch
        dag.add_stream("numbers", source.out, settled.input, needy.input)
        dag.add_stream("lost", dotted.out)  # stream-unread
        dag.add_stream("on", settled.output, Step().one)  # operator-unknown
        dag.add_stream("numbers", checked.out, last.one)  # stream-duplicated
        dag.set_attribute(PortContext.QUEUE_CAPACITY, 8)  # attribute-misplaced
        dag.set_input_port_attribute(settled.input, PortContext.PARTITION_PARALLEL, True)  # partition-forbidden


def test_ten_mistakes_are_ten_diagnostics_in_order_each_with_a_line_and_a_help():
    with pytest.raises(ApplicationFaults) as raised:
        compile_application(Mistakes())
    told, report = raised.value.diagnostics, str(raised.value).splitlines()
    assert [(fault.code, fault.where.line) for fault in told] == marked(Mistakes.populate_dag)
    assert {fault.where.file for fault in told} == {"tests/compiler/test_mistakes.py"}
    assert all(fault.help and "\n" not in fault.help for fault in told)
    line = next(fault.where.line for fault in told if fault.code == "port-type-mismatch")
    joins = "stream 'lines' joins lines.lines (Line) to count.words (Word) [port-type-mismatch]"
    assert report[0] == "Mistakes cannot be compiled: 10 problems"
    assert report[9:11] == [
        f"  tests/compiler/test_mistakes.py:{line}: {joins}",
        "    help: put an operator that turns Line into Word between them",
    ]


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


class Sifting(Operator):
    input = InputPort(int)
    output = OutputPort(int)
    rejected = OutputPort(str)

    def process(self, item: int) -> None: ...


def test_unused_outputs_that_fit_are_suggested_the_nearest_first_and_no_loop_is():
    (help_,) = _unfed(sketch("needy>next", needy=Needy))
    assert help_.startswith("connect an output of int to it")
    dag = sketch("s>first first>second second>kept", first=Sifting, second=Sifting, kept=Keep[Any]())
    dag.add_operator("refused", PartWriter(file_path="refused"))
    assert _unfed(dag) == ["connect kept.output or second.rejected or first.rejected to it"]


@module("input", "output")
def half(self, dag):
    step, keep = dag.add_operator("step", Step()), dag.add_operator("keep", Keep[int]())
    dag.expose(self.input, step.one)
    dag.expose(self.output, keep.output)


@module("input", "output")
def other_half(self, dag):
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
    assert fault.where.file == "tests/compiler/test_mistakes.py"


class Mute(Exception):
    def __str__(self):
        raise RuntimeError


@module()
def leaving(self, dag):
    sys.exit(3)


def leaves(dag, conf):
    sys.exit("enough")


def fails_mutely(dag, conf):
    raise Mute


def yields(dag, conf):
    yield 1


async def waits(dag, conf):
    """A coroutine that nothing awaits."""


def holds_a_broken_module(dag, conf):
    dag.add_module("broken", leaving())


@pytest.mark.parametrize(
    ("populate", "problem"),
    [
        (leaves, "raised SystemExit: enough"),
        (fails_mutely, "raised Mute"),
        (yields, "is a generator"),
        (waits, "is a coroutine"),
        (holds_a_broken_module, "populate_dag of leaving raised SystemExit: 3"),
    ],
)
def test_what_keeps_it_is_reported(populate, problem):
    (fault,) = faults(populate)
    assert fault.code == "populate-failed"
    assert problem in fault.problem
    assert fault.where.file == "tests/compiler/test_mistakes.py"


def test_a_class_in_place_of_an_application_is_reported_and_the_keyboard_interrupts():
    class Words(StreamingApplication):
        def populate_dag(self, dag, conf):
            raise KeyboardInterrupt

    (fault,) = faults(Words)
    assert (fault.problem, fault.help) == ("Words is a class, not an application", "pass Words()")
    with pytest.raises(KeyboardInterrupt):
        compile_application(Words())


def test_a_declared_application_begins_in_its_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    declaring = tmp_path / "declared.json"
    declaring.write_text('{"operators": [{"name": "source", "class": "tests.compiler.cast.Source"}]}')
    where = where_of(declared_application(declaring))
    assert (where.file, where.line) == ("declared.json", None)


SOURCES = [p for p in Path(dagkit.__file__).parent.rglob("*.py") if p.name != "errors.py"]


def _texts(source: Path) -> set[str]:
    nodes = ast.walk(ast.parse(source.read_text()))
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


@pytest.mark.slow
def test_every_code_is_reported_somewhere():
    told = {text for source in SOURCES for text in _texts(source)}
    assert [code for code in CODES if code not in told] == []


def test_codes_are_slugs_and_no_two_are_alike():
    assert len(set(CODES)) == len(CODES)
    assert all(code == code.lower() and code.replace("-", "").isalpha() for code in CODES)
