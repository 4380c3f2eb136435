"""Writes a picture as DOT. Box i is node `ni`, so that names may contain any character.

Boxes are records, which every build of Graphviz can place and draw; only some know HTML-like labels. `dot` writes the
text into them. `bare` writes boxes of a size that is computed here instead, for `dagkit.render.layout`, which takes
only places from Graphviz: so a drawing is the same whichever engine placed it.
"""

from collections.abc import Collection, Mapping, Sequence
from html import escape
from typing import Any

from dagkit.render.content import FONT, GROUND, GROUPS, INK, MUTED, ROLES, WIRES, Runs, Wording, Words, heading, plain
from dagkit.render.content import width as width_of
from dagkit.render.picture import Box, Group, Picture, Side
from dagkit.render.wiring import Anchor, Hub, Link, Wiring, wiring

ROW = 17.0
"""The height of a row in a box."""
SIDE = 9.0
"""The space between a box's border and its text."""
LINE = 12.5
"""The height of a line in a label."""
CROWD = 250
"""Above this number of boxes, Graphviz gets fewer iterations."""

_LETTER = 5.5
"""The width of an `n` in points, which every Graphviz knows: labels of them reserve the place of a text."""

Attributes = Mapping[str, str]


def dot(picture: Picture, *, dots_per_inch: int | None = None) -> str:
    """The picture in DOT, for Graphviz and other tools."""
    sharp = {"dpi": str(dots_per_inch)} if dots_per_inch else {}
    title = {"label": escaped("".join(run.text for run in heading(picture))), "labelloc": "t", "labeljust": "l"}
    return _Writer(picture, wiring(picture), bare=False).written({"bgcolor": GROUND, "pad": "0.25", **sharp, **title})


def bare(picture: Picture, wires: Wiring, turned_over: Collection[str | None]) -> str:
    """The picture in DOT without text; `turned_over` has the frames whose rows this Graphviz puts upside down."""
    return _Writer(picture, wires, bare=True, turned_over=turned_over).written({})


class _Writer:
    def __init__(
        self, picture: Picture, wires: Wiring, *, bare: bool, turned_over: Collection[str | None] = ()
    ) -> None:
        self.picture = picture
        self.wires = wires
        self.bare = bare
        self.turned_over = turned_over
        self.wording = Wording(picture)
        self.ids = {box.name: f"n{index}" for index, box in enumerate(picture.boxes)}

    def written(self, attributes: Attributes) -> str:
        import graphviz  # noqa: PLC0415 - only writing DOT needs graphviz

        crowded = {"nslimit": "0.5", "nslimit1": "0.5", "mclimit": "0.1", "splines": "polyline"}
        graph = graphviz.Digraph(
            name="picture",
            graph_attr={
                "rankdir": "LR",
                "fontname": FONT,
                "fontsize": "11",
                "fontcolor": INK,
                "nodesep": "0.32",
                "ranksep": "0.35",
                **(crowded if len(self.picture.boxes) > CROWD else {}),
                **attributes,
            },
            node_attr={"fontname": FONT, "fontcolor": INK, "shape": "record"},
            edge_attr={"fontname": FONT, "fontsize": "10", "fontcolor": MUTED, "arrowsize": "0.7"},
        )
        self._fill_frame(graph, None)
        for index, link in enumerate(self.wires.links):
            graph.edge(*self._ends(link), **self._link(link, index))
        return str(graph.source)

    def _fill_frame(self, within: Any, parent: str | None) -> None:
        """The frames inside a frame, then its boxes and hubs."""
        for index, group in enumerate(self.picture.groups):
            if group.parent == parent:
                with within.subgraph(name=f"cluster_{index}") as inside:
                    inside.attr(**self._frame(group))
                    self._fill_frame(inside, group.name)
        for box in self._in_rows(parent):
            within.node(self.ids[box.name], **self._box(box))
        for hub in self.wires.hubs:
            if hub.group == parent:
                within.node(hub.name, **self._hub(hub))

    def _in_rows(self, frame: str | None) -> Sequence[Box]:
        """The boxes of a frame, the first row first, which most builds of Graphviz put on top."""
        rows = self.wires.rows
        members = self.picture.members(frame)
        return sorted(members, key=lambda box: rows.get(box.name, 0), reverse=frame in self.turned_over)

    # -- parts ---------------------------------------------------------------------------------------------------------

    def _box(self, box: Box) -> Attributes:
        words = self.wording.box(box)
        if self.bare:
            label = "|".join(f"<r{row}>" for row in range(number_of_rows(words)))
            # Without the leading space, the graphviz package would treat `<r0>...>` as an HTML-like label.
            return {"label": f" {label}", "fontsize": "3", "margin": "0", **_size(*size_across(words))}
        tint = ROLES[box.role]
        return {
            "shape": "Mrecord",
            "label": "|".join(_fields(words)),
            "fontsize": "10",
            "style": "filled",
            "fillcolor": tint.fill,
            "color": tint.line,
            "tooltip": escaped(spoken(box)),
            "class": f"box {box.role}",
        }

    def _hub(self, hub: Hub) -> Attributes:
        lines = self.wording.label(hub.label)
        if self.bare or not lines:
            return {"shape": "box", "label": "", **_size(*_size_of(lines)), **({} if self.bare else {"style": "invis"})}
        label = {"label": _text(lines), "fontsize": "10", "margin": "0.02"}
        return {"shape": "plain", "tooltip": escaped(hub.label.stream), "class": "stream", **label}

    def _frame(self, group: Group) -> Attributes:
        words = self.wording.frame(group)
        margin = "24" if self.wires.rows else "14"
        if self.bare:
            filler = "n" * round((width_of(words) + 16) / _LETTER)
            return {"label": filler, "labeljust": "l", "margin": margin, "fontsize": "10"}
        tint = GROUPS[group.kind]
        return {
            "label": _text([words]),
            "style": "rounded,filled",
            "fillcolor": tint.fill,
            "color": tint.line,
            "labeljust": "l",
            "margin": margin,
            "tooltip": escaped(group.title),
            "class": f"frame {group.kind}",
        }

    def _link(self, link: Link, index: int) -> Attributes:
        attributes = {
            "id": f"e{index}",
            "dir": "none" if not link.arrow else "back" if link.back else "forward",
            # A line to the next row must not place that row to the right of this one.
            **({"constraint": "false"} if index in self.wires.turns else {}),
        }
        lines = self.wording.label(link.label) if link.label is not None else ()
        if self.bare:
            filler = {"label": "\\n".join("n" * round(width_of(line) / _LETTER) for line in lines)} if lines else {}
            return {**attributes, **filler}
        stroke = WIRES[link.kind]
        return {
            **attributes,
            "color": f"{stroke.color}:{GROUND}:{stroke.color}" if stroke.double else stroke.color,
            "penwidth": f"{stroke.width:g}",
            "style": stroke.style,
            "tooltip": escaped(link.why or link.stream),
            **({"label": _text(lines)} if lines else {}),
        }

    # -- ends of lines -------------------------------------------------------------------------------------------------

    def _ends(self, link: Link) -> tuple[str, str]:
        if link.back:
            # Drawn from the far end to the near one, so that a loop does not reverse the order of the boxes.
            return self._below(link.head, "e"), self._below(link.tail, "w")
        return self._at(link.tail, Side.OUT, "e"), self._at(link.head, Side.IN, "w")

    def _at(self, anchor: Anchor, side: Side, compass: str) -> str:
        if anchor.hub:
            return f"{anchor.hub}:{compass}"
        words = self.wording.box(self.picture.by_name[anchor.box])
        row = row_of(words, side, anchor)
        if row is None:
            return f"{self.ids[anchor.box]}:{compass}"
        if not self.bare and anchor.lane is None:
            return f"{self.ids[anchor.box]}:{side[0]}{row}:{compass}"
        return f"{self.ids[anchor.box]}:r{row}:{compass}"

    def _below(self, anchor: Anchor, compass: str) -> str:
        return f"{anchor.hub}:{compass}" if anchor.hub else f"{self.ids[anchor.box]}:s"


# -- rows of a box -----------------------------------------------------------------------------------------------------


def number_of_rows(words: Words) -> int:
    """The number of rows of a box: its title and notes, its ports, inputs beside outputs, and its lanes."""
    return len(words.head) + max(len(words.inputs), len(words.outputs)) + len(words.lanes)


def row_of(words: Words, side: Side, anchor: Anchor) -> int | None:
    """The row of a port or of a lane; None for the whole box."""
    if anchor.lane is not None:
        lanes = [lane.index for lane, _ in words.lanes]
        return number_of_rows(words) - len(lanes) + lanes.index(anchor.lane)
    names = [port.name for port, _ in (words.inputs if side is Side.IN else words.outputs)]
    return len(words.head) + names.index(anchor.port) if anchor.port in names else None


def size_across(words: Words) -> tuple[float, float]:
    """Width and height of a box that has place for its text."""
    sides = [(width_of(a[1]) if a else 0.0) + (width_of(b[1]) if b else 0.0) + 16 for a, b in words.rows]
    lines = [width_of(line) for line in words.head] + [width_of(runs) for _, runs in words.lanes]
    return max([*sides, *lines]) + 2 * SIDE, number_of_rows(words) * ROW


def _fields(words: Words) -> Sequence[str]:
    """The fields of a record, from top to bottom: what it is, its ports side by side, its lanes."""
    # No field is empty: Graphviz crashes on the justification (\l) of an empty text.
    first = len(words.head)
    ports = []
    for row, (inlet, outlet) in enumerate(words.rows, start=first):
        near = f"<i{row}> {_spelled(inlet[1])}\\l" if inlet else ""
        far = f"<o{row}> {_spelled(outlet[1])}\\r" if outlet else ""
        ports.append(f"{{{near}|{far}}}" if near and far else near or far)
    lanes = [f"<r{row}> {_spelled(runs)}\\l" for row, (_, runs) in enumerate(words.lanes, start=first + len(ports))]
    return ["\\n".join(map(_spelled, words.head)), *ports, *lanes]


def _size_of(lines: Sequence[Runs]) -> tuple[float, float]:
    """The size of a label; of one without text, that of a dot."""
    return (max(map(width_of, lines)) + 6, len(lines) * LINE + 2) if lines else (1.0, 1.0)


def _size(wide: float, high: float) -> dict[str, str]:
    return {"width": f"{wide / 72:.4f}", "height": f"{high / 72:.4f}", "fixedsize": "true"}


# -- text --------------------------------------------------------------------------------------------------------------


def spoken(box: Box) -> str:
    """The whole name of a box, with the class of its operator."""
    return f"{box.name} ({box.subtitle})" if box.subtitle else box.name


def escaped(text: str) -> str:
    """The text, escaped for labels and tooltips: in both, a bare `\\N` would mean the node's own name."""
    return escape(plain(text)).replace("\\", "\\\\")


def _text(lines: Sequence[Runs]) -> str:
    return "\\n".join(escaped("".join(run.text for run in line)) for line in lines)


def _spelled(runs: Runs) -> str:
    """The text of a line, for a field of a record, where more characters have a meaning."""
    return "".join(f"\\{c}" if c in "{}|<> " else c for c in escaped("".join(run.text for run in runs)))
