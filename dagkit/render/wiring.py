"""Converts wires to lines between boxes, lanes and labels, for all drawn formats.

A stream's name is on a hub in the wire, so that no name is ambiguous between two wires. If every partition may send to
every other, all lines go through the hub: M + N lines instead of M times N. A picture reads from left to right; a long
chain is wrapped into rows.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt

from dagkit.render.picture import Head, Picture, Side, View, Wire, WireKind, ranks

LONG = 7
"""Up to this number of boxes one after the other, a picture is not wrapped."""
NARROW = 3
"""A picture with more boxes beside each other is not wrapped."""
STEP = 220.0
"""The width of a box and of the wire after it, on average."""
LEVEL = 110.0
"""The height of a row of a wrapped picture, without lanes."""
PAGE = 1.6
"""Width by height of a screen or a slide."""


WORTH = 1.4
"""A picture is wrapped for a page if it becomes this many times larger by that."""


@dataclass(frozen=True, slots=True)
class Label:
    """The label of a wire: the stream's name, the payload, and notes."""

    stream: str
    payload: str
    notes: tuple[str, ...]
    kind: WireKind


@dataclass(frozen=True, slots=True)
class Hub:
    """A label with incoming and outgoing lines."""

    name: str
    label: Label
    group: str | None
    """The innermost frame that holds all its ends."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """The end of a line: a port or a lane of a box, or a hub."""

    box: str = ""
    port: str = ""
    lane: int | None = None
    hub: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """One line of a drawing."""

    tail: Anchor
    head: Anchor
    stream: str
    kind: WireKind
    why: str = ""
    label: Label | None = None
    """The label, if the line has no hub."""
    arrow: bool = True
    back: bool = False
    """Whether it runs against the order of the boxes; it is then drawn below them."""


@dataclass(frozen=True)
class Wiring:
    """All hubs and lines of a picture, stream by stream."""

    hubs: tuple[Hub, ...]
    links: tuple[Link, ...]
    rows: Mapping[str, int]
    """The row of each box if the picture is wrapped, as a long chain is; else empty."""

    @cached_property
    def turns(self) -> frozenset[int]:
        """The numbers of the links that lead from the end of a row to the next one. A label is in the row before it."""
        if not self.rows:
            return frozenset()
        labelled = {link.head.hub: link.tail.box for link in self.links if link.head.hub}

        def row(anchor: Anchor) -> int:
            return self.rows[anchor.box or labelled[anchor.hub]]

        return frozenset(i for i, link in enumerate(self.links) if row(link.tail) != row(link.head))


def wiring(picture: Picture, page: float | None = None) -> Wiring:
    """The lines that draw a picture's wires; for a `page` of this width by height, a chain of any length is wrapped."""
    hubs: list[Hub] = []
    links: list[Link] = []
    for index, wire in enumerate(picture.wires):
        named = picture.view is View.LOGICAL or any(end.port for end in wire.tails)
        for position, heads in enumerate(_bundles(wire)):
            label = _label(picture, wire, heads) if named else None
            if label is not None and _through_hub(heads):
                group = _common_group(picture, wire, heads)
                # Inside a module's frame, its streams have the names from inside the module.
                label = replace(label, stream=label.stream.removeprefix(f"{group}$"))
                hub = Hub(f"s{index}_{position}", label, group)
                hubs.append(hub)
                links += _hub_links(wire, heads, hub)
            else:
                links += _plain_links(wire, heads, label)
    return Wiring(tuple(hubs), tuple(links), _rows_of(picture, page))


def _rows_of(picture: Picture, page: float | None) -> Mapping[str, int]:
    """The row of each box, if the picture is a long chain, or a few beside each other; else nothing."""
    rank_of = ranks(picture)
    breadth = max(Counter(rank_of.values()).values(), default=1)
    depth = 1 + max(rank_of.values(), default=0)
    # A box in or behind a cycle has no rank, and so no row.
    if (page is None and depth <= LONG) or breadth > NARROW or len(rank_of) < len(picture.boxes):
        return {}
    # 17 is the height of a lane, `ROW` of `dagkit.render.dot`, which imports this module.
    level = LEVEL + 17 * max((len(box.lanes) for box in picture.boxes), default=0)
    if page is None:
        rows = int(sqrt(depth * STEP / (breadth * level) / PAGE))
        return _wrapped(picture, rank_of, -(-depth // rows)) if rows > 1 else {}
    levels = Counter(rank_of.values())

    def scale(length: int) -> float:
        """The scale at which a picture with so many ranks in a row fits into a page of the height 1."""
        rows = [range(first, min(first + length, depth)) for first in range(0, depth, length)]
        fitting = min(page / (length * STEP), 1 / (level * sum(max(levels[rank] for rank in row) for row in rows)))
        return fitting if len(rows) > 1 else WORTH * fitting

    # rows of nearly one length: with a single box in the last one, its line would be as long as the picture
    lengths = sorted({-(-depth // rows) for rows in range(1, depth)}, key=scale, reverse=True)
    wrapped = ({} if length == depth else _wrapped(picture, rank_of, length) for length in lengths)
    return next((row for row, length in zip(wrapped, lengths, strict=True) if row or length == depth), {})


def _wrapped(picture: Picture, rank_of: Mapping[str, int], length: int) -> Mapping[str, int]:
    """The row of each box if a row has at most this number of ranks; nothing if the picture cannot be divided so."""
    row = {name: rank // length for name, rank in rank_of.items()}
    turning = [row[head.box] - row[tail.box] for _, tail, head in picture.edges() if row[head.box] != row[tail.box]]
    # A layout leads one line through each gap between rows: a second one would lie on it, and one that skips a row
    # would cross the row.
    return row if set(turning) == {1} and len(turning) == max(row.values()) else {}


def _bundles(wire: Wire) -> Iterator[Sequence[Head]]:
    """The groups of heads that share a label: all without lanes together, each of the others alone."""
    together = [head for head in wire.heads if not head.lines]
    if together or not wire.heads:
        yield together
    yield from ([head] for head in wire.heads if head.lines)


def _label(picture: Picture, wire: Wire, heads: Sequence[Head]) -> Label:
    kinds = {head.kind for head in heads}
    notes = [*wire.notes, *(note for head in heads for note in head.notes)]
    if kinds == {WireKind.DELAYED}:
        # A line back ends at the box, not at the port, so the label names the port if there are several.
        notes += [f"to {head.port}" for head in heads if len(picture.by_name[head.box].side(Side.IN)) > 1]
    kind = kinds.pop() if len(kinds) == 1 else WireKind.PLAIN
    return Label(wire.stream, wire.payload, tuple(dict.fromkeys(notes)), kind)


def _through_hub(heads: Sequence[Head]) -> bool:
    """Whether to draw a hub: parallel lanes need none."""
    return all(_all_to_all(head) or head.kind is WireKind.DELAYED for head in heads)


def _all_to_all(head: Head) -> bool:
    near, far = {line[0] for line in head.lines}, {line[1] for line in head.lines}
    return len(set(head.lines)) == len(near) * len(far)


def _common_group(picture: Picture, wire: Wire, heads: Sequence[Head]) -> str | None:
    """The innermost frame that holds every end."""
    ends = [*(tail.box for tail in wire.tails), *(head.box for head in heads)]
    paths = [list(picture.frames_around(picture.by_name[box].group)) for box in ends]
    common = [frame for frame in paths[0] if all(frame in path for path in paths)] if paths else []
    return common[0] if common else None


def _hub_links(wire: Wire, heads: Sequence[Head], hub: Hub) -> Iterator[Link]:
    middle = Anchor(hub=hub.name)
    back = bool(wire.tails) and any(head.kind is WireKind.DELAYED for head in heads)
    for tail in wire.tails:
        for lane in [None] if back else _lanes(0, heads):
            yield Link(Anchor(tail.box, tail.port, lane), middle, wire.stream, hub.label.kind, arrow=False, back=back)
    for head in heads:
        for lane in [None] if back else _lanes(1, (head,)):
            yield Link(middle, Anchor(head.box, head.port, lane), wire.stream, head.kind, head.why, back=back)


def _lanes(which: int, heads: Sequence[Head]) -> Sequence[int | None]:
    return list(dict.fromkeys(line[which] for head in heads for line in head.lines)) or [None]


def _plain_links(wire: Wire, heads: Sequence[Head], label: Label | None) -> Iterator[Link]:
    for tail in wire.tails:
        for head in heads:
            for near, far in head.lines or ((None, None),):
                ends = Anchor(tail.box, tail.port, near), Anchor(head.box, head.port, far)
                yield Link(*ends, wire.stream, head.kind, head.why, label)
                # One of the lines has the label for all.
                label = None
