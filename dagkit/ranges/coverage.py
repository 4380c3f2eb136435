"""Coverage: how often stretches cover each position, compared."""

from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter

Bounds = tuple[float, float]
"""A half-open stretch; an open end is infinite."""


def surplus(one: Iterable[Bounds], other: Iterable[Bounds] = ()) -> list[Bounds]:
    """Where `one` covers more often than `other`, once for each time; without another, `one` with touching ends joined.

    What is covered twice is in the answer twice, so that two equal answers mean equal coverage everywhere.
    """
    one, other = sorted(one), list(other)
    simple = None if other else _disjoint(one)
    if simple is not None:
        return simple
    changes = [change for start, end in one for change in ((start, 1), (end, -1))]
    changes += [change for start, end in other for change in ((start, -1), (end, 1))]
    changes.sort()
    begun: list[float] = []
    found: list[Bounds] = []
    depth = 0
    for position, here in groupby(changes, key=itemgetter(0)):
        depth += sum(change for _, change in here)
        while len(begun) > max(depth, 0):
            found.append((begun.pop(), position))
        begun += [position] * (depth - len(begun))
    return sorted(found)


def _disjoint(stretches: list[Bounds]) -> list[Bounds] | None:
    """Stretches in order with touching ends joined; None if any two overlap. Takes a third of the time."""
    found: list[Bounds] = []
    reached = float("-inf")
    for start, end in stretches:
        if start < reached:
            return None
        if start == end:
            continue
        if start == reached:
            found[-1] = found[-1][0], end
        else:
            found.append((start, end))
        reached = end
    return found
