"""Coverage: compare how often two lists of ranges cover each position."""

from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter

Bounds = tuple[float, float]
"""A half-open range, whose end may be infinite."""


def surplus(one: Iterable[Bounds], other: Iterable[Bounds] = ()) -> list[Bounds]:
    """The ranges that `one` covers more often than `other`. Without `other`, adjacent ranges of `one` are joined.

    A range that is covered twice more is in the result twice, so equal results mean equal coverage.
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
            # The range that began last ends first, so one coverage has one list of ranges.
            found.append((begun.pop(), position))
        begun += [position] * (depth - len(begun))
    return sorted(found)


def _disjoint(stretches: list[Bounds]) -> list[Bounds] | None:
    """The sorted ranges, with adjacent ones joined; None if any two overlap. It takes a third of the time."""
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
