"""Decide what a launch leaves to a later launch, and what it waits for before it ends. Pure.

Deferred work without an end has nothing to do now. A launch that processes the available input leaves such work to the
next launch; a launch that runs until it is idle polls it when it is due, until a poll finds nothing; a launch that runs
until it is stopped polls for ever. Every launch waits for deferred work that has an end.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime

from dagkit.api.running import Until
from dagkit.engine.address import Address
from dagkit.engine.work.elements import Elements
from dagkit.engine.work.item import Number, WorkItem


class DrainPolicy:
    """The rules for the work that this launch leaves to a later one."""

    def __init__(self, until: Until) -> None:
        self.aside: list[WorkItem] = []
        """The work that truncating removed."""
        self._until = until
        self._truncated: set[tuple[str, Number]] = set()
        """Elements that were truncated once: the rest of those that have an end is not truncated again."""

    def asks_again(self, each: WorkItem) -> bool:
        """Whether this launch resumes a deferred item once it is due, and does not end before."""
        if each.has_end or self._until is Until.STOPPED:
            return True
        return self._until is Until.IDLE and not each.in_vain

    def truncated(self, work: Iterable[WorkItem], elements: Mapping[Address, Elements]) -> list[WorkItem]:
        """Return the work that this launch still does. If the application drains, put the rest aside."""
        work = list(work)
        if self._until is not Until.DRAINED:
            return work
        now = [part for each in work for part in self._truncated_of(each, elements[each.into])]
        self._truncated |= {(each.into, each.number) for each in work}
        return now

    def _truncated_of(self, each: WorkItem, elements: Elements) -> list[WorkItem]:
        if each.has_end and (each.into, each.number) in self._truncated:
            return [each]
        now, later = elements.truncated(each)
        self.aside += [part for part in (later,) if part is not None]
        return [part for part in (now,) if part is not None]


def renewed(work: Iterable[WorkItem]) -> list[WorkItem]:
    """Return pending work for a new launch: work without an end is due at once, even if it was deferred."""
    return [each if each.has_end or each.due is None else each.model_copy(update={"due": None}) for each in work]


def next_due(deferred: Iterable[WorkItem]) -> datetime | None:
    """When the first deferred item is due; None if there is none."""
    return min((each.due for each in deferred if each.due is not None), default=None)
