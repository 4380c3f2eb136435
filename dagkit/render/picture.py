"""The picture: what a drawing shows, before anybody decides how. Makers make it, writers write it.

A box is an operator, a module, or the unifiers behind one output; a wire is a stream, or the part of one that runs
between partitions and their unifiers. Ends that were never wired are simply absent, so every half-drawn Dag has a
picture.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cached_property
from typing import Literal

PICTURE_SCHEMA: Literal["dagkit.picture/1"] = "dagkit.picture/1"


class View(StrEnum):
    """Which of the two pictures of an application this is."""

    LOGICAL = "logical"
    PHYSICAL = "physical"


class Role(StrEnum):
    """What a box stands for."""

    INPUT = "input"
    OPERATOR = "operator"
    DELAY = "delay"
    MODULE = "module"
    UNIFIER = "unifier"


class Side(StrEnum):
    """Where a port sits on its box."""

    IN = "in"
    OUT = "out"


class WireKind(StrEnum):
    """How items come to the far end of a wire."""

    PLAIN = "plain"
    PARALLEL = "parallel"
    """The far end mirrors the partitions of the near one."""
    FUSED = "fused"
    """Both ends lie in one stage: an item is handed on by a call."""
    EXCHANGE = "exchange"
    """Items change partitions, which costs a shuffle."""
    DRIVER = "driver"
    """The driver hands them out: blocks to whoever is idle, items to the partitions they belong to."""
    DELAYED = "delayed"
    """Items come round in the next window."""


class GroupKind(StrEnum):
    """Why some boxes are drawn together."""

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
    """One partition of a box that is drawn with its partitions: its number, and what it owns."""

    index: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Box:
    """One operator, module or rank of unifiers."""

    name: str
    """Unique in the picture; ends refer to it."""
    title: str
    subtitle: str = ""
    role: Role = Role.OPERATOR
    ports: tuple[Port, ...] = ()
    count: int = 1
    """How many partitions there are, whether or not they are drawn."""
    lanes: tuple[Lane, ...] = ()
    """The partitions, where they are few enough to be drawn one by one."""
    notes: tuple[str, ...] = ()
    group: str | None = None

    def side(self, side: Side) -> tuple[Port, ...]:
        """The ports on one side, in the order of declaration."""
        return tuple(port for port in self.ports if port.side is side)


Line = tuple[int | None, int | None]
"""From which lane to which; None is the whole box."""


@dataclass(frozen=True, slots=True)
class End:
    """The near end of a wire."""

    box: str
    port: str = ""


@dataclass(frozen=True, slots=True)
class Head:
    """A far end of a wire, and how items come there."""

    box: str
    port: str = ""
    kind: WireKind = WireKind.PLAIN
    notes: tuple[str, ...] = ()
    lines: tuple[Line, ...] = ()
    """Which partition sends to which, where partitions are drawn; empty draws one line for all."""
    why: str = ""
    """The whole reason behind the notes, for whoever points at the wire."""


@dataclass(frozen=True, slots=True)
class Wire:
    """A stream. One tail and some heads where all is well; none of either, or several tails, where it is not."""

    stream: str
    tails: tuple[End, ...] = ()
    heads: tuple[Head, ...] = ()
    payload: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """Boxes drawn inside one frame."""

    name: str
    title: str
    kind: GroupKind
    notes: tuple[str, ...] = ()
    parent: str | None = None


@dataclass(frozen=True)
class Picture:
    """Everything a drawing shows, in the order in which it is shown."""

    view: View
    title: str
    summary: str
    boxes: tuple[Box, ...] = ()
    wires: tuple[Wire, ...] = ()
    groups: tuple[Group, ...] = ()

    @cached_property
    def by_name(self) -> Mapping[str, Box]:
        return {box.name: box for box in self.boxes}

    def members(self, group: str | None) -> tuple[Box, ...]:
        """The boxes that stand directly in this frame; in none, for None."""
        return tuple(box for box in self.boxes if box.group == group)

    def edges(self) -> Iterator[tuple[Wire, End, Head]]:
        """Every pair of a near and a far end, wire by wire."""
        for wire in self.wires:
            for tail in wire.tails:
                for head in wire.heads:
                    yield wire, tail, head


def to_json(picture: Picture) -> str:
    """The picture as JSON under `dagkit.picture/1`: fields in the order of declaration, equal for equal pictures."""
    return json.dumps({"schema": PICTURE_SCHEMA, **asdict(picture)}, indent=2, ensure_ascii=False) + "\n"


def counted(number: int, what: str) -> str:
    """`1 stream`, `2 streams`."""
    return f"{number} {what}{'' if number == 1 else 's'}"
