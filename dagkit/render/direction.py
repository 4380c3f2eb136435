"""Chooses the direction of a picture, left to right unless it would become too wide, and wraps long chains."""

from collections.abc import Mapping
from math import log, sqrt
from typing import Literal

from dagkit.render.content import Wording, width
from dagkit.render.picture import Picture, WireKind

Direction = Literal["LR", "TB"]

FEW = 12
"""Up to this number of boxes, a picture reads from left to right, whatever its shape."""
PAGE = 1.6
"""Width by height of a screen or a slide."""


LONG = 7
"""Up to this number of boxes one after the other, a picture is not wrapped."""
NARROW = 3
"""A picture with more boxes beside each other is not wrapped."""
STEP = 220.0
"""The width of a box and of the wire after it, on average."""
LEVEL = 110.0
"""The height of a row of a wrapped picture, without lanes."""


def fitting_direction(picture: Picture) -> Direction:
    """The direction whose shape is nearest to a page's; wrapped ones and those with lanes read from left to right."""
    if len(picture.boxes) <= FEW or any(box.lanes for box in picture.boxes) or wrapped(picture):
        return "LR"
    depth, breadth = _extent(ranks(picture))
    wording = Wording(picture)
    wide = sum(max(width(line) for line in wording.box(box).head) + 40 for box in picture.boxes) / len(picture.boxes)
    across = depth * (wide + 90) / (breadth * 80)
    down = breadth * (wide + 25) / (depth * 130)
    return "LR" if abs(log(across / PAGE)) <= abs(log(down / PAGE)) else "TB"


def wrapped(picture: Picture) -> Mapping[str, int]:
    """The row of each box, if the picture is a long chain, or a few beside each other; else nothing."""
    found = ranks(picture)
    depth, breadth = _extent(found)
    if depth <= LONG or breadth > NARROW or len(found) < len(picture.boxes):
        return {}
    high = breadth * (LEVEL + 17 * max(len(box.lanes) for box in picture.boxes))
    rows = int(sqrt(depth * STEP / high / PAGE))
    if rows < 2:
        return {}
    length = -(-depth // rows)
    row = {name: rank // length for name, rank in found.items()}
    turning = [row[head.box] - row[tail.box] for _, tail, head in picture.edges() if row[head.box] != row[tail.box]]
    return row if set(turning) == {1} and len(turning) < rows else {}


def _extent(ranked: Mapping[str, int]) -> tuple[int, int]:
    """The number of boxes on the longest path, and in the largest rank."""
    found = list(ranked.values())
    return 1 + max(found, default=0), max((found.count(rank) for rank in set(found)), default=1)


def ranks(picture: Picture) -> Mapping[str, int]:
    """The length of the longest path to each box; without the boxes in and behind a cycle."""
    after: dict[str, list[str]] = {box.name: [] for box in picture.boxes}
    before = dict.fromkeys(after, 0)
    for _, tail, head in picture.edges():
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
