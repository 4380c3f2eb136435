"""The graph: what a Dag wrote down, frozen, with the questions that the compiler asks of it."""

import dataclasses

import pytest

from dagkit import DagContext, OperatorContext, PortContext, StatelessPartitioner
from dagkit.api.configuration import DEFAULT, Source
from dagkit.graph import graph_of
from tests.compiler.cast import Keep, Line
from tests.compiler.sketches import sketch


def _graph(dag):
    graph, faults = graph_of(dag, "app")
    assert faults == []
    return graph


DIAMOND = "s>a a>b a>c b>d c>d"


def test_nodes_and_streams_stand_in_the_order_of_declaration():
    graph = _graph(sketch(DIAMOND))
    assert [node.name for node in graph.nodes] == ["s", "a", "b", "c", "d"]
    assert [f"{s.name}: {s.source} > {' '.join(map(str, s.sinks))}" for s in graph.streams] == [
        "s: s.out > a.one",
        "a: a.out > b.one c.one",
        "b: b.out > d.one",
        "c: c.out > d.two",
    ]


def test_the_graph_answers_who_feeds_whom():
    graph = _graph(sketch(DIAMOND))
    assert [stream.name for stream in graph.streams_into("d", "two")] == ["c"]
    assert graph.streams_into("d", "three") == ()
    assert [stream.name for stream in graph.streams_from("a", "out")] == ["a"]
    assert graph.streams_from("a", "more") == ()
    assert [(port, stream.name) for port, stream in graph.connected_inputs("d")] == [("one", "b"), ("two", "c")]
    assert graph.connected_inputs("s") == ()
    assert [f"{source}>{sink}" for _, source, sink in graph.edges()] == [
        "s.out>a.one",
        "a.out>b.one",
        "a.out>c.one",
        "b.out>d.one",
        "c.out>d.two",
    ]


def test_the_way_forward_leaves_out_what_leaves_delays():
    graph = _graph(sketch("s>a a>~d ~d>a"))
    assert sorted(graph.network.edges()) == [("a", "d"), ("d", "a"), ("s", "a")]
    assert sorted(graph.forward.edges()) == [("a", "d"), ("s", "a")]


def test_two_wires_between_the_same_operators_are_two_edges():
    graph = _graph(sketch("s>a a>b a.more>b"))
    assert graph.network.number_of_edges("a", "b") == 2
    assert graph.forward.number_of_edges("a", "b") == 1


def test_an_operators_attribute_is_its_own_else_the_applications_else_the_default():
    timeout, partitioner, attempts = (
        OperatorContext.TIMEOUT_WINDOW_COUNT,
        OperatorContext.PARTITIONER,
        OperatorContext.RECOVERY_ATTEMPTS,
    )
    dag = sketch("s>a a>b")
    dag.set_attribute(timeout, 7)
    dag.set_attribute(partitioner, StatelessPartitioner(2))
    for value in (3, 8):
        dag.set_operator_attribute(dag.operator("a"), timeout, value)
    dag.set_operator_attribute(dag.operator("a"), partitioner, None)
    graph = _graph(dag)
    a, b = graph.by_name["a"], graph.by_name["b"]
    assert (graph.value(a, timeout), graph.value(b, timeout)) == (8, 7), "the last setting counts"
    assert graph.value(a, partitioner) is None, "None that was set goes before the application's"
    assert (graph.value(b, attempts), graph.setting(b, attempts).origin) == (None, DEFAULT)
    assert graph.setting(a, timeout).origin.source is Source.CODE


def test_namesakes_of_other_scopes_are_not_inherited():
    dag = sketch("s>a")
    dag.set_attribute(DagContext.CHECKPOINT_WINDOW_COUNT, 7)
    dag.set_operator_attribute(dag.operator("a"), OperatorContext.AUTO_RECORD, True)
    graph = _graph(dag)
    assert graph.value(graph.by_name["a"], OperatorContext.CHECKPOINT_WINDOW_COUNT) == 1
    assert graph.by_name["a"].port_value("one", PortContext.AUTO_RECORD) is False


def test_ports_have_attributes_of_their_own_by_direction():
    dag = sketch("s>a a>b")
    a = dag.operator("a")
    dag.set_input_port_attribute(a.one, PortContext.QUEUE_CAPACITY, 5)
    dag.set_output_port_attribute(a.out, PortContext.UNIFIER_LIMIT, 6)
    dag.set_unifier_attribute(a.out, OperatorContext.TIMEOUT_WINDOW_COUNT, 7)
    node = _graph(dag).by_name["a"]
    assert node.port_value("one", PortContext.QUEUE_CAPACITY) == 5
    assert node.port_value("two", PortContext.QUEUE_CAPACITY) == 1024
    assert node.port_value("out", PortContext.UNIFIER_LIMIT, output=True) == 6
    assert node.port_value("out", PortContext.UNIFIER_LIMIT) == 2**31 - 1
    assert node.unifiers["out"][OperatorContext.TIMEOUT_WINDOW_COUNT].value == 7


def test_a_node_knows_the_payload_of_its_ports():
    node = _graph(sketch("keep", keep=Keep)).by_name["keep"]
    (variable,) = Keep.__parameters__
    assert node.payload(Keep.input) is variable
    assert dataclasses.replace(node, bindings={variable: Line}).payload(Keep.input) is Line


def test_graphs_are_values():
    graph = _graph(sketch("s>a"))
    with pytest.raises(dataclasses.FrozenInstanceError, match="application"):
        graph.application = "other"
    assert graph.with_nodes({}) == graph
    assert graph.with_nodes({"a": dataclasses.replace(graph.by_name["a"], bindings={})}) == graph
