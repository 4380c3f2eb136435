"""Expanding: a module's operators take its place, under names that begin with the module's."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from dagkit.api.application import Module
from dagkit.api.config import Config
from dagkit.api.ports import Inlet, Outlet
from dagkit.compiler.draw import draw
from dagkit.errors import Diagnostic
from dagkit.graph import End, Graph, Node, Settings, Stream, graph_of

Configure = Callable[[Node], Module]
"""Gives the module of a node the properties that configuration sets on it."""

SEPARATOR = "$"


def expand(graph: Graph, conf: Config, configure: Configure) -> tuple[Graph, list[Diagnostic]]:
    """The graph with every module, however deep, replaced by what it holds."""
    faults: list[Diagnostic] = []
    while module := next((node for node in graph.nodes if node.is_module), None):
        graph = _unpacked(graph, module, conf, configure, faults)
    return graph, faults


@dataclass(frozen=True, slots=True)
class _Inside:
    """What a module holds: its own graph, renamed, and the inner ends behind each of its ports."""

    graph: Graph
    behind: Mapping[tuple[str, bool], tuple[End, ...]]


def _unpacked(graph: Graph, node: Node, conf: Config, configure: Configure, faults: list[Diagnostic]) -> Graph:
    inside = _inside(node, configure(node), conf, faults)
    position = graph.nodes.index(node)
    nodes = (
        *graph.nodes[:position],
        *(_inherited(inner, node, inside) for inner in inside.graph.nodes),
        *graph.nodes[position + 1 :],
    )
    streams = tuple(_rewired(stream, node, inside, faults) for stream in graph.streams)
    return replace(graph, nodes=nodes, streams=(*streams, *inside.graph.streams))


def _inside(node: Node, module: Module, conf: Config, faults: list[Diagnostic]) -> _Inside:
    dag, unfinished, _ = draw(module, conf)
    faults.extend([unfinished] if unfinished else [])
    graph, slips = graph_of(dag, node.name)
    faults.extend(slips)
    renamed = Graph(
        node.name,
        tuple(_named_inside(node.name, n) for n in graph.nodes),
        tuple(_stream_inside(node.name, s) for s in graph.streams),
    )
    behind: dict[tuple[str, bool], tuple[End, ...]] = {}
    for exposure in dag.exposures:
        placement = dag.placement_of(exposure.inner.operator)
        if placement is None or not isinstance(exposure.inner, Inlet | Outlet):
            faults.append(
                Diagnostic(
                    "operator-unknown",
                    f"{exposure.inner!r} is exposed, but its operator was never added to the module",
                    "add it with dag.add_operator first",
                    exposure.where,
                )
            )
            continue
        key = exposure.outer.port.name, isinstance(exposure.outer, Outlet)
        inner = End(
            f"{node.name}{SEPARATOR}{placement.name}", exposure.inner.port.name, exposure.inner.port, exposure.where
        )
        behind[key] = (*behind.get(key, ()), inner)
    return _Inside(renamed, behind)


def _named_inside(module: str, node: Node) -> Node:
    return replace(node, name=f"{module}{SEPARATOR}{node.name}")


def _stream_inside(module: str, stream: Stream) -> Stream:
    def inside(end: End) -> End:
        return replace(end, node=f"{module}{SEPARATOR}{end.node}")

    return replace(
        stream,
        name=f"{module}{SEPARATOR}{stream.name}",
        source=inside(stream.source) if stream.source else None,
        sinks=tuple(map(inside, stream.sinks)),
        further_sources=tuple(map(inside, stream.further_sources)),
    )


def _inherited(inner: Node, module: Node, inside: _Inside) -> Node:
    """What was set on the module or its ports holds for what is inside, unless that was set itself."""
    inputs, outputs, unifiers = dict(inner.inputs), dict(inner.outputs), dict(inner.unifiers)
    for (port, is_output), ends in inside.behind.items():
        for end in ends:
            if end.node == inner.name:
                of_module = (module.outputs if is_output else module.inputs).get(port, {})
                into = outputs if is_output else inputs
                into[end.port] = {**of_module, **into.get(end.port, {})}
                if is_output:
                    unifiers[end.port] = {**module.unifiers.get(port, {}), **unifiers.get(end.port, {})}
    return replace(
        inner,
        attributes={**module.attributes, **inner.attributes},
        inputs=_set(inputs),
        outputs=_set(outputs),
        unifiers=_set(unifiers),
    )


def _set(settings: Mapping[str, Settings]) -> dict[str, Settings]:
    return {port: value for port, value in settings.items() if value}


def _rewired(stream: Stream, module: Node, inside: _Inside, faults: list[Diagnostic]) -> Stream:
    """The stream with each end at the module led to the ports that stand behind it."""

    def behind(ends: Iterable[End], *, output: bool) -> Iterable[End]:
        for end in ends:
            if end.node != module.name:
                yield end
            elif (end.port, output) in inside.behind:
                yield from inside.behind[end.port, output]
            else:
                faults.append(
                    Diagnostic(
                        "port-unexposed",
                        f"stream {stream.name!r} is led to {end}, but the module exposes nothing behind that port",
                        f"in populate_dag of {type(module.operator).__name__}, call dag.expose(self.{end.port}, …)",
                        end.where,
                    )
                )

    sources = tuple(behind(filter(None, (stream.source, *stream.further_sources)), output=True))
    return replace(
        stream,
        source=sources[0] if sources else None,
        further_sources=sources[1:],
        sinks=tuple(behind(stream.sinks, output=False)),
    )
