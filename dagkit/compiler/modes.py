"""Processing modes: operators downstream of one that may lose items may lose them too."""

from collections import deque
from dataclasses import replace

from dagkit.api.attributes import OperatorContext, ProcessingMode
from dagkit.api.configuration import Setting
from dagkit.compiler.alike import merge_alike
from dagkit.errors import Diagnostic, Severity
from dagkit.graph import Graph, Node


def settle_modes(graph: Graph) -> tuple[Graph, list[Diagnostic]]:
    """Give AT_MOST_ONCE to every operator downstream of one that has it, loops included, unless it has its own mode."""
    nodes, notes = dict(graph.by_name), list[Diagnostic]()
    spreading = deque(name for name, node in nodes.items() if _may_lose(graph, node))
    while spreading:
        source = spreading.popleft()
        for name in graph.network.successors(source):
            if OperatorContext.PROCESSING_MODE in nodes[name].attributes or _is_set_for_all(graph):
                continue
            setting = Setting(ProcessingMode.AT_MOST_ONCE, _mode(graph, nodes[source]).origin)
            nodes[name] = replace(
                nodes[name], attributes={**nodes[name].attributes, OperatorContext.PROCESSING_MODE: setting}
            )
            notes.append(_lowered(nodes[name], source))
            spreading.append(name)
    return graph.with_nodes(nodes), merge_alike(notes, graph)


def _mode(graph: Graph, node: Node) -> Setting:
    return graph.setting(node, OperatorContext.PROCESSING_MODE)


def _may_lose(graph: Graph, node: Node) -> bool:
    """Whether the mode is AT_MOST_ONCE. A rule reports values that are not modes; they may not even be comparable."""
    mode = _mode(graph, node).value
    return isinstance(mode, str) and mode == ProcessingMode.AT_MOST_ONCE


def _is_set_for_all(graph: Graph) -> bool:
    return OperatorContext.PROCESSING_MODE in graph.attributes


def _lowered(node: Node, source: str) -> Diagnostic:
    return Diagnostic(
        "mode-mismatch",
        f"{node.name} becomes AT_MOST_ONCE, because {source} feeds it and is AT_MOST_ONCE",
        f"set PROCESSING_MODE of {node.name} to AT_MOST_ONCE to confirm this",
        node.where,
        Severity.WARNING,
    )
