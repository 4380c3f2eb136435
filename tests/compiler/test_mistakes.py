"""Ten mistakes in one application are ten diagnostics in one report, each at its line, in the order of declaration."""

import pytest

from dagkit import PortContext, StreamingApplication
from dagkit.compiler import compile_application
from dagkit.errors import ApplicationFaults
from tests.compiler.cast import Checked, Count, Lines, Needy, Settled, Source, Step
from tests.compiler.sketches import marked


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
