"""The formats of a picture, by their names on the command line, and its form in notebooks."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, get_args

from dagkit.api.dag import Dag
from dagkit.errors import DrawingFailed
from dagkit.graph import Graph, graph_of
from dagkit.plan import Plan
from dagkit.render.content import GROUPS, INK, MANY, ROLES, WIRES, plain
from dagkit.render.dot import dot
from dagkit.render.engines import draw_dot
from dagkit.render.folding import folded
from dagkit.render.logical import logical
from dagkit.render.physical import physical
from dagkit.render.picture import Box, End, Group, Head, Picture, Role, Wire, WireKind, to_json
from dagkit.render.svg import svg
from dagkit.render.text import text

_ARROWS = {WireKind.PARALLEL: "==>", WireKind.DELAYED: "-.->"}
_SAFE = frozenset(" -_+*/,.=()")


def mermaid(picture: Picture) -> str:
    """The picture as a Mermaid flowchart; box i is node `ni`."""
    return "\n".join(_Writer(picture).lines()) + "\n"


class _Writer:
    def __init__(self, picture: Picture) -> None:
        self.picture = picture
        self.ids = {box.name: f"n{index}" for index, box in enumerate(picture.boxes)}
        self.colors: list[str] = []
        """The colour of each line, in Mermaid's order."""

    def lines(self) -> Iterator[str]:
        if self.picture.title:
            yield f"%% {plain(self.picture.title)}: {self.picture.view}, {self.picture.summary}"
        yield "flowchart LR"
        yield from self._within(None, "  ")
        for index, wire in enumerate(self.picture.wires):
            yield from self._wire(f"s{index}", wire)
        yield from self._styles()

    def _within(self, parent: str | None, indent: str) -> Iterator[str]:
        for index, group in enumerate(self.picture.groups):
            if group.parent == parent:
                yield f'{indent}subgraph g{index}["{_quoted(_framed(group))}"]'
                yield from self._within(group.name, indent + "  ")
                yield f"{indent}end"
        for box in self.picture.members(parent):
            yield f'{indent}{self.ids[box.name]}["{_boxed(box)}"]:::{box.role}'

    def _wire(self, name: str, wire: Wire) -> Iterator[str]:
        if len(wire.tails) == 1 == len(wire.heads):
            (tail,), (head,) = wire.tails, wire.heads
            label = _labelled(wire, tail, head)
            arrow = _ARROWS.get(head.kind, "-->")
            yield self._line(self.ids[tail.box], arrow, self.ids[head.box], head.kind, label)
            return
        yield f'  {name}(["{_quoted(_streamed(wire, wire.heads))}"]):::stream'
        for tail in wire.tails:
            yield self._line(self.ids[tail.box], "---", name, WireKind.PLAIN, _quoted(tail.port))
        for head in wire.heads:
            arrow = _ARROWS.get(head.kind, "-->")
            yield self._line(name, arrow, self.ids[head.box], head.kind, _quoted(head.port))

    def _line(self, tail: str, arrow: str, head: str, kind: WireKind, label: str) -> str:
        self.colors.append(WIRES[kind].color)
        return f'  {tail} {arrow}|"{label}"| {head}' if label else f"  {tail} {arrow} {head}"

    def _styles(self) -> Iterator[str]:
        for role in Role:
            if any(box.role is role for box in self.picture.boxes):
                tint = ROLES[role]
                yield f"  classDef {role} fill:{tint.fill},stroke:{tint.line},color:{INK}"
        if any(not len(wire.tails) == 1 == len(wire.heads) for wire in self.picture.wires):
            yield "  classDef stream fill:none,stroke:none"
        for index, group in enumerate(self.picture.groups):
            tint = GROUPS[group.kind]
            yield f"  style g{index} fill:{tint.fill},stroke:{tint.line},color:{INK}"
        for color in dict.fromkeys(self.colors):
            numbers = ",".join(str(index) for index, other in enumerate(self.colors) if other == color)
            yield f"  linkStyle {numbers} stroke:{color}"


def _framed(group: Group) -> str:
    return f"{group.title} ({', '.join(group.notes)})" if group.notes else group.title


def _boxed(box: Box) -> str:
    lines = [line for line in (box.subtitle, *box.notes) if line and line != box.title]
    return "<br/>".join([f"<b>{_quoted(box.title + box.times)}</b>", *map(_quoted, (*lines, *box.owned))])


def _labelled(wire: Wire, tail: End, head: Head) -> str:
    ports = f"{tail.port} → {head.port}" if tail.port and head.port else ""
    named = _streamed(wire, (head,)) if tail.port else ""
    return "<br/>".join(_quoted(line) for line in (named, ports) if line)


def _streamed(wire: Wire, heads: Sequence[Head]) -> str:
    known = dict.fromkeys([wire.payload, *wire.notes, *(note for head in heads for note in head.notes)])
    more = ", ".join(part for part in known if part)
    return f"{wire.stream} ({more})" if more else wire.stream


def _quoted(text: str) -> str:
    """The text, with every character that may be special in Mermaid or HTML as a numeric entity."""
    return "".join(c if c.isalnum() or c in _SAFE else f"#{ord(c)};" for c in plain(text))


Format = Literal["dot", "svg", "png", "pdf", "mermaid", "text", "json"]
FORMATS: tuple[Format, ...] = get_args(Format)
BINARY: frozenset[Format] = frozenset({"png", "pdf"})
"""Formats that must not be written to a terminal."""

SHARP = 160
"""Dots per inch of a PNG with few boxes; one with many boxes is large enough at the default."""

_WRITERS: Mapping[str, Callable[[Picture], str]] = {
    "dot": dot,
    "svg": svg,
    "mermaid": mermaid,
    "text": text,
    "json": to_json,
}


def render(picture: Picture, form: Format) -> bytes:
    """The picture in a format, text as UTF-8; too large ones are folded, except as text and JSON. Raise
    `DrawingFailed` if no installed engine can draw it.
    """
    if form not in ("text", "json"):
        picture = folded(picture)
    if form in _WRITERS:
        return _WRITERS[form](picture).encode()
    sharp = form == "png" and len(picture.boxes) <= MANY
    return draw_dot(dot(picture, dots_per_inch=SHARP if sharp else None), form)


def mimebundle(drawn: Dag | Graph | Plan) -> Mapping[str, str]:
    """The result of `_repr_mimebundle_`: the logical picture of a Dag, even incomplete; the physical one of a plan."""
    graph = graph_of(drawn, "")[0] if isinstance(drawn, Dag) else drawn
    picture = physical(graph) if isinstance(graph, Plan) else logical(graph)
    try:
        return {"image/svg+xml": svg(picture), "text/plain": text(picture)}
    except DrawingFailed:
        return {"text/plain": text(picture)}
