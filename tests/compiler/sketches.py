"""Sketches: graphs drawn as strings.

    a>b      a feeds b; what nothing feeds is a source
    a>b*3    b runs as three partitions
    a=>b     b mirrors the partitions of a
    a>~d     d is a delay

One operator feeds all its readers by one stream, called as the operator is. An operator's inputs are taken in the
order of the edges: one, two, three, four.
"""

import re
from collections.abc import Iterable

from dagkit import Dag, OperatorContext, PortContext, StatelessPartitioner
from dagkit.api.component import Component
from dagkit.api.dag import Stream
from tests.compiler.cast import Delay, Source, Step

_EDGE = re.compile(r"(?P<source>~?\w+)(\*(?P<sent>\d+))?(?P<arrow>=?>)(?P<sink>~?\w+)(\*(?P<taken>\d+))?")
_INPUTS = ("one", "two", "three", "four")


def sketch(*edges: str) -> Dag:
    """The Dag that these edges draw."""
    dag = Dag()
    drawn = [_EDGE.fullmatch(edge) for edge in edges]
    assert all(drawn), f"not every one of {edges} is an edge"
    matches = [match for match in drawn if match]
    operators = {
        name.removeprefix("~"): dag.add_operator(name.removeprefix("~"), operator)
        for name, operator in _operators(matches).items()
    }
    streams: dict[str, Stream] = {}
    taken = dict.fromkeys(operators, 0)
    for edge in matches:
        source, sink = edge["source"].removeprefix("~"), edge["sink"].removeprefix("~")
        if source not in streams:
            outlet = operators[source].output if isinstance(operators[source], Delay) else operators[source].out
            streams[source] = dag.add_stream(source, outlet)
        port = "input" if isinstance(operators[sink], Delay) else _INPUTS[taken[sink]]
        taken[sink] += 1
        inlet = getattr(operators[sink], port)
        streams[source].add_sink(inlet)
        if edge["arrow"] == "=>":
            dag.set_input_port_attribute(inlet, PortContext.PARTITION_PARALLEL, True)
        for name, count in ((source, edge["sent"]), (sink, edge["taken"])):
            if count:
                dag.set_operator_attribute(
                    operators[name], OperatorContext.PARTITIONER, StatelessPartitioner(int(count))
                )
    return dag


def _operators(edges: Iterable[re.Match[str]]) -> dict[str, Component]:
    fed = {edge["sink"] for edge in edges}
    names = dict.fromkeys(name for edge in edges for name in (edge["source"], edge["sink"]))
    return {name: Delay() if name.startswith("~") else Step() if name in fed else Source() for name in names}
