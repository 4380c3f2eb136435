"""Writes a picture as DOT. Box i is node `ni`, so that names may contain any character.

There are two dialects. `Tables` is the public one: HTML-like labels, which allow ports, lanes and two font sizes in one
box. `dagkit.render.layout` has the other one, which uses Graphviz only to place boxes.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from html import escape
from typing import Any, Protocol

from dagkit.render.content import Run, Runs, Wording, Words, heading, plain
from dagkit.render.direction import Direction, fitting_direction, wrapped
from dagkit.render.palette import FONT, GROUND, GROUPS, INK, MUTED, ROLES, WIRES
from dagkit.render.picture import Box, Group, Picture, Role, Side, WireKind
from dagkit.render.wiring import Anchor, Hub, Link, turns, wiring

_PAD = "&#160;"

CROWD = 250
"""Above this number of boxes, Graphviz gets fewer iterations."""

Attributes = Mapping[str, str]


class Dialect(Protocol):
    """Describes the parts of a picture in one form of DOT."""

    def graph(self) -> Attributes: ...
    def box(self, box: Box) -> Attributes: ...
    def hub(self, hub: Hub) -> Attributes: ...
    def frame(self, group: Group) -> Attributes: ...
    def link(self, link: Link, index: int) -> Attributes: ...
    def row(self, box: Box, side: Side, anchor: Anchor) -> str | None: ...


def dot(picture: Picture, direction: Direction | None = None, *, dots_per_inch: int | None = None) -> str:
    """The picture in DOT; the default direction fits its shape."""
    direction = direction or fitting_direction(picture)
    return source(picture, Tables(picture, direction, dots_per_inch), direction)


def source(
    picture: Picture, dialect: Dialect, direction: Direction, *, turned_over: Collection[str | None] = ()
) -> str:
    """The picture in DOT, in one dialect; `turned_over` has the frames whose rows this Graphviz puts upside down."""
    import graphviz  # noqa: PLC0415 - only writing DOT needs graphviz

    graph = graphviz.Digraph(
        name="picture",
        graph_attr={"rankdir": direction, **_patience(picture), **dialect.graph()},
        node_attr={"fontname": FONT, "fontcolor": INK},
        edge_attr={"fontname": FONT, "fontsize": "10", "fontcolor": MUTED, "arrowsize": "0.7"},
    )
    _Filling(picture, dialect, direction, turned_over).fill(graph)
    return str(graph.source)


class _Filling:
    """Adds boxes, hubs and lines to a Digraph."""

    def __init__(
        self, picture: Picture, dialect: Dialect, direction: Direction, turned_over: Collection[str | None]
    ) -> None:
        self.picture = picture
        self.dialect = dialect
        self.turned_over = turned_over
        self.wires = wiring(picture)
        self.ids = {box.name: f"n{index}" for index, box in enumerate(picture.boxes)}
        self.rows = wrapped(picture) if direction == "LR" else {}
        self.turns = turns(self.wires, self.rows)
        self.inward, self.outward, self.below = ("w", "e", "s") if direction == "LR" else ("n", "s", "e")

    def fill(self, graph: Any) -> None:
        self._frame(graph, None)
        for index, link in enumerate(self.wires.links):
            free = {"constraint": "false"} if index in self.turns else {}
            graph.edge(*self._ends(link), **{"dir": _arrows(link), **self.dialect.link(link, index), **free})

    def _frame(self, within: Any, parent: str | None) -> None:
        """The frames inside a frame, then its boxes and hubs."""
        for index, group in enumerate(self.picture.groups):
            if group.parent == parent:
                with within.subgraph(name=f"cluster_{index}") as inside:
                    inside.attr(**self.dialect.frame(group))
                    self._frame(inside, group.name)
        for box in self._in_rows(parent):
            within.node(self.ids[box.name], **self.dialect.box(box))
        for hub in self.wires.hubs:
            if hub.group == parent:
                within.node(hub.name, **self.dialect.hub(hub))

    def _in_rows(self, frame: str | None) -> Sequence[Box]:
        """The boxes of a frame, the first row first, which most builds of Graphviz put on top."""
        return sorted(
            self.picture.members(frame), key=lambda box: self.rows.get(box.name, 0), reverse=frame in self.turned_over
        )

    def _ends(self, link: Link) -> tuple[str, str]:
        if link.back:
            # Drawn from the far end to the near one, so that a loop does not reverse the order of the boxes.
            return self._below(link.head, self.outward), self._below(link.tail, self.inward)
        return self._at(link.tail, Side.OUT, self.outward), self._at(link.head, Side.IN, self.inward)

    def _at(self, anchor: Anchor, side: Side, compass: str) -> str:
        if anchor.hub:
            return f"{anchor.hub}:{compass}"
        row = self.dialect.row(self.picture.by_name[anchor.box], side, anchor)
        return f"{self.ids[anchor.box]}:{row}:{compass}" if row else f"{self.ids[anchor.box]}:{compass}"

    def _below(self, anchor: Anchor, compass: str) -> str:
        return f"{anchor.hub}:{compass}" if anchor.hub else f"{self.ids[anchor.box]}:{self.below}"


def _arrows(link: Link) -> str:
    if not link.arrow:
        return "none"
    return "back" if link.back else "forward"


def _patience(picture: Picture) -> Attributes:
    if len(picture.boxes) <= CROWD:
        return {}
    return {"nslimit": "0.5", "nslimit1": "0.5", "mclimit": "0.1", "splines": "polyline"}


def port_cell(box: Box, side: Side, name: str) -> str | None:
    """The cell of a port: `i` or `o`, then its number."""
    for index, port in enumerate(box.ports):
        if port.side is side and port.name == name:
            return f"{'i' if side is Side.IN else 'o'}{index}"
    return None


class Tables:
    """HTML-like labels."""

    def __init__(self, picture: Picture, direction: Direction, dots_per_inch: int | None = None) -> None:
        self.picture = picture
        self.across = direction == "LR"
        self.wording = Wording(picture)
        self.dots_per_inch = dots_per_inch

    def graph(self) -> Attributes:
        return {
            **({"dpi": str(self.dots_per_inch)} if self.dots_per_inch else {}),
            "bgcolor": GROUND,
            "fontname": FONT,
            "fontcolor": INK,
            "pad": "0.25",
            "nodesep": "0.3",
            "ranksep": "0.35",
            "label": f"<{self._heading()}>",
            "labelloc": "t",
            "labeljust": "l",
        }

    def box(self, box: Box) -> Attributes:
        tint = ROLES[box.role]
        words = self.wording.box(box)
        rows = self._across(box, words) if self.across else self._down(box, words)
        table = _table("".join(rows), border=1, more=f'STYLE="ROUNDED" BGCOLOR="{tint.fill}" COLOR="{tint.line}"')
        says = f"{box.name} ({box.subtitle})" if box.subtitle else box.name
        return {"shape": "plain", "label": f"<{table}>", "tooltip": escaped(says), "class": f"box {box.role}"}

    def hub(self, hub: Hub) -> Attributes:
        rows = self.wording.label(hub.label)
        return {
            "shape": "plain",
            "tooltip": escaped(hub.label.stream),
            "class": "stream",
            **({"label": f"<{_lines(rows)}>"} if rows else {"label": "", "width": "0.01", "height": "0.01"}),
        }

    def frame(self, group: Group) -> Attributes:
        tint = GROUPS[group.kind]
        return {
            "label": f"<{_runs(self.wording.frame(group))}>",
            "style": "rounded,filled",
            "fillcolor": tint.fill,
            "color": tint.line,
            "labeljust": "l",
            "labelloc": "t" if self.across else "b",
            "margin": "12",
            "tooltip": escaped(group.title),
            "class": f"frame {group.kind}",
        }

    def link(self, link: Link, index: int) -> Attributes:  # noqa: ARG002 - the other dialect uses the number
        stroke = WIRES[link.kind]
        attributes = {
            "color": f"{stroke.color}:{GROUND}:{stroke.color}" if stroke.double else stroke.color,
            "penwidth": f"{stroke.width:g}",
            "style": stroke.style,
            "tooltip": escaped(link.why or link.stream),
        }
        if link.label is not None and (lines := self.wording.label(link.label)):
            attributes["label"] = f"<{_lines(lines)}>"
        return attributes

    def row(self, box: Box, side: Side, anchor: Anchor) -> str | None:
        if anchor.lane is not None:
            return f"l{anchor.lane}" if self.across else None
        return port_cell(box, side, anchor.port)

    def _heading(self) -> str:
        lines = [heading(self.picture), tuple(self._legend())]
        return _table("".join(f'<TR><TD ALIGN="LEFT">{_runs(line)}</TD></TR>' for line in lines if line))

    def _legend(self) -> Iterator[Run]:
        for role in legend_roles(self.picture):
            yield Run("\N{BLACK SQUARE} ", 12, ROLES[role].line)
            yield Run(f"{role}     ")
        for kind in legend_kinds(self.picture):
            stroke = WIRES[kind]
            glyph = {"dashed": "- - - "}.get(stroke.style, "\u2550\u2550 " if stroke.double else "\u2500\u2500 ")
            yield Run(glyph, 11, stroke.color, bold=True)
            yield Run(f"{stroke.legend}     ")

    def _across(self, box: Box, words: Words) -> Iterator[str]:
        """The rows of a box that reads across: inputs left, outputs right, lanes below."""
        for index, line in enumerate(words.head):
            yield f'<TR><TD COLSPAN="2" CELLPADDING="{1 if index else 5}">{_PAD}{_runs(line)}{_PAD}</TD></TR>'
        yield '<TR><TD COLSPAN="2" HEIGHT="3" CELLPADDING="0"></TD></TR>'
        for inlet, outlet in words.rows:
            left = (
                f'<TD{_cell(box, inlet[0])} ALIGN="LEFT">{_PAD}{_runs(inlet[1])}{_PAD}</TD>' if inlet else "<TD></TD>"
            )
            right = (
                f'<TD{_cell(box, outlet[0])} ALIGN="RIGHT">{_PAD}{_runs(outlet[1])}{_PAD}</TD>'
                if outlet
                else "<TD></TD>"
            )
            yield f"<TR>{left}{right}</TR>"
        for lane, runs in words.lanes:
            cell = f'<TD COLSPAN="2" PORT="l{lane.index}" ALIGN="LEFT" BGCOLOR="{GROUND}">{_PAD}{_runs(runs)}</TD>'
            yield f"<HR/><TR>{cell}</TR>"

    def _down(self, box: Box, words: Words) -> Iterator[str]:
        """The rows of a box that reads down: inputs on top, outputs at the bottom."""
        yield from self._side(box, words.inputs)
        head = "".join(f"<TR><TD>{_runs(line)}</TD></TR>" for line in words.head)
        yield f'<TR><TD CELLPADDING="{0 if words.inputs and words.outputs else 4}">{_table(head, padding=2)}</TD></TR>'
        yield from self._side(box, words.outputs)

    def _side(self, box: Box, ports: Any) -> Iterator[str]:
        cells = "".join(f"<TD{_cell(box, port)}>{_runs(runs)}</TD>" for port, runs in ports)
        if cells:
            yield f'<TR><TD CELLPADDING="0">{_table(f"<TR>{cells}</TR>", padding=3)}</TD></TR>'


def legend_roles(picture: Picture) -> list[Role]:
    """The roles in the legend: all that occur; none if all boxes have the same role."""
    roles = [role for role in Role if any(box.role is role for box in picture.boxes)]
    return roles if len(roles) > 1 else []


def legend_kinds(picture: Picture) -> list[WireKind]:
    """The kinds of wires in the legend."""
    kinds = {head.kind for wire in picture.wires for head in wire.heads}
    return [kind for kind, stroke in WIRES.items() if kind in kinds and stroke.legend]


# -- HTML-like labels --------------------------------------------------------------------------------------------------


def _table(rows: str, *, border: int = 0, padding: int = 4, more: str = "") -> str:
    return f'<TABLE BORDER="{border}" CELLBORDER="0" CELLSPACING="0" CELLPADDING="{padding}" {more}>{rows}</TABLE>'


def _lines(lines: tuple[Runs, ...]) -> str:
    return _table("".join(f"<TR><TD>{_runs(line)}</TD></TR>" for line in lines), padding=1)


def _cell(box: Box, port: Any) -> str:
    return f' PORT="{port_cell(box, port.side, port.name)}"'


def _runs(runs: Runs) -> str:
    return "".join(_run(run) for run in runs if run.text)


def _run(run: Run) -> str:
    text = f'<FONT POINT-SIZE="{run.size:g}" COLOR="{run.color}">{escaped(run.text)}</FONT>'
    text = f"<B>{text}</B>" if run.bold else text
    return f"<I>{text}</I>" if run.italic else text


def escaped(text: str) -> str:
    """The text, escaped for labels and tooltips: in both, a bare `\\N` would mean the node's own name."""
    return escape(plain(text)).replace("\\", "\\\\")
