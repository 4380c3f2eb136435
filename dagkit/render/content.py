"""The text in boxes and on wires, the same in every drawn format, its size, and the colours.

The colours come with a ground of their own, so that they suit dark and light notebooks.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from unicodedata import category, east_asian_width

from dagkit.render.picture import Box, Group, GroupKind, Lane, Picture, Port, Role, Side, WireKind
from dagkit.render.wiring import Label

FONT = "Helvetica,Arial,sans-serif"
GROUND = "#ffffff"
INK = "#1f2a37"
MUTED = "#5d6b7a"
FAINT = "#a3adb8"
AMISS = "#c2413b"


@dataclass(frozen=True, slots=True)
class Tint:
    """A fill colour and a line colour."""

    fill: str
    line: str


ROLES: Mapping[Role, Tint] = {
    Role.INPUT: Tint("#e3f4ea", "#4f9d76"),
    Role.OPERATOR: Tint("#e8f0fb", "#5b86bf"),
    Role.DELAY: Tint("#fdf0dc", "#c7923e"),
    Role.MODULE: Tint("#efe8f8", "#8a6fb8"),
    Role.UNIFIER: Tint("#eef0f3", "#8592a1"),
}

GROUPS: Mapping[GroupKind, Tint] = {
    GroupKind.MODULE: Tint("#f8f5fc", "#b7a6d3"),
    GroupKind.DRIVER: Tint("#fbf8f1", "#cdbf9f"),
    GroupKind.WORKERS: Tint("#f5f7fa", "#b4c0ce"),
}


@dataclass(frozen=True, slots=True)
class Stroke:
    """The style of a wire, and its name in the legend."""

    color: str
    width: float
    style: str = "solid"
    double: bool = False
    legend: str = ""


WIRES: Mapping[WireKind, Stroke] = {
    WireKind.PLAIN: Stroke("#6b7a8c", 1.2),
    WireKind.PARALLEL: Stroke("#3f78b5", 1.3, double=True, legend="partition-parallel"),
    WireKind.FUSED: Stroke("#3f78b5", 1.2, legend="fused"),
    WireKind.EXCHANGE: Stroke("#c8693a", 1.5, legend="exchange"),
    WireKind.DRIVER: Stroke("#4f9d76", 1.3, legend="from the driver"),
    WireKind.DELAYED: Stroke("#c7923e", 1.4, style="dashed", legend="next window"),
}

MANY = 30
"""Above this number of boxes, each box shows less text."""


@dataclass(frozen=True, slots=True)
class Run:
    """A piece of text in one font."""

    text: str
    size: float = 10
    color: str = MUTED
    bold: bool = False
    italic: bool = False

    @property
    def width(self) -> float:
        """The width of the text in points, computed for a wide font, so that no viewer's font is clipped."""
        return sum(_width(character) for character in self.text) * self.size * (1.1 if self.bold else 1)


Runs = tuple[Run, ...]
"""The runs of one line."""


def width(runs: Iterable[Run]) -> float:
    """The width of a line."""
    return sum(run.width for run in runs)


@dataclass(frozen=True, slots=True)
class Words:
    """All text in a box."""

    head: tuple[Runs, ...]
    """Title, class and notes, line by line."""
    inputs: tuple[tuple[Port, Runs], ...]
    outputs: tuple[tuple[Port, Runs], ...]
    lanes: tuple[tuple[Lane, Runs], ...]

    @property
    def rows(self) -> Iterator[tuple[tuple[Port, Runs] | None, tuple[Port, Runs] | None]]:
        """Inputs and outputs side by side."""
        return zip_longest(self.inputs, self.outputs)


class Wording:
    """Makes the text of a picture's boxes, wires and frames; shorter if there are many boxes."""

    def __init__(self, picture: Picture) -> None:
        self.picture = picture
        self.many = len(picture.boxes) > MANY
        self.unnamed = {f"{tail.box}:{tail.port}" for wire in picture.wires for tail in wire.tails}
        """The names of streams that the author did not name, which only repeat the operator and its port."""

    def box(self, box: Box) -> Words:
        return Words(
            head=tuple(self._head(box)),
            inputs=tuple((port, self._port(port)) for port in self._shown(box, Side.IN)),
            outputs=tuple((port, self._port(port)) for port in self._shown(box, Side.OUT)),
            lanes=tuple((lane, _lane(lane)) for lane in box.lanes),
        )

    def _head(self, box: Box) -> Iterator[Runs]:
        unifier = box.role is Role.UNIFIER
        title = Run(short(box.title, 22 if self.many else 40), 11 if unifier else 12, INK, bold=not unifier)
        times = Run(box.times, title.size, ROLES[box.role].line, bold=True)
        yield (title, times) if box.times else (title,)
        # Drawn lanes show already what is parallel.
        for line in (box.subtitle, *(() if self.many or box.lanes else box.notes)):
            if line and line != box.title:
                yield (Run(short(line, 28 if self.many else 44), 9),)

    def _shown(self, box: Box, side: Side) -> Sequence[Port]:
        """The ports of a side; those with a stream first, so that lines from box to box are straight."""
        shown = (port for port in box.side(side) if port.connected or port.required or not self.many)
        return sorted(shown, key=lambda port: not port.connected)

    def _port(self, port: Port) -> Runs:
        color = MUTED if port.connected else AMISS if port.required else FAINT
        mark = "" if port.connected else "\N{WHITE CIRCLE} "
        return (Run(mark + short(port.name, 20 if self.many else 30), 10, color),)

    def label(self, label: Label) -> tuple[Runs, ...]:
        """The lines of a label: the stream's name if the author gave one, the payload, the notes."""
        lines: list[Runs] = []
        if label.stream not in self.unnamed:
            lines.append((Run(short(label.stream, 20 if self.many else 40), 10, INK),))
        if label.payload and not self.many:
            lines.append((Run(short(label.payload, 32), 9, italic=True),))
        if label.notes:
            lines.append((Run(short(", ".join(label.notes), 44), 9, WIRES[label.kind].color),))
        return tuple(lines)

    def frame(self, group: Group) -> Runs:
        """The frame's name and notes; among many boxes, a frame omits what its boxes show: a name, partitions."""
        dot = " \N{MIDDLE DOT} "
        shown = [box.title for box in self.picture.members(group.name)]
        notes = [note for note in group.notes if not (self.many and note.endswith((" slot", " slots")))]
        if self.many and group.title in shown:
            return (Run(dot.join(notes), 10),)
        return (
            Run(short(group.title, 26 if self.many else 48), 11, INK, bold=True),
            Run("   "),
            Run(dot.join(notes), 10),
        )


def heading(picture: Picture) -> Runs:
    """The line above the picture."""
    summary = Run(f"{picture.view} \N{MIDDLE DOT} {picture.summary}", 11)
    return (Run(short(picture.title, 60), 16, INK, bold=True), Run("   ", 11), summary) if picture.title else (summary,)


def _lane(lane: Lane) -> Runs:
    number = Run(str(lane.index), 10, INK)
    return (number, Run(f"   {lane.text}", 9)) if lane.text else (number,)


# -- characters --------------------------------------------------------------------------------------------------------


def plain(text: str) -> str:
    """The text without characters that XML does not allow; a line break becomes a visible sign."""
    text = text.replace("\r\n", "\n").replace("\n", "\N{DOWNWARDS ARROW WITH CORNER LEFTWARDS}").replace("\t", " ")
    return "".join(c if c.isprintable() or category(c) == "Cf" else "\N{REPLACEMENT CHARACTER}" for c in text)


def short(text: str, most: int) -> str:
    """The text, with its middle left out if it is too long."""
    text = plain(text)
    if len(text) <= most:
        return text
    ahead = (most - 1) * 2 // 3
    return f"{text[:ahead]}\N{HORIZONTAL ELLIPSIS}{text[ahead + 1 - most :]}"


# Widths in ems of DejaVu Sans and Verdana, the widest sans-serifs in common use; Helvetica takes an eighth less.
_WIDTHS: Sequence[tuple[str, float]] = (
    ("ijlI|'.,:;![]()/\\ ", 0.34),
    ('frtJ"-*{}', 0.40),
    ("scxyzkvLF_?", 0.58),
    ("mMW%@", 0.96),
    ("wGOQDHNUC+=<>~&#", 0.80),
)
_WIDTH_OF = {character: em for characters, em in _WIDTHS for character in characters}


def _width(character: str) -> float:
    if character in _WIDTH_OF:
        return _WIDTH_OF[character]
    if category(character) in ("Mn", "Me", "Cf"):
        return 0.0
    return 1.05 if east_asian_width(character) in "WF" else 0.66
