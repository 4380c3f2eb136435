"""Folds a picture that is too large for a screen, in steps, until it fits.

First unifiers join the operators behind them. Then boxes that are alike become one, then those of a frame, then those
of a chain, and in the end those at the same distance from the inputs. Boxes are alike if they show the same class with
as many partitions, and what leads to them and from them is alike.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from dagkit.render.direction import ranks
from dagkit.render.picture import Box, End, Group, Head, Picture, Role, Wire, counted

MOST_UNIFIERS = 60
"""In a picture with more boxes, unifiers have none of their own."""
MOST_BOXES = 120
"""A picture with more boxes cannot be read on a screen."""

Fold = Callable[[Picture], Mapping[str, str]]
"""The box that stands for each box."""


def folded(picture: Picture) -> Picture:
    """The picture with at most `MOST_BOXES` boxes, unless more follow each other; a small picture unchanged."""
    for fold, most in _FOLDS:
        if len(picture.boxes) > most:
            merged = _merged(picture, fold(picture))
            if not _is_ordered(merged):
                continue
            # frames that lead into each other cannot be drawn side by side
            picture = merged if _is_ordered(_merged(merged, _framed(merged))) else _unframed(merged)
    return picture if len(picture.boxes) <= MOST_BOXES else _levels(picture)


def _is_ordered(picture: Picture) -> bool:
    """Whether no box leads back to itself."""
    return len(ranks(picture)) == len(picture.boxes)


def _unframed(picture: Picture) -> Picture:
    return replace(picture, boxes=tuple(replace(box, group=None) for box in picture.boxes), groups=())


def _unified(picture: Picture) -> Mapping[str, str]:
    """A unifier joins the operator in its frame, if it sends to no other box."""
    to: dict[str, set[str]] = defaultdict(set)
    for _, tail, head in picture.edges():
        to[tail.box].add(head.box)
    stands = {box.name: box.name for box in picture.boxes}
    for box in picture.boxes:
        if box.role is Role.UNIFIER and len(to[box.name]) == 1:
            (only,) = to[box.name]
            stands[box.name] = only if picture.by_name[only].group == box.group else box.name
    return {name: stands[stand] for name, stand in stands.items()}


def _alike(picture: Picture) -> Mapping[str, str]:
    """Equal branches become one: all that leads to a box, and all that follows it, is as for the other one."""
    into: dict[str, list[tuple[Hashable, str]]] = defaultdict(list)
    out_of: dict[str, list[tuple[Hashable, str]]] = defaultdict(list)
    for _, tail, head in picture.edges():
        into[head.box].append(((tail.port, head.port, head.kind), tail.box))
        out_of[tail.box].append(((tail.port, head.port, head.kind), head.box))
    order = list(ranks(picture))
    before, after = _numbered(picture, order, into), _numbered(picture, order[::-1], out_of)
    first: dict[Hashable, str] = {}
    return {name: first.setdefault((before[name], after[name]), name) for name in before}


def _numbered(
    picture: Picture, order: Sequence[str], around: Mapping[str, Sequence[tuple[Hashable, str]]]
) -> Mapping[str, int]:
    """A number for each box, equal for two that show the same and have neighbours of equal numbers on this side."""
    numbers: dict[str, int] = {}
    known: dict[Hashable, int] = {}
    for name in order:
        box = picture.by_name[name]
        shows = (box.subtitle or box.title, box.role, box.count, box.ports, box.group is None)
        neighbours = frozenset((wire, numbers.get(other)) for wire, other in around.get(name, ()))
        numbers[name] = known.setdefault((shows, neighbours), len(known))
    return numbers


def _framed(picture: Picture) -> Mapping[str, str]:
    """All boxes of a frame become one."""
    first: dict[str, str] = {}
    return {box.name: box.name if box.group is None else first.setdefault(box.group, box.name) for box in picture.boxes}


def _chained(picture: Picture) -> Mapping[str, str]:
    """Boxes that follow each other without a branch become one."""
    after: dict[str, set[str]] = defaultdict(set)
    before: dict[str, set[str]] = defaultdict(set)
    for _, tail, head in picture.edges():
        after[tail.box].add(head.box)
        before[head.box].add(tail.box)
    stands: dict[str, str] = {}
    for box in picture.boxes:
        (only,) = before[box.name] if len(before[box.name]) == 1 else ("",)
        follows = only in stands and len(after[only]) == 1
        stands[box.name] = stands[only] if follows else box.name
    return stands


_FOLDS: Sequence[tuple[Fold, int]] = (
    (_unified, MOST_UNIFIERS),
    (_alike, MOST_BOXES),
    (_framed, MOST_BOXES),
    (_chained, MOST_BOXES),
)
"""The steps, and the number of boxes above which each is taken."""


def _levels(picture: Picture) -> Picture:
    """A chain: one box for all boxes at the same distance from the inputs, and how many streams lead on from there."""
    levels: dict[int, list[Box]] = defaultdict(list)
    rank = ranks(picture)
    for box in picture.boxes:
        levels[rank[box.name]].append(box)
    boxes = [replace(_box(members[0], members), group=None, ports=()) for _, members in sorted(levels.items())]
    spans = [(rank[tail.box], rank[head.box]) for _, tail, head in picture.edges()]
    wires = []
    for level, (one, other) in enumerate(pairwise(boxes)):
        crossing = sum(start <= level < end for start, end in spans)
        head = Head(other.name, notes=(counted(crossing, "stream"),))
        wires.append(Wire(f"{one.name}:", (End(one.name),), (head,)))
    return replace(picture, boxes=tuple(boxes), wires=tuple(wires), groups=())


def _merged(picture: Picture, stands: Mapping[str, str]) -> Picture:
    """The picture with one box for all boxes that the same one stands for."""
    members: dict[str, list[Box]] = defaultdict(list)
    for box in picture.boxes:
        members[stands[box.name]].append(box)
    boxes = tuple(_box(picture.by_name[name], found) for name, found in members.items())
    frames = {box.group for box in boxes}
    return replace(picture, boxes=boxes, wires=tuple(_wires(picture, stands)), groups=_frames(picture, frames))


def _box(box: Box, members: Sequence[Box]) -> Box:
    """One box for several."""
    operators = [each for each in members if each.role is not Role.UNIFIER] or members
    if len(operators) == 1:
        return replace(operators[0], name=box.name, lanes=())
    first, last = operators[0].title, operators[-1].title
    alike = len({(each.subtitle or each.title, each.ports) for each in operators}) == 1
    count = sum(_operators_in(each) for each in operators)
    return replace(
        box,
        title=span(first, last),
        subtitle=", ".join(filter(None, (box.subtitle if alike else "", counted(count, "operator")))),
        role=operators[0].role,
        count=max(each.count for each in operators),
        ports=box.ports if alike else (),
        lanes=(),
        notes=(),
    )


def span(first: str, last: str) -> str:
    """One name for all from the first to the last: what both begin and end with appears once, as in `Clean-0…99`."""
    if first == last:
        return first
    least = min(len(first), len(last))
    ahead = next((at for at in range(least) if first[at] != last[at]), least)
    behind = next((at for at in range(least - ahead) if first[-1 - at] != last[-1 - at]), least - ahead)
    ahead = len(re.sub(r"[^\W_]*$", "", first[:ahead]))  # a word or a number is not divided
    behind = len(re.sub(r"^[^\W_]*", "", first[len(first) - behind :]))
    if not ahead:
        return f"{first} \N{HORIZONTAL ELLIPSIS} {last}"
    return f"{first[: len(first) - behind]}\N{HORIZONTAL ELLIPSIS}{last[ahead:]}"


def _operators_in(box: Box) -> int:
    """The number of operators that a box stands for, which an earlier step wrote into it."""
    number = re.search(r"(\d+) operators$", box.subtitle)
    return int(number[1]) if number else 1


def _wires(picture: Picture, stands: Mapping[str, str]) -> Sequence[Wire]:
    """The wires between different boxes, each pair of ends once."""
    heads: dict[tuple[str, str], dict[Head, None]] = defaultdict(dict)
    wires: dict[tuple[str, str], Wire] = {}
    for wire, tail, head in picture.edges():
        source, sink = stands[tail.box], stands[head.box]
        if source != sink:
            key = (source, tail.port)
            wires.setdefault(key, replace(wire, stream=f"{source}:{tail.port}" if tail.box != source else wire.stream))
            heads[key].setdefault(replace(head, box=sink, lines=(), why=""))
    return [replace(wire, tails=(End(*key),), heads=tuple(heads[key])) for key, wire in wires.items()]


def _frames(picture: Picture, kept: set[str | None]) -> tuple[Group, ...]:
    """The frames that still hold a box."""
    parents = {group.name: group.parent for group in picture.groups}
    for name in list(kept):
        while name is not None and (name := parents.get(name)) is not None:
            kept.add(name)
    return tuple(group for group in picture.groups if group.name in kept)
