"""Computes a layout: Graphviz places boxes of sizes computed here, and routes the wires.

Boxes are records of equal rows, which every build of Graphviz can place, also those without HTML-like labels. The
content of the rows is drawn here, so that the picture is the same with every engine.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dagkit.render.content import Runs, Wording, Words, width
from dagkit.render.direction import Direction, fitting_direction, wrapped
from dagkit.render.dot import Attributes, port_cell, source
from dagkit.render.engines import draw_dot
from dagkit.render.palette import FONT
from dagkit.render.picture import Box, Group, Picture, Side
from dagkit.render.wiring import Anchor, Hub, Link, turns, wiring

ROW = 17.0
"""The height of a row in a box."""
SIDE = 9.0
"""The space between a box's border and its text."""
LINE = 12.5
"""The height of a line in a label."""

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Rectangle:
    """An area of the page; y grows downwards."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def middle(self) -> Point:
        return (self.left + self.right) / 2, (self.top + self.bottom) / 2


@dataclass(frozen=True, slots=True)
class Route:
    """The path of a line: a Bezier curve, and the tip of the arrow at its end."""

    points: tuple[Point, ...]
    tip: Point | None
    label: Point | None


@dataclass(frozen=True, slots=True)
class Layout:
    """The places of all boxes, hubs, frames and lines of a picture."""

    direction: Direction
    width: float
    height: float
    boxes: Mapping[str, tuple[Rectangle, ...]]
    """The rows of each box from top to bottom; if the picture reads down, its input cells, middle and output cells."""
    hubs: Mapping[str, Rectangle]
    frames: Mapping[str, Rectangle]
    routes: tuple[Route, ...]


def layout(picture: Picture, direction: Direction | None = None) -> Layout:
    """Lay out a picture with any available Graphviz."""
    direction = direction or fitting_direction(picture)
    places = _placed(picture, direction, ())
    if upside_down := _upside_down(picture, places):
        places = _placed(picture, direction, upside_down)
    return _turned(picture, places)


def _placed(picture: Picture, direction: Direction, turned_over: Collection[str | None]) -> Layout:
    written = source(picture, Records(picture, direction), direction, turned_over=turned_over)
    return _read(picture, json.loads(draw_dot(written, "json")), direction)


def _upside_down(picture: Picture, places: Layout) -> Collection[str | None]:
    """The frames of a wrapped picture in which Graphviz did not put each row below the one before it."""
    rows = wrapped(picture) if places.direction == "LR" else {}
    found = set[str | None]()
    for frame in {box.group for box in picture.boxes if rows}:
        tops: dict[int, float] = {}
        for box in picture.members(frame):
            top = enclosing(places.boxes[box.name]).top
            tops[rows[box.name]] = min(tops.get(rows[box.name], top), top)
        if sorted(tops) != sorted(tops, key=lambda row: tops[row]):
            found.add(frame)
    return found


def rows_above_ports(words: Words) -> int:
    """The number of rows above a box's first port."""
    return len(words.head)


def rows_down(words: Words) -> int:
    """The number of rows of a box whose ports are above and below."""
    return len(words.head) + bool(words.inputs) + bool(words.outputs)


class Records:
    """Boxes as records of fixed size, labels as empty boxes."""

    def __init__(self, picture: Picture, direction: Direction) -> None:
        self.across = direction == "LR"
        self.wording = Wording(picture)
        self.wraps = self.across and bool(wrapped(picture))

    def graph(self) -> Attributes:
        return {"nodesep": "0.32", "ranksep": "0.35", "fontname": FONT, "fontsize": "11"}

    def box(self, box: Box) -> Attributes:
        words = self.wording.box(box)
        if self.across:
            wide, high = self._size_across(words)
            rows = int(high / ROW)
            label = "|".join(f"<r{row}>" for row in range(rows))
        else:
            wide, high = self._size_down(words)
            cells = [self._cells(box, ports) for ports in (words.inputs, words.outputs)]
            label = f"{{{{{cells[0]}}}|<m>|{{{cells[1]}}}}}"
        # Without the leading space, the graphviz package would treat `<r0>...>` as an HTML-like label.
        return {"shape": "record", "label": f" {label}", "fontsize": "3", "margin": "0", **_size(wide, high)}

    def _size_across(self, words: Words) -> Point:
        sides = [(width(a[1]) if a else 0.0) + (width(b[1]) if b else 0.0) + 16 for a, b in words.rows]
        lines = [width(line) for line in words.head] + [width(runs) for _, runs in words.lanes]
        count = rows_above_ports(words) + len(sides) + len(words.lanes)
        return max([*sides, *lines]) + 2 * SIDE, count * ROW

    def _size_down(self, words: Words) -> Point:
        heads = max(width(line) for line in words.head)
        sides = [len(p) * (max((width(runs) for _, runs in p), default=0) + 12) for p in (words.inputs, words.outputs)]
        return max(heads, *sides) + 2 * SIDE, rows_down(words) * (ROW - 2) + 4

    def _cells(self, box: Box, ports: Any) -> str:
        return "|".join(f"<{port_cell(box, port.side, port.name)}>" for port, _ in ports)

    def hub(self, hub: Hub) -> Attributes:
        lines = self.wording.label(hub.label)
        return {"shape": "box", "label": "", **_size(*_size_of(lines))}

    def frame(self, group: Group) -> Attributes:
        says = self.wording.frame(group)
        low = {} if self.across else {"labelloc": "b"}
        # Space for the frame's text, in characters whose width every Graphviz knows.
        return {
            "label": "n" * round((width(says) + 16) / 5.5),
            "labeljust": "l",
            "margin": "24" if self.wraps else "14",
            "fontsize": "10",
            **low,
        }

    def link(self, link: Link, index: int) -> Attributes:
        attributes = {
            "id": f"e{index}",
        }
        if link.label is not None and (lines := self.wording.label(link.label)):
            attributes["label"] = "\\n".join("n" * round(width(line) / 5.5) for line in lines)
        return attributes

    def row(self, box: Box, side: Side, anchor: Anchor) -> str | None:
        if not self.across:
            return port_cell(box, side, anchor.port)
        words = self.wording.box(box)
        ports = words.inputs if side is Side.IN else words.outputs
        before = rows_above_ports(words)
        if anchor.lane is not None:
            below = before + max(len(words.inputs), len(words.outputs))
            return f"r{below + [lane.index for lane, _ in words.lanes].index(anchor.lane)}"
        for index, (port, _) in enumerate(ports):
            if port.name == anchor.port:
                return f"r{before + index}"
        return None


def _size_of(lines: Sequence[Runs]) -> Point:
    """The size of a label; of one without text, that of a dot."""
    return (max(map(width, lines)) + 6, len(lines) * LINE + 2) if lines else (1.0, 1.0)


def _size(wide: float, high: float) -> dict[str, str]:
    return {"width": f"{wide / 72:.4f}", "height": f"{high / 72:.4f}", "fixedsize": "true"}


# -- reading what Graphviz placed --------------------------------------------------------------------------------------


def _read(picture: Picture, placed: Mapping[str, Any], direction: Direction) -> Layout:
    left, bottom, right, top = (float(part) for part in placed["bb"].split(","))

    def point(text: str) -> Point:
        x, y = text.split(",")[-2:]
        return round(float(x) - left, 2), round(top - float(y), 2)

    def rectangle(text: str) -> Rectangle:
        x0, y0, x1, y1 = (float(part) for part in text.split(","))
        return Rectangle(round(x0 - left, 2), round(top - y1, 2), round(x1 - left, 2), round(top - y0, 2))

    objects = {item["name"]: item for item in placed.get("objects", ())}
    edges = {int(item["id"][1:]): item for item in placed.get("edges", ())}
    wires = wiring(picture)

    def route(item: Mapping[str, Any]) -> Route:
        parts = item["pos"].split(" ")
        tips = [point(part) for part in parts if part[0] in "es"]
        points = tuple(point(part) for part in parts if part[0] not in "es")
        if parts[0].startswith("s,"):
            points = points[::-1]
        return Route(points, tips[0] if tips else None, point(item["lp"]) if item.get("lp") else None)

    def whole(item: Mapping[str, Any]) -> Rectangle:
        (x, y), wide, high = point(item["pos"]), float(item["width"]) * 36, float(item["height"]) * 36
        return Rectangle(x - wide, y - high, x + wide, y + high)

    return Layout(
        direction=direction,
        width=right - left,
        height=top - bottom,
        boxes={
            box.name: tuple(rectangle(text) for text in objects[f"n{index}"]["rects"].split(" "))
            for index, box in enumerate(picture.boxes)
        },
        hubs={hub.name: whole(objects[hub.name]) for hub in wires.hubs},
        frames={
            group.name: rectangle(objects[f"cluster_{index}"]["bb"])
            for index, group in enumerate(picture.groups)
            if f"cluster_{index}" in objects and "bb" in objects[f"cluster_{index}"]
        },
        routes=tuple(route(edges[index]) for index in range(len(wires.links))),
    )


TURN = 8.0
"""Half of how far a line from one row to the next reaches beyond its ends."""


def _turned(picture: Picture, places: Layout) -> Layout:
    """The layout with the lines between two rows of a wrapped picture led through the gap above the lower row."""
    rows, wires = wrapped(picture) if places.direction == "LR" else {}, wiring(picture)
    gaps = _gaps(picture, places, rows)
    routes = list(places.routes)
    for index in turns(wires, rows):
        link, points = wires.links[index], routes[index].points
        box, gap = places.boxes[link.head.box], gaps.get(rows[link.head.box])
        if gap is not None:
            to = min((row.middle for row in box), key=lambda middle: abs(middle[1] - points[-1][1]))[1]
            routes[index] = replace(routes[index], **_turn(points[0], (box[0].left, to), gap))
    return replace(places, routes=tuple(routes))


def _gaps(picture: Picture, places: Layout, rows: Mapping[str, int]) -> Mapping[int, float]:
    """The height of the gap above each row that has one: below all boxes of the row before, and their frames."""
    tops: dict[int, float] = {}
    bottoms: dict[int, float] = {}
    for name, row in rows.items():
        group = picture.by_name[name].group
        frame = places.frames.get(group) if group is not None else None
        alone = {rows[box.name] for box in picture.members(group)} == {row}
        edge = frame if frame is not None and alone else enclosing(places.boxes[name])
        tops[row] = min(tops.get(row, edge.top), edge.top)
        bottoms[row] = max(bottoms.get(row, edge.bottom), edge.bottom)
    return {row: (bottoms[row - 1] + top) / 2 for row, top in tops.items() if row and bottoms[row - 1] < top}


def _turn(start: Point, tip: Point, gap: float) -> dict[str, Any]:
    """A line that leaves to the right, returns to the left at the height of the gap, and enters from the left."""
    (x0, y0), (x1, y1) = start, tip
    out, back, end = (x0 + TURN, gap), (x1 - TURN, gap), (x1 - 7, y1)
    down = (x0 + TURN, y0), (x0 + 2 * TURN, y0), (x0 + 2 * TURN, gap)
    into = (x1 - 2 * TURN, gap), (x1 - 2 * TURN, y1), end
    return {"points": (start, start, down[0], down[0], *down[1:], out, out, back, back, *into), "tip": tip}


def enclosing(rectangles: Sequence[Rectangle]) -> Rectangle:
    """The smallest rectangle around all of them."""
    return Rectangle(
        min(r.left for r in rectangles),
        min(r.top for r in rectangles),
        max(r.right for r in rectangles),
        max(r.bottom for r in rectangles),
    )
