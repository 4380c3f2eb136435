"""Inferring payloads: find the types of each operator's type variables, from its class and from its inputs."""

from dataclasses import replace
from typing import Any, TypeVar

import networkx as nx

from dagkit.graph import Graph
from dagkit.schema import bind, substitute


def infer(graph: Graph) -> Graph:
    """The graph with the bindings of every node, upstream first, or as declared if there is an undelayed loop."""
    nodes = dict(graph.by_name)
    for name in _upstream_first(graph):
        node = nodes[name]
        bindings = _given_by_class(type(node.operator))
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


def _given_by_class(operator: type) -> dict[TypeVar, Any]:
    """The type arguments that the author wrote, as in `Filter[Line]()` or `class Lines(Filter[Line])`."""
    bindings: dict[TypeVar, Any] = {}
    for ancestor in operator.__mro__:
        metadata = getattr(ancestor, "__pydantic_generic_metadata__", None) or {}
        origin = metadata.get("origin")
        if origin is not None:
            parameters = origin.__pydantic_generic_metadata__["parameters"]
            for parameter, argument in zip(parameters, metadata["args"], strict=True):
                if not isinstance(argument, TypeVar):
                    bindings.setdefault(parameter, substitute(argument, bindings))
    return bindings
