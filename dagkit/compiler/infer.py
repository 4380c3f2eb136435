"""Inferring payloads: find the types of each operator's type variables, from its class and from its inputs."""

from dataclasses import replace

import networkx as nx

from dagkit.graph import Graph
from dagkit.schema import arguments_of_class, bind


def infer(graph: Graph) -> Graph:
    """The graph with the bindings of every node, upstream first, or as declared if there is an undelayed loop."""
    nodes = dict(graph.by_name)
    for name in _upstream_first(graph):
        node = nodes[name]
        bindings = arguments_of_class(type(node.operator))
        fed = dict(graph.connected_inputs(name))
        for port, declared in node.input_ports.items():
            stream = fed.get(port)
            if stream is not None and stream.source is not None:
                source = nodes[stream.source.node]
                bind(declared.payload, source.payload(stream.source.declared), bindings)
        if bindings:
            nodes[name] = replace(node, bindings=bindings)
    return graph.with_nodes(nodes)


def _upstream_first(graph: Graph) -> list[str]:
    if nx.is_directed_acyclic_graph(graph.forward):
        return list(nx.topological_sort(graph.forward))
    return [node.name for node in graph.nodes]
