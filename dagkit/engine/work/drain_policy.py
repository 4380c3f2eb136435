"""Decide what a launch leaves to a later launch, and what it waits for before it ends. Pure.

Deferred work without an end has nothing to do now. A launch that processes the available input leaves such work to the
next launch; a launch that runs until it is idle polls it when it is due, until a poll finds nothing; a launch that runs
until it is stopped polls for ever. Every launch waits for deferred work that has an end, and for work whose source did
not answer: it may have more to read.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from dagkit.api.running import Until
from dagkit.engine.program.address import Address
from dagkit.engine.work.elements import Elements
from dagkit.engine.work.item import Number, WorkItem
from dagkit.engine.work.queue import WorkQueue


class DrainPolicy:
    """The rules for the work that this launch leaves to a later one."""

    def __init__(self, until: Until) -> None:
        self.aside: list[WorkItem] = []
        """The work that truncating removed."""
        self._until = until
        self._truncated: set[tuple[str, Number]] = set()
        """Elements that were truncated once. If such an element has an end, its rest is not truncated again."""

    def asks_again(self, item: WorkItem) -> bool:
        """Whether this launch resumes a deferred item once it is due, and does not end before."""
        if item.is_for_next_launch:
            return False
        if item.has_end or item.unanswered or self._until is Until.STOPPED:
            return True
        return self._until is Until.IDLE and not item.in_vain

    def truncated(self, work: Iterable[WorkItem], elements: Mapping[Address, Elements]) -> list[WorkItem]:
        """Return the work that an application that drains still does, and put the rest aside."""
        return [part for item in work for part in self._truncated_of(item, elements[item.into])]

    def note(self, work: Iterable[WorkItem]) -> None:
        """Note that this work was truncated."""
        self._truncated |= {(item.into, item.number) for item in work}

    def removed(self, part_of: Callable[[WorkItem], WorkItem | None]) -> list[WorkItem]:
        """Remove the part of each item left to later launches that `part_of` returns, and return these parts."""
        aside = WorkQueue.of(self.aside)
        found = aside.removed(part_of)
        self.aside = aside.all()
        return found

    def _truncated_of(self, item: WorkItem, elements: Elements) -> list[WorkItem]:
        if item.has_end and (item.into, item.number) in self._truncated:
            return [item]
        now, later = elements.truncated(item)
        self.aside += [part for part in (later,) if part is not None]
        return [part for part in (now,) if part is not None]


def renewed(work: Iterable[WorkItem]) -> list[WorkItem]:
    """Return pending work for a new launch: work without an end is due at once, even if it was deferred or idle."""
    return [
        item
        if (item.has_end and not item.is_for_next_launch) or (item.due is None and item.idle_since is None)
        else replace(item, due=None, idle_since=None, waits_for="")
        for item in work
    ]


def next_due(deferred: Iterable[WorkItem]) -> datetime | None:
    """When the first deferred item is due; None if there is none."""
    return min((item.due for item in deferred if item.due is not None), default=None)
