"""Chooses the direction of a picture: left to right, unless it would become too wide."""

from math import log
from typing import Literal

from dagkit.render.content import Wording, width
from dagkit.render.picture import Picture, WireKind

Direction = Literal["LR", "TB"]

FEW = 12
"""Up to this number of boxes, a picture reads from left to right, whatever its shape."""
PAGE = 1.6
"""Width by height of a screen or a slide."""


def fitting_direction(picture: Picture) -> Direction:
    """The direction whose shape is nearest to a page's; pictures with lanes are always drawn from left to right."""
    if len(picture.boxes) <= FEW or any(box.lanes for box in picture.boxes):
        return "LR"
    depth, breadth = _extent(picture)
    wording = Wording(picture)
    wide = sum(max(width(line) for line in wording.box(box).head) + 40 for box in picture.boxes) / len(picture.boxes)
    across = depth * (wide + 90) / (breadth * 80)
    down = breadth * (wide + 25) / (depth * 130)
    return "LR" if abs(log(across / PAGE)) <= abs(log(down / PAGE)) else "TB"


def _extent(picture: Picture) -> tuple[int, int]:
    """The number of boxes on the longest path, and in the largest rank."""
    after: dict[str, list[str]] = {box.name: [] for box in picture.boxes}
    before = dict.fromkeys(after, 0)
    for _, tail, head in picture.edges():
        if head.kind is not WireKind.DELAYED:
            after[tail.box].append(head.box)
            before[head.box] += 1
    rank = dict.fromkeys(after, 0)
    ready = [name for name, count in before.items() if not count]
    for name in ready:
        for follower in after[name]:
            rank[follower] = max(rank[follower], rank[name] + 1)
            before[follower] -= 1
            if not before[follower]:
                ready.append(follower)
    ranks = list(rank.values())
    return 1 + max(ranks, default=0), max((ranks.count(r) for r in set(ranks)), default=1)
