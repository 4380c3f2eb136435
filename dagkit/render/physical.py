"""Makes the physical picture: stages as frames, partitions as lanes, unifiers where the planner placed them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dagkit.ground.amounts import counted
from dagkit.plan.model import (
    Cut,
    CutKind,
    Place,
    Plan,
    PlannedOperator,
    PlannedPartition,
    PlannedSink,
    PlannedStream,
    PlannedUnifier,
    Routing,
    Stage,
    known_payload,
)
from dagkit.plan.model import Role as PlannedRole
from dagkit.render.picture import (
    Box,
    End,
    Group,
    GroupKind,
    Head,
    Lane,
    Line,
    Picture,
    Port,
    Role,
    Side,
    View,
    Wire,
    WireKind,
)

MOST_LANES = 8
"""An operator with more partitions is drawn as one box with its count."""
MOST_LANED_BOXES = 24
"""A plan with more boxes is drawn without lanes, however few partitions each has."""
MOST_LINES = 25
"""More lines between two boxes become one thick wire: five times five lines can still be followed."""

_ROLES = {PlannedRole.INPUT: Role.INPUT, PlannedRole.OPERATOR: Role.OPERATOR, PlannedRole.DELAY: Role.DELAY}

_CUTS = {
    CutKind.DRIVER: "from the driver",
    CutKind.FAN_OUT: "fan-out",
    CutKind.JOIN: "join",
    CutKind.COUNTS: "counts differ",
    CutKind.KEYS: "by key",
    CutKind.UNIFIER: "unified",
    CutKind.DELAY: "held back",
    CutKind.WORK: "split and distributed",
}

_ROUTINGS = {Routing.GATHERED: "gathered", Routing.KEYED: "by key", Routing.BROADCAST: "to every partition"}

_Crossing = tuple[str, str]
"""A stream and one of its sinks."""


def physical(plan: Plan) -> Picture:
    """The picture of a plan: stages are frames; partitions are lanes, if they are few."""
    ranks = {stream.name: list(_ranks(stream)) for stream in plan.streams}
    boxes = [operator_box(operator) for operator in _in_stages(plan)]
    boxes += [_rank_box(plan, rank) for found in ranks.values() for rank in found]
    if len(boxes) > MOST_LANED_BOXES:
        boxes = [replace(box, lanes=()) for box in boxes]
    by_name = {box.name: box for box in boxes}
    cuts: dict[_Crossing, Cut] = {(cut.stream, str(cut.sink)): cut for cut in plan.cuts}
    exchanges = sum(cut.exchange for cut in plan.cuts)
    parts = [counted(len(plan.operators), "operator"), counted(len(plan.stages), "stage")]
    return Picture(
        view=View.PHYSICAL,
        title=plan.application,
        summary=", ".join([*parts, counted(plan.levels, "level"), counted(exchanges, "exchange")]),
        boxes=tuple(boxes),
        wires=tuple(wire for s in plan.streams for wire in _wires(plan, s, ranks[s.name], by_name, cuts)),
        groups=tuple(_frame(stage) for stage in plan.stages),
    )


def _in_stages(plan: Plan) -> Iterator[PlannedOperator]:
    """The operators stage by stage, so that a stage's boxes are adjacent."""
    for stage in plan.stages:
        members = set(stage.operators)
        yield from (operator for operator in plan.operators if operator.name in members)


def _frame(stage: Stage) -> Group:
    driver = stage.place is Place.DRIVER
    notes = ("driver",) if driver else (f"level {stage.level}", counted(stage.slots, "slot"))
    return Group(stage.name, stage.name, GroupKind.DRIVER if driver else GroupKind.WORKERS, notes)


def operator_box(operator: PlannedOperator) -> Box:
    """An operator of a plan, in the frame of its stage."""
    lanes = _lanes(operator.partitions)
    ports = tuple(
        Port(port.name, Side.IN if port.type == "input" else Side.OUT, known_payload(port.payload))
        for port in operator.ports
        if port.connected
    )
    return Box(
        name=operator.name,
        title=operator.name,
        subtitle=operator.class_.rpartition(".")[2],
        role=_ROLES[operator.role],
        ports=ports,
        count=operator.count,
        lanes=lanes,
        notes=(f"parallel with {operator.parallel_with}",) if operator.parallel_with and operator.count > 1 else (),
        group=operator.stage,
    )


def _lanes(partitions: Sequence[PlannedPartition]) -> tuple[Lane, ...]:
    if not 1 < len(partitions) <= MOST_LANES:
        return ()
    return tuple(Lane(partition.index, _owned(partition)) for partition in partitions)


def _owned(partition: PlannedPartition) -> str:
    """The keys of a partition, as `keys 0, 3`; with the ports if it is keyed at several."""
    owned = {port: ", ".join(str(key) for key in sorted(keys.keys)) for port, keys in partition.keys.items()}
    if len(set(owned.values())) == 1:
        ((shown),) = set(owned.values())
        return f"{'keys' if ',' in shown else 'key'} {shown}"
    return "; ".join(f"{port} {shown}" for port, shown in sorted(owned.items()))


# -- unifiers ----------------------------------------------------------------------------------------------------------


class _Rank:
    """Parallel unifiers: of one stream and kind, before one sink, at one level of the cascade."""

    def __init__(self, stream: PlannedStream, unifiers: Sequence[PlannedUnifier]) -> None:
        self.stream = stream
        self.unifiers = tuple(unifiers)
        self.serves = unifiers[0].serves
        self.level = unifiers[0].level
        self.title = unifiers[0].kind.partition("/")[0].rpartition(".")[2] or "unifier"
        before = f" before {self.serves}" if self.serves else ""
        self.name = f"{stream.name}#{self.title}{self.level}{before}"

    @property
    def of_partitions(self) -> bool:
        """Whether each partition of the sink has its own unifier."""
        return all(unifier.partition is not None for unifier in self.unifiers)


def _ranks(stream: PlannedStream) -> Iterator[_Rank]:
    found: dict[tuple[int, str, str], list[PlannedUnifier]] = {}
    for unifier in stream.unifiers:
        found.setdefault((unifier.level, str(unifier.serves or ""), unifier.kind), []).append(unifier)
    yield from (_Rank(stream, unifiers) for unifiers in found.values())


def _rank_box(plan: Plan, rank: _Rank) -> Box:
    count = len(rank.unifiers)
    own = rank.of_partitions
    lanes = tuple(
        Lane(index, f"for {unifier.partition}" if own else f"of {len(unifier.inputs)}")
        for index, unifier in enumerate(rank.unifiers)
    )
    sink = plan.by_name.get(rank.serves.operator) if rank.serves else None
    inside = sink is not None and (own or sink.count == count == 1)
    return Box(
        name=rank.name,
        title=rank.title,
        subtitle=f"unifier of {rank.stream.source.port}",
        role=Role.UNIFIER,
        count=count,
        lanes=lanes if 1 < count <= MOST_LANES else (),
        group=sink.stage if sink is not None and inside else None,
    )


# -- wires -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Segment:
    """A part of a stream between two boxes."""

    tail: str
    head: str
    lines: tuple[Line, ...]
    sink: PlannedSink | None = None
    """The sink at its end, or the sink of the unifier at its end."""


def _wires(
    plan: Plan, stream: PlannedStream, ranks: Sequence[_Rank], boxes: Mapping[str, Box], cuts: Mapping[_Crossing, Cut]
) -> Iterator[Wire]:
    """One wire from each box that sends the stream: first its source, then its unifiers."""
    by_tail: dict[str, list[Head]] = {stream.source.operator: []}
    for segment in (*_into_unifiers(stream, ranks), *_into_sinks(plan, stream, ranks)):
        by_tail.setdefault(segment.tail, []).append(_head(stream, segment, boxes, cuts))
    for tail, heads in by_tail.items():
        source = tail == stream.source.operator
        yield Wire(
            stream=stream.name,
            tails=(End(tail, stream.source.port if source else ""),),
            heads=tuple(heads),
            payload=known_payload(stream.payload) if source else "",
            notes=(stream.locality.replace("_", " ").lower(),) if source and stream.locality else (),
        )


def _into_unifiers(stream: PlannedStream, ranks: Sequence[_Rank]) -> Iterator[_Segment]:
    sinks = {str(sink): sink for sink in stream.sinks}
    for rank in ranks:
        sink = sinks.get(str(rank.serves)) if rank.serves else next(iter(stream.sinks), None)
        for box, lines in _feeding(stream, ranks, rank).items():
            yield _Segment(box, rank.name, tuple(lines), sink)


def _feeding(stream: PlannedStream, ranks: Sequence[_Rank], rank: _Rank) -> Mapping[str, list[Line]]:
    """The boxes that a rank reads, with the lines from their lanes to its lanes."""
    lanes = {unifier.name: (other.name, index) for other in ranks for index, unifier in enumerate(other.unifiers)}
    feeding: dict[str, list[Line]] = {}
    for index, unifier in enumerate(rank.unifiers):
        for given in unifier.inputs:
            box, lane = lanes.get(given) or (stream.source.operator, _partition(given))
            feeding.setdefault(box, []).append((lane, index))
    return feeding


def _into_sinks(plan: Plan, stream: PlannedStream, ranks: Sequence[_Rank]) -> Iterator[_Segment]:
    sources = plan.by_name[stream.source.operator].count
    for sink in stream.sinks:
        count = plan.by_name[sink.operator].count
        last = _last_rank(ranks, sink)
        if last is None:
            lines = tuple(_routed(sources, count, sink.routing))
            yield _Segment(_origin(stream, ranks), sink.operator, lines, sink)
            continue
        served = (
            (index, partition)
            for index, unifier in enumerate(last.unifiers)
            for partition in (range(count) if unifier.partition is None else [unifier.partition])
        )
        yield _Segment(last.name, sink.operator, tuple(served), sink)


def _last_rank(ranks: Sequence[_Rank], sink: PlannedSink) -> _Rank | None:
    """The unifiers before a sink: its own, else those that equal sinks share, which name only the first sink."""
    if sink.parallel:
        return None
    final = [rank for rank in ranks if rank.serves is not None]
    own = [rank for rank in final if str(rank.serves) == str(sink)]
    shared = [rank for rank in final if not rank.of_partitions]
    return next(iter([*own, *shared]), None)


def _origin(stream: PlannedStream, ranks: Sequence[_Rank]) -> str:
    """The box that feeds a sink without unifiers: the sliders of the partitions if their windows slide."""
    return next((rank.name for rank in ranks if rank.serves is None and rank.title == "slider"), stream.source.operator)


def _routed(sources: int, sinks: int, routing: Routing) -> Iterator[Line]:
    """The pairs of partitions of which the first may send to the second."""
    if sources == sinks and routing in (Routing.STRAIGHT, Routing.DELAYED):
        yield from ((index, index) for index in range(sources))
    else:
        yield from ((source, sink) for source in range(sources) for sink in range(sinks))


def _partition(name: str) -> int | None:
    """The partition in the name of a unifier's input, such as `count[2]`."""
    number = re.search(r"\[(\d+)\]$", name)
    return int(number[1]) if number else None


def _head(stream: PlannedStream, segment: _Segment, boxes: Mapping[str, Box], cuts: Mapping[_Crossing, Cut]) -> Head:
    tail, head, sink = boxes[segment.tail], boxes[segment.head], segment.sink
    ends_in_sink = sink is not None and sink.operator == segment.head
    lines = _drawn(tail, head, segment.lines)
    many = len(lines) > MOST_LINES
    # The reason of a cut appears once: at the source, and not again behind each unifier.
    cut = cuts.get((stream.name, str(sink))) if segment.tail == stream.source.operator else None
    notes = (
        *(_notes(cut, sink) if cut else ()),
        *((f"{tail.count} \N{MULTIPLICATION SIGN} {head.count}",) if many else ()),
    )
    return Head(
        box=segment.head,
        port=sink.port if sink is not None and ends_in_sink else "",
        kind=_kind(segment, sink, cut, fused=tail.group == head.group is not None),
        notes=notes,
        lines=() if many else lines,
        why=cut.reason if cut else "",
    )


def _notes(cut: Cut, sink: PlannedSink | None) -> tuple[str, ...]:
    """The reason of a cut in a word or two, the routing if that adds information, and whether it costs a shuffle."""
    if sink is not None and sink.routing is Routing.DELAYED:
        return ("next window",)
    notes = [_CUTS[cut.kind]]
    if sink is not None and sink.routing in _ROUTINGS and cut.kind in (CutKind.COUNTS, CutKind.DRIVER):
        notes = [_ROUTINGS[sink.routing]] if cut.kind is CutKind.COUNTS else [*notes, _ROUTINGS[sink.routing]]
    return (*notes, "shuffled") if cut.exchange else tuple(notes)


def _kind(segment: _Segment, sink: PlannedSink | None, cut: Cut | None, *, fused: bool) -> WireKind:
    if fused:
        return WireKind.PARALLEL if sink is not None and sink.parallel else WireKind.FUSED
    if sink is not None and sink.routing is Routing.DELAYED:
        return WireKind.DELAYED
    if cut is not None and cut.kind is CutKind.DRIVER:
        return WireKind.DRIVER
    if cut is None:
        return WireKind.EXCHANGE if segment.head != (sink.operator if sink else "") else WireKind.PLAIN
    return WireKind.EXCHANGE if cut.exchange else WireKind.PLAIN


def _drawn(tail: Box, head: Box, lines: Iterable[Line]) -> tuple[Line, ...]:
    """The lines between lanes; a box without lanes is connected as a whole, and a single line for all is omitted."""
    met = dict.fromkeys((a if tail.lanes else None, b if head.lanes else None) for a, b in lines)
    return () if set(met) <= {(None, None)} else tuple(met)
