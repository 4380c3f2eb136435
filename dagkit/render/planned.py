"""Makes the logical picture of a plan, where there is no graph: in the folder of a run, for example."""

from collections.abc import Iterator, Mapping

from dagkit.plan.model import Plan, PlannedOperator, PlannedStream, Routing, known_payload
from dagkit.render.physical import ROLES
from dagkit.render.picture import (
    Box,
    End,
    Group,
    GroupKind,
    Head,
    Picture,
    Port,
    Side,
    View,
    Wire,
    WireKind,
    counted,
)


def logical_of(plan: Plan) -> Picture:
    """The operators and streams of a plan, with a frame for each module that its names show."""
    frames: dict[str, Group] = {}
    for operator in plan.operators:
        frames.update(_frames_around(operator.name))
    parts = [counted(len(plan.operators), "operator"), counted(len(plan.streams), "stream")]
    return Picture(
        view=View.LOGICAL,
        title=plan.application,
        summary=", ".join(parts),
        boxes=tuple(_box(operator, frames) for operator in plan.operators),
        wires=tuple(map(_wire, plan.streams)),
        groups=tuple(frames.values()),
    )


def _frames_around(name: str) -> Iterator[tuple[str, Group]]:
    """The frames of the modules around an operator, named `Module$inner`, outer ones first."""
    path = name.split("$")
    for depth in range(1, len(path) if all(path) else 0):
        inner, parent = "$".join(path[:depth]), "$".join(path[: depth - 1])
        yield inner, Group(inner, path[depth - 1], GroupKind.MODULE, (), parent or None)


def _box(operator: PlannedOperator, frames: Mapping[str, Group]) -> Box:
    path, _, inner = operator.name.rpartition("$")
    framed = path in frames
    return Box(
        name=operator.name,
        title=inner if framed else operator.name,
        subtitle=operator.class_.rpartition(".")[2],
        role=ROLES[operator.role],
        ports=tuple(
            Port(port.name, Side.IN if port.type == "input" else Side.OUT, known_payload(port.payload), port.connected)
            for port in operator.ports
            if port.connected
        ),
        count=operator.count,
        group=path if framed else None,
    )


def _wire(stream: PlannedStream) -> Wire:
    return Wire(
        stream=stream.name,
        tails=(End(stream.source.operator, stream.source.port),),
        heads=tuple(
            Head(sink.operator, sink.port, _kind(sink.routing, parallel=sink.parallel)) for sink in stream.sinks
        ),
        payload=known_payload(stream.payload),
    )


def _kind(routing: Routing, *, parallel: bool) -> WireKind:
    if routing is Routing.DELAYED:
        return WireKind.DELAYED
    return WireKind.PARALLEL if parallel else WireKind.PLAIN
