"""Closes the frames of a large picture: each becomes one box, which a reader may open.

`folding` instead makes one picture of all that is there, for a file or a terminal.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from dagkit.plan.model import Plan, Routing
from dagkit.render.picture import (
    Box,
    End,
    Group,
    GroupKind,
    Head,
    Picture,
    Role,
    Wire,
    WireKind,
    counted,
)

READABLE = 60
"""The frames of a picture with more boxes are closed."""
PARTS = 24
"""How many parts a graph of very many stages has."""
_FEW = 2


def by_stage(picture: Picture, plan: Plan) -> Picture:
    """The logical picture with a frame for each stage instead of the modules, for a plan without enough modules."""
    groups = tuple(Group(stage.name, stage.name, GroupKind.WORKERS) for stage in plan.stages)
    boxes = tuple(replace(box, title=box.name, group=plan.by_name[box.name].stage) for box in picture.boxes)
    return replace(picture, boxes=boxes, groups=groups)


def in_parts(picture: Picture, plan: Plan) -> Picture:
    """A picture with stages as frames; many stages are divided into parts of one size, in the order of their steps."""
    if len(picture.groups) <= READABLE:
        return picture
    steps = _steps(plan)
    ordered = sorted(picture.groups, key=lambda stage: steps[stage.name])
    size = -(-len(ordered) // PARTS)
    parts, inside = [], []
    for number, part in enumerate(_batched(ordered, size), start=1):
        first, last = steps[part[0].name], steps[part[-1].name]
        title = f"step {first}" if first == last else f"steps {first} to {last}"
        parts.append(Group(f"part {number}", title, GroupKind.WORKERS))
        inside += [replace(stage, parent=f"part {number}") for stage in part]
    return replace(picture, groups=(*parts, *inside))


def _batched(groups: Sequence[Group], size: int) -> Iterator[Sequence[Group]]:
    rest = iter(groups)
    while part := list(islice(rest, size)):
        yield part


def _steps(plan: Plan) -> Mapping[str, int]:
    """By stage, how many stages the longest way to it has; items that arrive in the next window do not count."""
    above: dict[str, list[str]] = {}
    for stream in plan.streams:
        for sink in stream.sinks:
            if sink.routing is not Routing.DELAYED:
                above.setdefault(sink.operator, []).append(stream.source.operator)
    step: dict[str, int] = {}
    for operator in plan.operators:  # upstream operators come first
        stage = operator.stage
        before = (plan.by_name[name].stage for name in above.get(operator.name, ()))
        step[stage] = max([step.get(stage, 1), *(step.get(each, 1) + 1 for each in before if each != stage)])
    return step


def closed(picture: Picture, opened: Collection[str] = ()) -> Picture:
    """The picture with one box for each outermost frame that is not `opened`; unchanged if it has few boxes."""
    if len(picture.boxes) <= READABLE:
        return picture
    return _Closing(picture, opened).picture()


@dataclass(frozen=True, slots=True)
class _Closing:
    original: Picture
    opened: Collection[str]

    def picture(self) -> Picture:
        groups = {group.name: group for group in self.original.groups}
        shown = {box.name: self._shown(box, groups) for box in self.original.boxes}
        members: dict[str, list[Box]] = {}
        for box in self.original.boxes:
            members.setdefault(shown[box.name], []).append(box)
        # A stage may be named like an operator in it, so an opened frame is never taken for a closed one.
        shut = {shown[box.name] for box in self.original.boxes} & set(groups) - set(self.opened)
        wires = tuple(self._wires(shown, shut))
        boxes = tuple(_closed_box(groups[name], found) if name in shut else found[0] for name, found in members.items())
        visible = {ancestor for box in boxes for ancestor in _ancestors(box.group, groups)}
        kept = tuple(group for group in self.original.groups if group.name in visible)
        return replace(self.original, boxes=boxes, wires=wires, groups=kept)

    def _shown(self, box: Box, groups: Mapping[str, Group]) -> str:
        """The box itself, or the outermost closed frame around it."""
        return next((name for name in reversed(_ancestors(box.group, groups)) if name not in self.opened), box.name)

    def _wires(self, shown: Mapping[str, str], shut: Collection[str]) -> Iterator[Wire]:
        """The wires that leave their box; those between the same two boxes are one."""
        drawn: dict[tuple[str, str], list[tuple[Wire, End, Head]]] = {}
        for wire, tail, head in self.original.edges():
            ends = shown[tail.box], shown[head.box]
            if ends[0] != ends[1] or ends[0] == tail.box:
                drawn.setdefault(ends, []).append((wire, tail, head))
        for (start, end), found in drawn.items():
            wire, tail, head = found[0]
            if start not in shut and end not in shut:
                yield from (replace(w, tails=(t,), heads=(h,)) for w, t, h in found)
                continue
            yield Wire(
                stream=wire.stream if len(found) == 1 else counted(len(found), "stream"),
                tails=(End(start, "" if start in shut else tail.port),),
                heads=(replace(head, box=end, port="" if end in shut else head.port, lines=(), kind=_kind(found)),),
            )


def _kind(found: Sequence[tuple[Wire, End, Head]]) -> WireKind:
    kinds = {head.kind for _, _, head in found}
    return kinds.pop() if len(kinds) == 1 else WireKind.PLAIN


def _ancestors(group: str | None, groups: Mapping[str, Group]) -> list[str]:
    """A frame and those around it, innermost first."""
    found = []
    while group is not None:
        found.append(group)
        group = groups[group].parent
    return found


def _closed_box(group: Group, members: Sequence[Box]) -> Box:
    return Box(
        name=group.name,
        title=group.title,
        subtitle=_named(members),
        role=Role.MODULE,
        notes=group.notes,
        group=group.parent,
    )


def _named(members: Sequence[Box]) -> str:
    """The operators of a closed frame: their names if they are few, else their number."""
    return ", ".join(box.title for box in members) if len(members) <= _FEW else counted(len(members), "operator")
