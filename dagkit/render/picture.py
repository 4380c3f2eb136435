"""The picture: the content of a drawing, independent of its format.

`logical` and `physical` make it, `formats` writes it. A box is an operator, a module, or the unifiers of one output. A
wire is a stream, or the part of one between partitions and their unifiers. Unconnected ends are absent, so an
incomplete Dag has a picture too.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cached_property
from typing import Literal

PICTURE_SCHEMA: Literal["dagkit.picture/1"] = "dagkit.picture/1"


class View(StrEnum):
    """The two kinds of pictures of an application."""

    LOGICAL = "logical"
    PHYSICAL = "physical"


class Role(StrEnum):
    """The kind of thing that a box shows."""

    INPUT = "input"
    OPERATOR = "operator"
    DELAY = "delay"
    MODULE = "module"
    UNIFIER = "unifier"


class Side(StrEnum):
    """The side of a port on its box."""

    IN = "in"
    OUT = "out"


class WireKind(StrEnum):
    """How items reach the far end of a wire."""

    PLAIN = "plain"
    PARALLEL = "parallel"
    """The far end mirrors the partitions of the near one."""
    FUSED = "fused"
    """Both ends are in one stage: an item is passed on by a call."""
    EXCHANGE = "exchange"
    """Items change partitions, which costs a shuffle."""
    DRIVER = "driver"
    """The driver distributes them: blocks to idle slots, items to the partitions of their keys."""
    DELAYED = "delayed"
    """Items arrive in the next window."""


class GroupKind(StrEnum):
    """The kind of a frame around boxes."""

    MODULE = "module"
    DRIVER = "driver"
    """A stage that runs in the driver."""
    WORKERS = "workers"
    """A stage that runs in the executors."""


@dataclass(frozen=True, slots=True)
class Port:
    """A port of a box; `required` and not `connected` is a fault that the picture may show."""

    name: str
    side: Side
    payload: str = ""
    connected: bool = True
    required: bool = False


@dataclass(frozen=True, slots=True)
class Lane:
    """One drawn partition of a box: its number and its keys."""

    index: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Box:
    """One operator, module or rank of unifiers."""

    name: str
    """Unique in the picture; the ends of wires refer to it."""
    title: str
    subtitle: str = ""
    role: Role = Role.OPERATOR
    ports: tuple[Port, ...] = ()
    count: int = 1
    """The number of partitions, drawn or not."""
    lanes: tuple[Lane, ...] = ()
    """The partitions, if they are few enough to be drawn one by one."""
    notes: tuple[str, ...] = ()
    group: str | None = None

    @property
    def times(self) -> str:
        """The number of partitions, to follow a title; empty for one."""
        return f" \N{MULTIPLICATION SIGN}{self.count}" if self.count > 1 else ""

    @property
    def owned(self) -> tuple[str, ...]:
        """What each drawn partition owns: `0: keys 0, 2`. The lanes of unifiers own nothing."""
        lanes = () if self.role is Role.UNIFIER else self.lanes
        return tuple(f"{lane.index}: {lane.text}" for lane in lanes if lane.text)

    def side(self, side: Side) -> tuple[Port, ...]:
        """The ports on one side, in the order of declaration."""
        return tuple(port for port in self.ports if port.side is side)


Line = tuple[int | None, int | None]
"""The lanes at both ends; None means the whole box."""


@dataclass(frozen=True, slots=True)
class End:
    """The near end of a wire."""

    box: str
    port: str = ""


@dataclass(frozen=True, slots=True)
class Head:
    """A far end of a wire, and how items reach it."""

    box: str
    port: str = ""
    kind: WireKind = WireKind.PLAIN
    notes: tuple[str, ...] = ()
    lines: tuple[Line, ...] = ()
    """The lines between drawn partitions; empty: one line for all."""
    why: str = ""
    """The full reason behind the notes, as a tooltip."""


@dataclass(frozen=True, slots=True)
class Wire:
    """A stream: one tail and at least one head if it is valid; else none of either, or several tails."""

    stream: str
    tails: tuple[End, ...] = ()
    heads: tuple[Head, ...] = ()
    payload: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """A frame around boxes."""

    name: str
    title: str
    kind: GroupKind
    notes: tuple[str, ...] = ()
    parent: str | None = None


@dataclass(frozen=True)
class Picture:
    """The content of a drawing, in drawing order."""

    view: View
    title: str
    summary: str
    boxes: tuple[Box, ...] = ()
    wires: tuple[Wire, ...] = ()
    groups: tuple[Group, ...] = ()

    @cached_property
    def by_name(self) -> Mapping[str, Box]:
        return {box.name: box for box in self.boxes}

    @cached_property
    def _parents(self) -> Mapping[str, str | None]:
        return {group.name: group.parent for group in self.groups}

    def members(self, group: str | None) -> tuple[Box, ...]:
        """The boxes directly in this frame; for None, those in no frame."""
        return tuple(box for box in self.boxes if box.group == group)

    def frames_around(self, group: str | None) -> Iterator[str]:
        """A frame and those around it, innermost first; nothing for None."""
        while group is not None:
            yield group
            group = self._parents[group]

    def edges(self) -> Iterator[tuple[Wire, End, Head]]:
        """Every pair of a near and a far end, wire by wire."""
        for wire in self.wires:
            for tail in wire.tails:
                for head in wire.heads:
                    yield wire, tail, head


def ranks(picture: Picture) -> Mapping[str, int]:
    """The length of the longest path to each box; without the boxes in and behind a cycle."""
    after: dict[str, list[str]] = {box.name: [] for box in picture.boxes}
    before = dict.fromkeys(after, 0)
    for _, tail, head in picture.edges():
        # Wires of the next window lead back, and would make cycles of all loops.
        if head.kind is not WireKind.DELAYED:
            after[tail.box].append(head.box)
            before[head.box] += 1
    rank = {name: 0 for name, count in before.items() if not count}
    ready = list(rank)
    for name in ready:
        for follower in after[name]:
            rank[follower] = max(rank.get(follower, 0), rank[name] + 1)
            before[follower] -= 1
            if not before[follower]:
                ready.append(follower)
    return {name: rank[name] for name in ready}


def to_json(picture: Picture) -> str:
    """The picture as JSON, schema `dagkit.picture/1`; equal pictures give equal text."""
    return json.dumps({"schema": PICTURE_SCHEMA, **asdict(picture)}, indent=2, ensure_ascii=False) + "\n"
