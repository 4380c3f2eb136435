"""Resolving: what configuration says of streams takes its place in one copy of the graph, however many there are."""

from dagkit import Config
from dagkit.compiler import compile_until
from dagkit.graph import Graph
from tests.compiler.sketches import sketch

EVERY = Config.of({"dt.stream.*.locality": "NODE_LOCAL", "dt.stream.*.schema": "builtins.int"})


def test_the_graph_is_copied_as_often_for_many_streams_as_for_one(monkeypatch):
    copies, making = [], Graph.__init__

    def counted(graph, *given, **named):
        copies.append(graph)
        making(graph, *given, **named)

    def copies_of_a_chain(streams):
        copies.clear()
        compile_until("resolved", sketch(" ".join(f"{n}>{n + 1}" for n in range(streams))), EVERY)
        return len(copies)

    monkeypatch.setattr(Graph, "__init__", counted)
    assert copies_of_a_chain(1) == copies_of_a_chain(20) > 0


def test_what_configuration_says_of_every_stream_holds_for_each():
    graph = compile_until("resolved", sketch("a>b a>c b>d"), EVERY).graph
    assert [stream.locality for stream in graph.streams] == ["NODE_LOCAL", "NODE_LOCAL"]
    assert [str(stream.locality_origin.key) for stream in graph.streams] == ["dt.stream.*.locality"] * 2
    told = {f"{node.name}.{port}" for node in graph.nodes for port in (*node.inputs, *node.outputs)}
    assert told == {"a.out", "b.one", "c.one", "b.out", "d.one"}
