"""Estimate how long pending work will take, from measurements. Pure.

A measurement over some positions of a block holds for as many positions after them: a stretch that was slow for 1000
positions is expected to be slow for 1000 more, and to have the usual cost after that. So a few slow records do not make
a whole file look slow, and a slow stretch is recognised once it has been measured.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from dagkit.engine.work.item import WorkItem
from dagkit.ranges import OFFSET_INFINITY

ALIKE = 2.0
"""The factor by which two costs may differ and still belong to one stretch."""


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """The expected cost of blocks."""

    usual: float | None = None
    """Milliseconds per position, or per other unit in which operators count their work, over all recent work.

    None before any work was measured: then only amounts are compared.
    """

    def millis(self, item: WorkItem) -> float:
        """How long a block will take one slot; 0 for one without an end."""
        start, end = item.start, item.end
        if item.done.positions:
            return self.between(item, start, end)
        amount = end - start if item.size is None and end < OFFSET_INFINITY else item.amount
        return amount * (self.usual or 1.0)

    def between(self, item: WorkItem, start: int, end: int) -> float:
        """How long a part of a block will take one slot; the part is not made, since a copy costs more than this."""
        if item.end >= OFFSET_INFINITY:
            return 0.0
        length, done = end - start, item.done
        known = done.positions
        near = known - done.apart - (start - item.start) if known else 0  # inlines _near: this is called most
        if near <= 0:
            return length * self._otherwise(item)
        rate = done.millis / known
        return length * rate if near >= length else near * rate + (length - near) * self._otherwise(item)

    def reached(self, item: WorkItem, millis: float) -> int:
        """The position of a block that a slot reaches in the given time."""
        start, end = item.start, item.end
        near = self._near(item, start, end)
        measured = item.done.millis / item.done.positions if near else 0.0
        if millis < near * measured:
            return start + int(millis / measured)
        otherwise = self._otherwise(item)
        return min(end, start + near + int((millis - near * measured) / otherwise)) if otherwise else end

    def _near(self, item: WorkItem, start: int, end: int) -> int:
        """How many of the first positions of a part are expected to cost the same as those measured before it."""
        done = item.done
        if not done.positions:
            return 0
        known = done.positions - done.apart - (start - item.start)
        return min(end - start, known) if known > 0 else 0

    def _otherwise(self, item: WorkItem) -> float:
        """Milliseconds per position where no measurement of the block itself holds."""
        usual = self.usual or 1.0
        return usual if item.size is None else item.density * usual


def learnt(before: WorkItem, left: WorkItem) -> WorkItem:
    """Return the rest of a block with all measurements of it: similar costs are joined to those of one stretch."""
    earlier, done = before.done, left.done
    if left.start == before.start:  # no progress: the earlier measurement still holds
        return left if left is before else left.measured(earlier.positions, earlier.millis, earlier.apart)
    if not done.positions or not earlier.positions or not earlier.millis:
        return left
    measured = done.millis / done.positions
    if not 1 / ALIKE <= measured * earlier.positions / earlier.millis <= ALIKE:
        return left
    positions = earlier.positions + earlier.apart + done.positions
    return left.measured(positions, measured * positions, done.apart)


def usual_of(waiting: Iterable[WorkItem]) -> float | None:
    """The average time per unit of work over all pending items that were begun; None if none was begun."""
    begun = [item for item in waiting if item.done.positions]
    done = sum(item.done.positions * item.density for item in begun)
    return sum(item.done.millis for item in begun) / done if done else None
