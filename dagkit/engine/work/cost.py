"""Forecast: how long what waits will take, from what was measured. Pure.

What was measured on a block is good for as far again as it was measured over: a stretch that was dear for a thousand
positions is expected to stay dear for a thousand more, and to be as all else is after that. So a few dear records are
never taken for a dear file, and a dear stretch is known for one once it has cost something.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from dagkit.engine.work.item import WorkItem

ALIKE = 2.0
"""By what factor two costs may differ and still be those of one stretch."""


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """What is expected of blocks."""

    usual: float | None = None
    """Milliseconds for each position, or for whatever else operators count their work in, of all that was done lately;
    none: nothing was, and only amounts are compared.
    """

    def millis(self, each: WorkItem) -> float:
        """How long a block will take one slot; nothing is known of one without an end."""
        if not each.done_positions:
            return each.amount * (self.usual or 1.0)
        near = self._near(each)
        return near * self._measured(each) + (each.length - near) * self._otherwise(each)

    def reached(self, each: WorkItem, millis: float) -> int:
        """The position of a block that is come to in so much time."""
        start, end = each.start, each.end
        near = self._near(each)
        measured = self._measured(each)
        if millis < near * measured:
            return start + int(millis / measured)
        otherwise = self._otherwise(each)
        return min(end, start + near + int((millis - near * measured) / otherwise)) if otherwise else end

    def _near(self, each: WorkItem) -> int:
        """How many of its first positions are expected to be as what was measured before it."""
        return min(each.length, max(0, each.done_positions - each.done_apart))

    def _otherwise(self, each: WorkItem) -> float:
        return each.density * (self.usual or 1.0)

    def _measured(self, each: WorkItem) -> float:
        return each.done_millis / each.done_positions if each.done_positions else 0.0


def learnt(before: WorkItem, left: WorkItem) -> WorkItem:
    """What is left of a block, with all that is known of it: costs that are alike are those of one stretch."""
    if left.start == before.start:  # nothing of it was done: what was known of it is known still
        known = ("done_positions", "done_millis", "done_apart")
        return left if left is before else left.model_copy(update={name: getattr(before, name) for name in known})
    if not left.done_positions or not before.done_positions or not before.done_millis:
        return left
    measured = left.done_millis / left.done_positions
    if not 1 / ALIKE <= measured * before.done_positions / before.done_millis <= ALIKE:
        return left
    done = before.done_positions + before.done_apart + left.done_positions
    return left.model_copy(update={"done_positions": done, "done_millis": measured * done})


def usual_of(waiting: Iterable[WorkItem]) -> float | None:
    """What a position took of all that was begun and waits still; none where nothing was."""
    begun = [each for each in waiting if each.done_positions]
    done = sum(each.done_positions * each.density for each in begun)
    return sum(each.done_millis for each in begun) / done if done else None
