"""Sketches: graphs drawn as strings, or from their first operator.

    a>b      a feeds b; what nothing feeds is a source
    a>b*3    b runs as three partitions
    a=>b     b mirrors the partitions of a
    a>~d     d is a delay
    a.x>b.y  output x of a feeds input y of b
    a        a alone

One output feeds all its readers by one stream, called as the operator is, and as the output if that is named. The first
output is meant, and inputs are taken in the order of the edges, unless they are named.
"""

import inspect
import re

from dagkit import Dag, InputPort, Module, OperatorContext, OutputPort, PortContext, StatelessPartitioner
from dagkit.api.ports import input_ports, output_ports
from tests.compiler.cast import Delay, Source, Step

_EDGE = re.compile(
    r"(?P<source>~?\w+)(\.(?P<out>\w+))?(\*(?P<sent>\d+))?"
    r"((?P<arrow>=?>)(?P<sink>~?\w+)(\.(?P<into>\w+))?(\*(?P<taken>\d+))?)?"
)


def sketch(edges, dag=None, **given):
    """The Dag that these edges draw, with blanks between them. Operators may be given by name, or their classes."""
    dag = Dag() if dag is None else dag
    matches = [_EDGE.fullmatch(edge) for edge in edges.split()]
    assert all(matches), f"not every one of {edges} is an edge"
    fed = {edge["sink"] for edge in matches}
    operators = {}
    for name in dict.fromkeys(name for edge in matches for name in (edge["source"], edge["sink"]) if name):
        made = given.get(name) or (Delay if name.startswith("~") else Step if name in fed else Source)
        operators[name] = dag.add_operator(name.removeprefix("~"), made() if isinstance(made, type) else made)
    streams, open_inputs = {}, {name: iter(input_ports(type(operator))) for name, operator in operators.items()}
    for edge in matches:
        source, sink, out = edge["source"], edge["sink"], edge["out"]
        for name, count in ((source, edge["sent"]), (sink, edge["taken"])):
            if count:
                partition(dag, operators[name], int(count))
        if sink is None:
            continue
        if (source, out) not in streams:
            outlet = getattr(operators[source], out or next(iter(output_ports(type(operators[source])))))
            streams[source, out] = dag.add_stream(" ".join(filter(None, (source.removeprefix("~"), out))), outlet)
        inlet = getattr(operators[sink], edge["into"] or next(open_inputs[sink]))
        streams[source, out].add_sink(inlet)
        if edge["arrow"] == "=>":
            dag.set_input_port_attribute(inlet, PortContext.PARTITION_PARALLEL, True)
    return dag


def partition(dag, operator, count):
    dag.set_operator_attribute(operator, OperatorContext.PARTITIONER, StatelessPartitioner(count))


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
