"""Computes a layout: Graphviz places boxes of sizes computed in `dagkit.render.dot`, and routes the wires."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dagkit.render.dot import bare
from dagkit.render.engines import draw_dot
from dagkit.render.picture import Picture
from dagkit.render.wiring import Wiring, wiring

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
    """The places of all boxes, hubs, frames and lines of a picture; the rows of a box divide it equally."""

    wires: Wiring
    width: float
    height: float
    boxes: Mapping[str, Rectangle]
    hubs: Mapping[str, Rectangle]
    frames: Mapping[str, Rectangle]
    routes: tuple[Route, ...]


def layout(picture: Picture, page: float | None = None) -> Layout:
    """Lay out a picture with any available Graphviz, for a `page` as `wiring` does."""
    wires = wiring(picture, page)
    places = _placed(picture, wires, ())
    # Most builds of Graphviz put the row that is written first on top, others at the bottom.
    if upside_down := _upside_down(picture, wires.rows, places):
        places = _placed(picture, wires, upside_down)
    if page is not None and len(_gaps(picture, places, wires.rows)) < max(wires.rows.values(), default=0):
        return layout(picture)  # a row stands beside another one, so no line leads between them
    return _turned(picture, places)


def _upside_down(picture: Picture, rows: Mapping[str, int], places: Layout) -> Collection[str | None]:
    """The frames of a wrapped picture in which Graphviz did not put each row below the one before it."""
    frames = set[str | None]()
    for frame in {box.group for box in picture.boxes if rows}:
        tops: dict[int, float] = {}
        for box in picture.members(frame):
            top = places.boxes[box.name].top
            tops[rows[box.name]] = min(tops.get(rows[box.name], top), top)
        if sorted(tops) != sorted(tops, key=lambda row: tops[row]):
            frames.add(frame)
    return frames


def _placed(picture: Picture, wires: Wiring, turned_over: Collection[str | None]) -> Layout:
    """Let Graphviz place the boxes, and route the wires."""
    placed = json.loads(draw_dot(bare(picture, wires, turned_over), "json"))
    left, bottom, right, top = (float(part) for part in placed["bb"].split(","))

    def point(text: str) -> Point:
        x, y = text.split(",")[-2:]
        return round(float(x) - left, 2), round(top - float(y), 2)

    def rectangle(text: str) -> Rectangle:
        x0, y0, x1, y1 = (float(part) for part in text.split(","))
        return Rectangle(round(x0 - left, 2), round(top - y1, 2), round(x1 - left, 2), round(top - y0, 2))

    def whole(item: Mapping[str, Any]) -> Rectangle:
        # Graphviz gives widths and heights in inches, of 72 points; the half of each is needed.
        (x, y), wide, high = point(item["pos"]), float(item["width"]) * 36, float(item["height"]) * 36
        return Rectangle(x - wide, y - high, x + wide, y + high)

    def route(item: Mapping[str, Any]) -> Route:
        parts = item["pos"].split(" ")  # `e,x,y` is the tip at the end, `s,x,y` that at the start, others the curve
        tips = [point(part) for part in parts if part[0] in "es"]
        points = tuple(point(part) for part in parts if part[0] not in "es")
        if parts[0].startswith("s,"):
            points = points[::-1]
        return Route(points, tips[0] if tips else None, point(item["lp"]) if item.get("lp") else None)

    objects = {item["name"]: item for item in placed.get("objects", ())}
    # By the ids that `bare` gives them: Graphviz lists edges in an order of its own.
    edges = {int(item["id"][1:]): item for item in placed.get("edges", ())}
    clusters = {group.name: objects.get(f"cluster_{index}", {}) for index, group in enumerate(picture.groups)}
    return Layout(
        wires=wires,
        width=right - left,
        height=top - bottom,
        boxes={box.name: whole(objects[f"n{index}"]) for index, box in enumerate(picture.boxes)},
        hubs={hub.name: whole(objects[hub.name]) for hub in wires.hubs},
        frames={name: rectangle(item["bb"]) for name, item in clusters.items() if "bb" in item},
        routes=tuple(route(edges[index]) for index in range(len(wires.links))),
    )


# -- lines between the rows of a wrapped picture -----------------------------------------------------------------------

TURN = 8.0
"""Half of how far a line from one row to the next reaches beyond its ends."""


def _turned(picture: Picture, places: Layout) -> Layout:
    """The layout with the lines between two rows of a wrapped picture led through the gap above the lower row."""
    wires = places.wires
    gaps = _gaps(picture, places, wires.rows)
    routes = list(places.routes)
    for index in wires.turns:
        link, points = wires.links[index], routes[index].points
        gap = gaps.get(wires.rows[link.head.box])
        if gap is not None:
            tip = places.boxes[link.head.box].left, points[-1][1]
            routes[index] = replace(routes[index], points=_turn(points[0], tip, gap), tip=tip)
    return replace(places, routes=tuple(routes))


def _gaps(picture: Picture, places: Layout, rows: Mapping[str, int]) -> Mapping[int, float]:
    """The height of the gap above each row that has one: below all boxes of the row before, and their frames."""
    tops: dict[int, float] = {}
    bottoms: dict[int, float] = {}
    for name, row in rows.items():
        group = picture.by_name[name].group
        frame = places.frames.get(group) if group is not None else None
        alone = {rows[box.name] for box in picture.members(group)} == {row}
        edge = frame if frame is not None and alone else places.boxes[name]
        tops[row] = min(tops.get(row, edge.top), edge.top)
        bottoms[row] = max(bottoms.get(row, edge.bottom), edge.bottom)
    return {row: (bottoms[row - 1] + top) / 2 for row, top in tops.items() if row and bottoms[row - 1] < top}


def _turn(start: Point, tip: Point, gap: float) -> tuple[Point, ...]:
    """A line that leaves to the right, returns to the left at the height of the gap, and enters from the left."""
    (x0, y0), (x1, y1) = start, tip
    # The arrow takes the last 7 points of the line.
    out, back, end = (x0 + TURN, gap), (x1 - TURN, gap), (x1 - 7, y1)
    down = (x0 + TURN, y0), (x0 + 2 * TURN, y0), (x0 + 2 * TURN, gap)
    into = (x1 - 2 * TURN, gap), (x1 - 2 * TURN, y1), end
    return start, start, down[0], down[0], *down[1:], out, out, back, back, *into
