"""Settling processing modes: what follows an operator that may lose items may lose them as well."""

from dataclasses import replace

import networkx as nx

from dagkit.api.attributes import OperatorContext, ProcessingMode
from dagkit.errors import Diagnostic, Severity
from dagkit.graph import Graph, Setting


def settle_modes(graph: Graph) -> tuple[Graph, list[Diagnostic]]:
    """The graph in which AT_MOST_ONCE has run down to every operator that was told nothing else."""
    if not nx.is_directed_acyclic_graph(graph.forward):
        return graph, []
    nodes, notes = dict(graph.by_name), list[Diagnostic]()
    for name in nx.topological_sort(graph.forward):
        node = nodes[name]
        if OperatorContext.PROCESSING_MODE in node.attributes or OperatorContext.PROCESSING_MODE in graph.attributes:
            continue
        for source in graph.forward.predecessors(name):
            upstream = graph.setting(nodes[source], OperatorContext.PROCESSING_MODE)
            if upstream.value == ProcessingMode.AT_MOST_ONCE:
                setting = Setting(ProcessingMode.AT_MOST_ONCE, upstream.origin)
                nodes[name] = replace(node, attributes={**node.attributes, OperatorContext.PROCESSING_MODE: setting})
                notes.append(
                    Diagnostic(
                        "mode-mismatch",
                        f"{name} becomes AT_MOST_ONCE, because {source} feeds it and is AT_MOST_ONCE",
                        f"set PROCESSING_MODE of {name} to AT_MOST_ONCE to say so yourself",
                        node.where,
                        Severity.WARNING,
                    )
                )
                break
    return graph.with_nodes(nodes), notes
