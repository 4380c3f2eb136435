"""Sketches: graphs drawn as strings, or from their first operator.

    a>b      a feeds b; what nothing feeds is a source
    a>b*3    b runs as three partitions
    a=>b     b mirrors the partitions of a
    a>~d     d is a delay

One operator feeds all its readers by one stream, called as the operator is. An operator's inputs are taken in the
order of the edges: one, two, three, four.
"""

import inspect
import re

from dagkit import Dag, InputPort, Module, OperatorContext, OutputPort, PortContext, StatelessPartitioner
from dagkit.api.ports import input_ports
from tests.compiler.cast import Delay, Source, Step

_EDGE = re.compile(r"(?P<source>~?\w+)(\*(?P<sent>\d+))?(?P<arrow>=?>)(?P<sink>~?\w+)(\*(?P<taken>\d+))?")


def sketch(edges, dag=None):
    """The Dag that these edges draw, with blanks between them."""
    dag = Dag() if dag is None else dag
    matches = [_EDGE.fullmatch(edge) for edge in edges.split()]
    assert all(matches), f"not every one of {edges} is an edge"
    fed = {edge["sink"] for edge in matches}
    operators = {}
    for name in dict.fromkeys(name for edge in matches for name in (edge["source"], edge["sink"])):
        operator = Delay() if name.startswith("~") else Step() if name in fed else Source()
        operators[name] = dag.add_operator(name.removeprefix("~"), operator)
    streams, open_inputs = {}, {name: iter(("one", "two", "three", "four")) for name in operators}
    for edge in matches:
        source, sink = edge["source"], edge["sink"]
        if source not in streams:
            outlet = operators[source].output if source.startswith("~") else operators[source].out
            streams[source] = dag.add_stream(source.removeprefix("~"), outlet)
        inlet = getattr(operators[sink], "input" if sink.startswith("~") else next(open_inputs[sink]))
        streams[source].add_sink(inlet)
        if edge["arrow"] == "=>":
            dag.set_input_port_attribute(inlet, PortContext.PARTITION_PARALLEL, True)
        for name, count in ((source, edge["sent"]), (sink, edge["taken"])):
            if count:
                partition(dag, operators[name], int(count))
    return dag


def partition(dag, operator, count):
    """Let an operator run as so many partitions."""
    dag.set_operator_attribute(operator, OperatorContext.PARTITIONER, StatelessPartitioner(count))


def fed(dag, name, operator=None):
    """An operator, a Step unless it is given, whose first input a source feeds."""
    source = dag.add_operator(f"source of {name}", Source())
    operator = dag.add_operator(name, operator or Step())
    dag.add_stream(f"into {name}", source.out, getattr(operator, next(iter(input_ports(type(operator))))))
    return operator


def followed(dag, operator, outlet="out"):
    """An operator whose output a Step reads."""
    dag.add_stream("out", getattr(operator, outlet), dag.add_operator("next", Step()).one)
    return operator


def steps(dag, names):
    """Steps of these names, which letters or words are."""
    return [dag.add_operator(name, Step()) for name in names]


def in_a_row(*operators):
    """A Dag in which each operator feeds the next, by main ports."""
    dag = Dag()
    first, *others = (
        dag.add_operator(f"{n} {type(operator).__name__}", operator) for n, operator in enumerate(operators)
    )
    for operator in others:
        first = first >> operator
    return dag


def module(*ports):
    """Make a class of modules of a function that draws one; its ports are of numbers."""

    def made(draw):
        def populate_dag(self, dag, conf):
            draw(self, dag)

        kinds = {"input": InputPort, "output": OutputPort}
        members = {"populate_dag": populate_dag, "__module__": draw.__module__, "__doc__": draw.__doc__}
        return type(draw.__name__, (Module,), members | {name: kinds[name](int) for name in ports})

    return made


def marked(draw):
    """The codes that stand behind the lines of a drawing, with their numbers."""
    lines, first = inspect.getsourcelines(draw)
    marks = [line.rpartition("  # ")[2] if "  # " in line else "" for line in lines]
    return [(code, number) for number, mark in enumerate(marks, first) for code in mark.split()]
