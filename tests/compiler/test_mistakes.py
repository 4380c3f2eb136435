"""Ten mistakes in one application are ten diagnostics in one report, each at its line, in the order of declaration."""

import inspect

import pytest

from dagkit import Config, Dag, PortContext, StreamingApplication
from dagkit.compiler import compile_application
from dagkit.errors import ApplicationFaults
from tests.compiler.cast import Checked, Count, Lines, Needy, Settled, Source, Step


class Mistakes(StreamingApplication):
    """Each line that ends in a code holds the one mistake that the code names."""

    def populate_dag(self, dag: Dag, conf: Config) -> None:
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


def _marked() -> list[tuple[int, str]]:
    """The lines that hold a mistake, and what it is."""
    source, first = inspect.getsourcelines(Mistakes.populate_dag)
    return [(first + i, line.rpartition("  # ")[2].strip()) for i, line in enumerate(source) if "  # " in line]


@pytest.fixture(scope="module")
def told():
    with pytest.raises(ApplicationFaults, match="Mistakes cannot be compiled: 10 problems") as raised:
        compile_application(Mistakes())
    return raised.value.diagnostics


def test_ten_mistakes_are_ten_diagnostics_in_order(told):
    assert len(_marked()) == 10
    assert [(fault.where.line if fault.where else None, fault.code) for fault in told] == _marked()


def test_each_has_the_authors_file_and_a_help_line(told):
    assert {fault.where.file for fault in told if fault.where} == {"tests/compiler/test_mistakes.py"}
    assert all(fault.help and "\n" not in fault.help for fault in told)


def test_the_report_is_what_people_read():
    with pytest.raises(ApplicationFaults, match="10 problems") as raised:
        compile_application(Mistakes())
    lines = str(raised.value).splitlines()
    (line,) = [number for number, code in _marked() if code == "port-type-mismatch"]
    assert lines[0] == "Mistakes cannot be compiled: 10 problems"
    assert lines[9:11] == [
        (
            f"  tests/compiler/test_mistakes.py:{line}: "
            "stream 'lines' joins lines.lines (Line) to count.words (Word) [port-type-mismatch]"
        ),
        "    help: put an operator that turns Line into Word between them",
    ]
