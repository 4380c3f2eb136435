"""Draws a picture as text, for terminals and logs: one line for each operator, streams as rails beside the lines.

A rail leaves its outlet's line, passes the lines between, and branches off at each inlet. If there are more streams
than fit as rails, the longest are numbered instead: `[7]` at the outlet belongs to `[7]` at the inlets.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dagkit.render.content import plain
from dagkit.render.picture import Box, Group, GroupKind, Head, Picture, Port, Role, Side, Wire, WireKind

MOST_RAILS = 16


@dataclass(frozen=True, slots=True)
class _Row:
    """A line of text, and the ends of wires on it."""

    text: str = ""
    leaving: tuple[int, ...] = ()
    arriving: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _Rail:
    """A wire's path along the lines from its first end to its last."""

    wire: int
    rows: tuple[int, ...]
    """The lines with an end of the wire."""
    arrivals: frozenset[int]
    strokes: str
    """The characters for: corner down, branch, corner up, along, across."""
    column: int = 0


def text(picture: Picture) -> str:
    """The picture as text."""
    boxes = reading_order(picture)
    rows = list(_rows(picture, boxes))
    rails, numbers = _laid(_rails(picture, rows))
    rows = [_numbered(row, numbers) for row in rows]
    margin = _margin(rails, len(rows))
    title = f"{plain(picture.title)}: " if picture.title else ""
    lines = [f"{title}{picture.view}, {picture.summary}", ""]
    lines += [f"{rail}{row.text}".rstrip() for rail, row in zip(margin, rows, strict=True)]
    return "\n".join(lines) + "\n"


# -- lines of text -----------------------------------------------------------------------------------------------------


def reading_order(picture: Picture) -> list[Box]:
    """The boxes in reading order: upstream first, chains unbroken, frame by frame; loops keep the declared order."""
    followers: dict[str, list[str]] = {box.name: [] for box in picture.boxes}
    waiting = dict.fromkeys(followers, 0)
    for _, tail, head in picture.edges():
        if head.kind is not WireKind.DELAYED:
            followers[tail.box].append(head.box)
            waiting[head.box] += 1
    ordered: dict[str, None] = {}
    stack = [name for name in reversed(followers) if not waiting[name]]
    while stack:
        name = stack.pop()
        ordered[name] = None
        # Reversed, because the stack returns the follower that was added last.
        for follower in reversed(followers[name]):
            waiting[follower] -= 1
            if not waiting[follower]:
                stack.append(follower)
    ordered |= dict.fromkeys(followers)
    position = {name: index for index, name in enumerate(ordered)}
    frames = _frames(picture, followers, list(ordered))
    return sorted(picture.boxes, key=lambda box: (frames[box.name], position[box.name]))


def _frames(
    picture: Picture, followers: Mapping[str, Sequence[str]], ordered: Sequence[str]
) -> Mapping[str, tuple[int, int]]:
    """The place of each box's stage; a box between stages comes right before the first stage that it feeds."""
    stages = {g.name: index for index, g in enumerate(picture.groups) if g.kind is not GroupKind.MODULE}
    frames = dict.fromkeys(followers, (len(stages), 0))
    for name in reversed(ordered):
        group = picture.by_name[name].group
        fed = [frames[follower][0] for follower in followers[name]]
        frames[name] = (stages[group], 1) if group in stages else (min(fed, default=len(stages)), 0)
    return frames


def _rows(picture: Picture, boxes: Sequence[Box]) -> Iterator[_Row]:
    ends = _ends(picture)
    groups = {group.name: group for group in picture.groups if group.kind is not GroupKind.MODULE}
    current: Group | None = None
    for box in boxes:
        group = groups.get(box.group or "")
        if group is not None and group is not current:
            yield from ([_Row()] if current is not None else [])
            yield _Row(_framed(picture, group))
        current = group
        yield _Row(_titled(box), arriving=ends.get((box.name, Side.IN, ""), ()))
        yield from _port_rows(picture, box, ends)
    for index, wire in enumerate(picture.wires):
        if not wire.tails:
            yield _Row(f"  ? {_streamed(wire)} has no source", leaving=(index,))


_Ends = Mapping[tuple[str, Side, str], tuple[int, ...]]
"""The wires at each port."""


def _ends(picture: Picture) -> _Ends:
    ends: dict[tuple[str, Side, str], tuple[int, ...]] = {}
    for index, wire in enumerate(picture.wires):
        places = [(tail.box, Side.OUT, tail.port) for tail in wire.tails]
        places += [(head.box, Side.IN, head.port) for head in wire.heads]
        for place in dict.fromkeys(places):
            ends[place] = (*ends.get(place, ()), index)
    return ends


def _port_rows(picture: Picture, box: Box, ends: _Ends) -> Iterator[_Row]:
    """The rows of the connected ports, and of the ports that lack a stream."""
    for port in box.side(Side.IN):
        wires = ends.get((box.name, Side.IN, port.name), ())
        if wires or port.required:
            yield _Row(_inlet(picture, box, port, wires), arriving=wires)
    for port in box.side(Side.OUT):
        wires = ends.get((box.name, Side.OUT, port.name), ())
        if wires or port.required:
            yield _Row(_outlet(picture, port, wires), leaving=wires)
    unified = ends.get((box.name, Side.OUT, ""), ())
    if unified:
        yield _Row("    unified", leaving=unified)


def _framed(picture: Picture, group: Group) -> str:
    """The title of a stage; without a name that only lists its operators, since they follow anyway."""
    members = " + ".join(box.title for box in picture.members(group.name) if box.role is not Role.UNIFIER)
    name = "" if group.title == members else f" {plain(group.title)}"
    return f"stage{name} ({', '.join(group.notes)})"


def _titled(box: Box) -> str:
    role = [] if box.role is Role.OPERATOR else [str(box.role)]
    subtitle = [] if box.subtitle in ("", box.title) else [plain(box.subtitle)]
    unifier = box.role is Role.UNIFIER
    notes = subtitle if unifier else [*subtitle, *role]
    more = f"  ({', '.join(notes)})" if notes else ""
    owned = f"  {'; '.join(box.owned)}" if box.owned else ""
    return f"● {plain(box.title if unifier else box.name)}{box.times}{more}{owned}"


def _inlet(picture: Picture, box: Box, port: Port, wires: Sequence[int]) -> str:
    notes: list[str] = []
    for index in wires:
        for head in picture.wires[index].heads:
            if (head.box, head.port) == (box.name, port.name):
                notes += [*_kind(head), *head.notes]
    more = f"  ({', '.join(dict.fromkeys(notes))})" if notes else ""
    return f"    {plain(port.name)}{more}" if wires else f"    {plain(port.name)}  (not connected)"


def _kind(head: Head) -> Sequence[str]:
    names = {WireKind.PARALLEL: "partition-parallel", WireKind.DELAYED: "next window", WireKind.EXCHANGE: "shuffled"}
    return [names[head.kind]] if head.kind in names and names[head.kind] not in " ".join(head.notes) else []


def _outlet(picture: Picture, port: Port, wires: Sequence[int]) -> str:
    if not wires:
        return f"    {plain(port.name)}  (not connected)"
    streams = " and ".join(_streamed(picture.wires[index]) for index in wires)
    return f"    {plain(port.name)} → {streams}"


def _streamed(wire: Wire) -> str:
    unread = ["not read"] if not wire.heads else []
    unified = [note for head in wire.heads if not head.port for note in head.notes]
    known = [part for part in (wire.payload, *wire.notes, *unified, *unread) if part]
    return f"{plain(wire.stream)}{' (' + ', '.join(dict.fromkeys(known)) + ')' if known else ''}"


# -- rails -------------------------------------------------------------------------------------------------------------


def _rails(picture: Picture, rows: Sequence[_Row]) -> Iterator[_Rail]:
    ends: dict[int, list[int]] = {}
    arrivals: dict[int, set[int]] = {}
    for position, row in enumerate(rows):
        for wire in dict.fromkeys((*row.leaving, *row.arriving)):
            ends.setdefault(wire, []).append(position)
        for wire in row.arriving:
            arrivals.setdefault(wire, set()).add(position)
    for wire, positions in ends.items():
        kinds = {head.kind for head in picture.wires[wire].heads}
        yield _Rail(wire, tuple(positions), frozenset(arrivals.get(wire, ())), _strokes(kinds))


def _strokes(kinds: Iterable[WireKind]) -> str:
    if set(kinds) == {WireKind.PARALLEL}:
        return "╔╠╚║═"
    return "╭├╰┊┄" if set(kinds) == {WireKind.DELAYED} else "╭├╰│─"


def _laid(rails: Iterable[_Rail]) -> tuple[list[_Rail], Mapping[int, int]]:
    """The rails in columns, short ones nearest to the text, and the numbers of the wires that did not fit."""
    laid: list[_Rail] = []
    taken: list[list[tuple[int, int]]] = [[] for _ in range(MOST_RAILS)]
    numbers: list[int] = []
    for rail in sorted(rails, key=lambda r: (r.rows[-1] - r.rows[0], r.rows[0])):
        first, last = rail.rows[0], rail.rows[-1]
        if first == last:
            laid += [rail] if rail.arrivals else []
            continue
        free = (c for c, spans in enumerate(taken) if all(last < a or b < first for a, b in spans))
        column = next(free, None)
        if column is None:
            numbers.append(rail.wire)
        else:
            taken[column].append((first, last))
            laid.append(replace(rail, column=column))
    return laid, {wire: number for number, wire in enumerate(sorted(numbers), start=1)}


def _numbered(row: _Row, numbers: Mapping[int, int]) -> _Row:
    marks = [f"[{numbers[wire]}]" for wire in (*row.leaving, *row.arriving) if wire in numbers]
    return replace(row, text=f"{row.text}  {' '.join(marks)}") if marks else row


def _margin(rails: Sequence[_Rail], height: int) -> list[str]:
    """The rails to the left of each line."""
    columns = 1 + max((rail.column for rail in rails), default=-1)
    width = 2 * columns + 2
    grid = [[" "] * width for _ in range(height)]
    for rail in rails:
        at = 2 * (columns - 1 - rail.column)
        for position in rail.rows:
            for across in range(at + 1, width - 1):
                grid[position][across] = rail.strokes[4]
            if position in rail.arrivals:
                grid[position][width - 2] = ">"
    # Vertical strokes come second: where two rails cross, the vertical one stays unbroken.
    for rail in rails:
        at = 2 * (columns - 1 - rail.column)
        first, last = rail.rows[0], rail.rows[-1]
        for position in range(first, last + 1):
            corner = 0 if position == first else 2 if position == last else 1 if position in rail.rows else 3
            grid[position][at] = rail.strokes[4 if first == last else corner]
    return ["".join(line) for line in grid]
