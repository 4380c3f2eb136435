"""Makes the logical picture: operators and streams under the names that the author gave them.

It is made of a graph, also of an invalid one, or of a plan, where there is no graph: in the folder of a run.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from dagkit.api.attributes import OperatorContext, PortContext
from dagkit.api.operators import InputOperator
from dagkit.graph import Graph, Node, Stream
from dagkit.ground.amounts import counted
from dagkit.plan.model import Plan, Routing, known_payload
from dagkit.render.physical import operator_box
from dagkit.render.picture import Box, End, Group, GroupKind, Head, Picture, Port, Role, Side, View, Wire, WireKind
from dagkit.schema import spelled


def logical(graph: Graph) -> Picture:
    """The picture of a graph: nodes are boxes, streams are wires, modules are frames."""
    wired = _wired_ports(graph)
    return _picture(
        graph.application,
        [_node_box(graph, node, wired.get(node.name, ())) for node in graph.nodes],
        [_stream_wire(graph, stream) for stream in graph.streams],
    )


def logical_of(plan: Plan) -> Picture:
    """The picture of a plan's operators and streams."""
    boxes = [replace(operator_box(operator), lanes=(), notes=(), group=None) for operator in plan.operators]
    wires = [
        Wire(
            stream=stream.name,
            tails=(End(stream.source.operator, stream.source.port),),
            heads=tuple(
                Head(sink.operator, sink.port, _kind(delayed=sink.routing is Routing.DELAYED, parallel=sink.parallel))
                for sink in stream.sinks
            ),
            payload=known_payload(stream.payload),
        )
        for stream in plan.streams
    ]
    return _picture(plan.application, boxes, wires)


def _picture(application: str, boxes: list[Box], wires: list[Wire]) -> Picture:
    """The picture with a frame for each expanded module: the operators in one are named `Module$inner`."""
    frames: dict[str, Group] = {}
    framed = []
    for box in boxes:
        path = box.name.split("$")  # an author's own name may contain `$`, too, as in `a$`, which is no path
        for depth in range(1, len(path) if all(path) else 0):  # outer ones first
            name, parent = "$".join(path[:depth]), "$".join(path[: depth - 1])
            frames.setdefault(name, Group(name, path[depth - 1], GroupKind.MODULE, (), parent or None))
    for box in boxes:
        frame, _, inner = box.name.rpartition("$")
        framed.append(replace(box, title=inner, group=frame) if frame in frames else box)
    modules = sum(box.role is Role.MODULE for box in boxes)
    parts = [counted(len(boxes) - modules, "operator"), *([counted(modules, "module")] if modules else [])]
    return Picture(
        view=View.LOGICAL,
        title=application,
        summary=", ".join([*parts, counted(len(wires), "stream")]),
        boxes=tuple(framed),
        wires=tuple(wires),
        groups=tuple(frames.values()),
    )


def _kind(*, delayed: bool, parallel: bool) -> WireKind:
    return WireKind.DELAYED if delayed else WireKind.PARALLEL if parallel else WireKind.PLAIN


# -- of a graph --------------------------------------------------------------------------------------------------------


def _wired_ports(graph: Graph) -> Mapping[str, list[Port]]:
    """The connected ports, by node: a port that a subclass hides is drawn if a stream names it."""
    wired: dict[str, list[Port]] = {}
    for stream in graph.streams:
        for end in stream.sources:
            wired.setdefault(end.node, []).append(Port(end.port, Side.OUT))
        for end in stream.sinks:
            wired.setdefault(end.node, []).append(Port(end.port, Side.IN))
    return wired


def _node_box(graph: Graph, node: Node, wired: Iterable[Port]) -> Box:
    ports = list(_declared_ports(graph, node))
    ports += [p for p in dict.fromkeys(wired) if (p.name, p.side) not in {(q.name, q.side) for q in ports}]
    # A computed count of partitions is known only in the plan.
    count = getattr(graph.value(node, OperatorContext.PARTITIONER), "partition_count", 1)
    return Box(
        name=node.name,
        title=node.name,
        subtitle=type(node.operator).__qualname__.rpartition(".")[2],
        role=_role(node),
        ports=tuple(ports),
        count=count if isinstance(count, int) else 1,
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
        yield Port(inlet.name, Side.IN, _payload_name(node.payload(inlet)), connected, inlet.required)
    for outlet in node.output_ports.values():
        connected = bool(graph.streams_from(node.name, outlet.name))
        yield Port(outlet.name, Side.OUT, _payload_name(node.payload(outlet)), connected, outlet.required)


def _stream_wire(graph: Graph, stream: Stream) -> Wire:
    sources = stream.sources
    delayed = any(graph.by_name[end.node].is_delay for end in sources)
    heads = []
    for sink in stream.sinks:
        parallel = bool(graph.by_name[sink.node].port_value(sink.port, PortContext.PARTITION_PARALLEL))
        heads.append(Head(sink.node, sink.port, _kind(delayed=delayed, parallel=parallel)))
    near = [*sources, *stream.sinks][:1]
    return Wire(
        stream=stream.name,
        tails=tuple(End(end.node, end.port) for end in sources),
        heads=tuple(heads),
        payload=_payload_name(graph.by_name[near[0].node].payload(near[0].declared)) if near else "",
        notes=(stream.locality.value.replace("_", " ").lower(),) if stream.locality else (),
    )


def _payload_name(payload: Any) -> str:
    """The payload's name in the picture; empty if any payload is allowed."""
    return "" if payload is Any or isinstance(payload, TypeVar) else spelled(payload)
