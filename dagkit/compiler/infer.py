"""Inferring payloads: find the types of each operator's type variables, from its class, inputs and functions.

Properties that follow from these types are set, too.
"""

from dataclasses import replace

from dagkit.api.operators import Operator
from dagkit.graph import Graph
from dagkit.schema import arguments_of_class, bind, is_known


def infer(graph: Graph) -> Graph:
    """The graph with the bindings of every node, upstream first, or as declared if there is an undelayed loop."""
    nodes = dict(graph.by_name)
    for name in _upstream_first(graph):
        node = nodes[name]
        bindings = arguments_of_class(type(node.operator))
        fed = dict(graph.connected_inputs(name))
        received = {}
        for port, declared in node.input_ports.items():
            stream = fed.get(port)
            if stream is not None and stream.source is not None:
                received[port] = nodes[stream.source.node].payload(stream.source.declared)
                bind(declared.payload, received[port], bindings)
        known = node.operator if isinstance(node.operator, Operator) and not node.operator.faults else None
        for port, sending in node.output_ports.items():
            sent = None if known is None else known.sent_payload(port, received)
            if sent is not None:
                bind(sending.payload, sent, bindings)
        if bindings:
            nodes[name] = replace(node, bindings=bindings)
        if known is not None and received:
            taken = {
                port: sent if is_known(sent) else nodes[name].payload(node.input_ports[port])
                for port, sent in received.items()
            }
            implied = known.implied_properties(taken)
            if implied:
                nodes[name] = replace(nodes[name], operator=known.configured(implied))
    return graph.with_nodes(nodes)


def _upstream_first(graph: Graph) -> list[str]:
    import networkx as nx  # noqa: PLC0415 - most commands compile nothing

    if nx.is_directed_acyclic_graph(graph.forward):
        return list(nx.topological_sort(graph.forward))
    return [node.name for node in graph.nodes]
