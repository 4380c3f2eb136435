"""Later: what a launch leaves to a later one, and what it waits for before it ends. Pure.

Work without an end that was deferred has nothing to do now. A launch that does all that is there now leaves it to the
next one; one that goes on until it is idle asks it again when it is due, until it is asked in vain; one that runs until
it is stopped asks for ever. Work with an end that was deferred is there now, and is waited for.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime

from dagkit.api.running import Until
from dagkit.engine.address import Address
from dagkit.engine.work.elements import Elements
from dagkit.engine.work.item import Number, WorkItem


class DrainPolicy:
    """What waits for another launch than this."""

    def __init__(self, until: Until) -> None:
        self.aside: list[WorkItem] = []
        """What truncating took away."""
        self._until = until
        self._truncated: set[tuple[str, Number]] = set()
        """Of what has an end, that which was truncated once: what is left of it is done."""

    def asks_again(self, each: WorkItem) -> bool:
        """Whether what was deferred goes on in this launch once it is due, and keeps it from ending until then."""
        if each.has_end or self._until is Until.STOPPED:
            return True
        return self._until is Until.IDLE and not each.in_vain

    def truncated(self, work: Iterable[WorkItem], elements: Mapping[Address, Elements]) -> list[WorkItem]:
        """What of it an application still does that drains; the rest is put aside."""
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
    """What waits, as a new launch finds it: what has no end is asked at once, however lately it had nothing."""
    return [each if each.has_end or each.due is None else each.model_copy(update={"due": None}) for each in work]


def next_due(deferred: Iterable[WorkItem]) -> datetime | None:
    """When the first of it is due."""
    return min((each.due for each in deferred if each.due is not None), default=None)
