"""Folds a picture that is too large for a screen.

Each of its outermost frames becomes one box, which a reader of the console may open. If they are still too many, they
are divided into parts, in the order of their steps. A file cannot be opened: there, branches that are alike become one.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace

from dagkit.ground.amounts import counted
from dagkit.plan.model import Plan
from dagkit.render.picture import Box, End, Group, GroupKind, Head, Picture, Role, Wire, WireKind, ranks

READABLE = 60
"""The frames of a picture with more boxes are closed."""
PARTS = 24
"""How many parts a picture of very many boxes and frames has, in which each can be opened."""
BESIDE = 12
"""How many parts one has in a file, where they lie beside each other."""
MOST_BOXES = 120
"""A drawing with more boxes, in which no frame can be opened, cannot be read on a screen."""
_FEW = 2


def folded(picture: Picture) -> Picture:
    """The picture for a file, with at most `MOST_BOXES` boxes; a small picture unchanged."""
    if len(picture.boxes) <= MOST_BOXES:
        return picture
    alike = _branches_joined(picture)
    return alike if len(alike.boxes) <= MOST_BOXES else _closed(in_parts(picture, BESIDE))


# -- frames ------------------------------------------------------------------------------------------------------------


def closed(picture: Picture, opened: Collection[str] = ()) -> Picture:
    """The picture with one box for each outermost frame that is not `opened`; unchanged if it has few boxes."""
    return picture if len(picture.boxes) <= READABLE else _closed(picture, opened)


def by_stage(picture: Picture, plan: Plan) -> Picture:
    """The logical picture with a frame for each stage instead of the modules, for a plan without enough modules."""
    groups = tuple(Group(stage.name, stage.name, GroupKind.WORKERS) for stage in plan.stages)
    boxes = tuple(replace(box, title=box.name, group=plan.by_name[box.name].stage) for box in picture.boxes)
    return replace(picture, boxes=boxes, groups=groups)


def in_parts(picture: Picture, number: int = PARTS) -> Picture:
    """The picture with many outermost frames and boxes divided into parts of one size, in the order of their steps."""
    outermost = _closed(picture)
    if len(outermost.boxes) <= READABLE:
        return picture
    steps = ranks(outermost)  # a cycle, which only an invalid graph has, stays at its beginning
    ordered = sorted((steps.get(box.name, 0) + 1, index, box.name) for index, box in enumerate(outermost.boxes))
    size = -(-len(ordered) // number)
    parts: list[Group] = []
    part_of: dict[str, str] = {}
    for start in range(0, len(ordered), size):
        first, last = ordered[start][0], ordered[start : start + size][-1][0]
        title = f"step {first}" if first == last else f"steps {first} to {last}"
        parts.append(Group(f"part {len(parts) + 1}", title, GroupKind.WORKERS))
        part_of |= {name: parts[-1].name for _, _, name in ordered[start : start + size]}
    inside = (replace(group, parent=group.parent or part_of.get(group.name)) for group in picture.groups)
    boxes = tuple(replace(box, group=box.group or part_of[box.name]) for box in picture.boxes)
    return replace(picture, boxes=boxes, groups=(*parts, *inside))


def _closed(picture: Picture, opened: Collection[str] = ()) -> Picture:
    groups = {group.name: group for group in picture.groups}
    shown: dict[str, str] = {}
    members: dict[str, list[Box]] = defaultdict(list)
    for box in picture.boxes:
        closed_frames = [name for name in picture.frames_around(box.group) if name not in opened]
        shown[box.name] = closed_frames[-1] if closed_frames else box.name
        members[shown[box.name]].append(box)
    # A stage may be named like an operator in it, so an opened frame is never taken for a closed one.
    shut = set(members) & set(groups) - set(opened)
    boxes = {name: _closed_box(groups[name], found) if name in shut else found[0] for name, found in members.items()}
    visible = {frame for box in boxes.values() for frame in picture.frames_around(box.group)}
    wires = tuple(_wires(picture, shown, boxes, shut))
    frames = tuple(group for group in picture.groups if group.name in visible)
    return replace(picture, boxes=tuple(boxes.values()), wires=wires, groups=frames)


def _closed_box(group: Group, members: Sequence[Box]) -> Box:
    """One box for a frame: with the names of its operators if they are few, else their number."""
    named = ", ".join(box.title for box in members) if len(members) <= _FEW else counted(len(members), "operator")
    return Box(group.name, group.title, named, Role.MODULE, notes=group.notes, group=group.parent)


def _wires(
    picture: Picture, shown: Mapping[str, str], boxes: Mapping[str, Box], shut: Collection[str]
) -> Iterator[Wire]:
    """The wires between the boxes that are shown for others; all from or to a closed frame to another box are one."""
    single: dict[tuple[str, str], tuple[Wire, dict[Head, None]]] = {}
    bundles: dict[tuple[str, str], list[tuple[Wire, End, Head]]] = defaultdict(list)
    for wire, tail, head in picture.edges():
        start, end = shown[tail.box], shown[head.box]
        if start not in shut and end not in shut:
            own = wire if start == tail.box else replace(wire, stream=f"{start}:{tail.port}")
            lines = head.lines if boxes[start].lanes or boxes[end].lanes else ()
            single.setdefault((start, tail.port), (own, {}))[1][replace(head, box=end, lines=lines)] = None
        elif start != end:
            bundles[start, end].append((wire, tail, head))
    for (start, port), (wire, heads) in single.items():
        yield replace(wire, tails=(End(start, port),), heads=tuple(heads))
    for (start, end), found in bundles.items():
        wire, tail, head = found[0]
        kinds = {head.kind for _, _, head in found}
        yield Wire(
            stream=wire.stream if len(found) == 1 else counted(len(found), "stream"),
            tails=(End(start, "" if start in shut else tail.port),),
            heads=(
                replace(
                    head,
                    box=end,
                    port="" if end in shut else head.port,
                    lines=(),
                    kind=head.kind if len(kinds) == 1 else WireKind.PLAIN,
                ),
            ),
        )


# -- branches that are alike -------------------------------------------------------------------------------------------


def _branches_joined(picture: Picture) -> Picture:
    """The picture with equal branches as one: all that leads to a box, and all that follows it, is as for the other."""
    into: dict[str, list[tuple[Hashable, str]]] = defaultdict(list)
    out_of: dict[str, list[tuple[Hashable, str]]] = defaultdict(list)
    for _, tail, head in picture.edges():
        into[head.box].append(((tail.port, head.port, head.kind), tail.box))
        out_of[tail.box].append(((tail.port, head.port, head.kind), head.box))
    order = list(ranks(picture))
    before, after = _numbered(picture, order, into), _numbered(picture, order[::-1], out_of)
    first: dict[Hashable, str] = {}
    # Boxes in or behind a cycle have no rank, and stand for themselves.
    stands = {box.name: box.name for box in picture.boxes}
    stands |= {name: first.setdefault((before[name], after[name]), name) for name in order}
    members: dict[str, list[Box]] = defaultdict(list)
    for box in picture.boxes:
        members[stands[box.name]].append(box)
    boxes = {name: _one_box(found) for name, found in members.items()}
    # Frames go: one that holds boxes of several would name only one of them.
    return replace(picture, boxes=tuple(boxes.values()), wires=tuple(_wires(picture, stands, boxes, ())), groups=())


def _numbered(
    picture: Picture, order: Sequence[str], around: Mapping[str, Sequence[tuple[Hashable, str]]]
) -> Mapping[str, int]:
    """A number for each box, equal for two that show the same and have neighbours of equal numbers on this side."""
    numbers: dict[str, int] = {}
    known: dict[Hashable, int] = {}
    for name in order:
        box = picture.by_name[name]
        shows = (box.subtitle or box.title, box.role, box.count, box.ports)
        neighbours = frozenset((wire, numbers.get(other)) for wire, other in around.get(name, ()))
        numbers[name] = known.setdefault((shows, neighbours), len(known))
    return numbers


def _one_box(alike: Sequence[Box]) -> Box:
    """One box for several that are alike."""
    box = replace(alike[0], lanes=(), group=None)
    if len(alike) == 1:
        return box
    number = counted(len(alike), "unifier" if box.role is Role.UNIFIER else "operator")
    subtitle = ", ".join(filter(None, (box.subtitle, number)))
    return replace(box, title=span(box.title, alike[-1].title), subtitle=subtitle, notes=())


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
