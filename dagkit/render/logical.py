"""Makes the logical picture: operators and streams under the names that the author gave them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from dagkit.api.attributes import OperatorContext, PortContext
from dagkit.api.operators import InputOperator
from dagkit.graph import Graph, Node, Stream
from dagkit.render.picture import (
    Box,
    End,
    Group,
    GroupKind,
    Head,
    Picture,
    Port,
    Role,
    Side,
    View,
    Wire,
    WireKind,
    counted,
)
from dagkit.schema import spelled


def logical(graph: Graph) -> Picture:
    """The picture of a graph, also of an invalid one: nodes are boxes, streams are wires, modules are frames."""
    frames = _frames(graph)
    wired = _wired_ports(graph)
    operators = sum(not node.is_module for node in graph.nodes)
    modules = len(graph.nodes) - operators
    parts = [counted(operators, "operator"), counted(len(graph.streams), "stream")]
    return Picture(
        view=View.LOGICAL,
        title=graph.application,
        summary=", ".join(parts[:1] + ([counted(modules, "module")] if modules else []) + parts[1:]),
        boxes=tuple(_box(graph, node, wired.get(node.name, ()), frames) for node in graph.nodes),
        wires=tuple(_wire(graph, stream) for stream in graph.streams),
        groups=tuple(frames.values()),
    )


def _frames(graph: Graph) -> Mapping[str, Group]:
    """A frame for each expanded module, outer ones first."""
    frames: dict[str, Group] = {}
    for node in graph.nodes:
        path = node.name.split("$")
        for depth in range(1, len(path) if all(path) else 0):
            name, parent = "$".join(path[:depth]), "$".join(path[: depth - 1])
            frames.setdefault(name, Group(name, path[depth - 1], GroupKind.MODULE, (), parent or None))
    return frames


def _wired_ports(graph: Graph) -> Mapping[str, list[Port]]:
    """The connected ports, by node: a port that a subclass hides is drawn if a stream names it."""
    wired: dict[str, list[Port]] = {}
    for stream in graph.streams:
        for end in _sources(stream):
            wired.setdefault(end.node, []).append(Port(end.port, Side.OUT))
        for end in stream.sinks:
            wired.setdefault(end.node, []).append(Port(end.port, Side.IN))
    return wired


def _box(graph: Graph, node: Node, wired: Iterable[Port], frames: Mapping[str, Group]) -> Box:
    path, _, inner = node.name.rpartition("$")
    framed = bool(inner) and path in frames
    ports = list(_declared_ports(graph, node))
    ports += [p for p in dict.fromkeys(wired) if (p.name, p.side) not in {(q.name, q.side) for q in ports}]
    return Box(
        name=node.name,
        title=inner if framed else node.name,
        subtitle=type(node.operator).__qualname__.rpartition(".")[2],
        role=_role(node),
        ports=tuple(ports),
        count=_count(graph, node),
        group=path if framed else None,
    )


def _role(node: Node) -> Role:
    if node.is_module:
        return Role.MODULE
    if node.is_delay:
        return Role.DELAY
    return Role.INPUT if isinstance(node.operator, InputOperator) else Role.OPERATOR


def _declared_ports(graph: Graph, node: Node) -> Iterator[Port]:
    for inlet in node.input_ports.values():
        connected = bool(graph.streams_into(node.name, inlet.name))
        yield Port(inlet.name, Side.IN, payload_name(node.payload(inlet)), connected, inlet.required)
    for outlet in node.output_ports.values():
        connected = bool(graph.streams_from(node.name, outlet.name))
        yield Port(outlet.name, Side.OUT, payload_name(node.payload(outlet)), connected, outlet.required)


def _count(graph: Graph, node: Node) -> int:
    """The fixed count of a partitioner; a computed count is known only in the plan."""
    count = getattr(graph.value(node, OperatorContext.PARTITIONER), "partition_count", 1)
    return count if isinstance(count, int) else 1


def _sources(stream: Stream) -> tuple[Any, ...]:
    return (*(() if stream.source is None else (stream.source,)), *stream.further_sources)


def _wire(graph: Graph, stream: Stream) -> Wire:
    sources = _sources(stream)
    delayed = any(graph.by_name[end.node].is_delay for end in sources)
    heads = []
    for sink in stream.sinks:
        parallel = bool(graph.by_name[sink.node].port_value(sink.port, PortContext.PARTITION_PARALLEL))
        kind = WireKind.DELAYED if delayed else WireKind.PARALLEL if parallel else WireKind.PLAIN
        heads.append(Head(sink.node, sink.port, kind))
    near = [*sources, *stream.sinks][:1]
    return Wire(
        stream=stream.name,
        tails=tuple(End(end.node, end.port) for end in sources),
        heads=tuple(heads),
        payload=payload_name(graph.by_name[near[0].node].payload(near[0].declared)) if near else "",
        notes=(stream.locality.value.replace("_", " ").lower(),) if stream.locality else (),
    )


def payload_name(payload: Any) -> str:
    """The payload's name in the picture; empty if any payload is allowed."""
    return "" if payload is Any or isinstance(payload, TypeVar) else spelled(payload)
