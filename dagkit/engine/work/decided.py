"""Work that left the queue, or returned to it, by a decision instead of by being processed. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from pydantic import BaseModel, ConfigDict

from dagkit.engine.program.facts import Decided, Decision
from dagkit.engine.work.item import WorkItem


class WorkAside(BaseModel):
    """Work that was set aside because it could not be processed. It can be retried, or given up."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    item: WorkItem
    reason: str
    """How it failed."""
    window: int
    """The window that set it aside."""
    at: datetime


@dataclass(frozen=True, slots=True)
class DecidedWork:
    """The decisions on work since the last commit."""

    aside: tuple[WorkItem, ...] = ()
    given_up: tuple[WorkItem, ...] = ()
    """It was pending, or it is listed in `retried`, too."""
    retried: tuple[WorkItem, ...] = ()
    """It was set aside earlier."""
    all_aside: tuple[WorkAside, ...] = ()
    """All work that is set aside now."""

    @property
    def ended(self) -> Iterable[WorkItem]:
        """The work that no longer waits, although it was not processed."""
        return *self.aside, *self.given_up

    def setting_aside(self, items: Iterable[WorkItem], reason: str, window: int, at: datetime) -> "DecidedWork":
        """Return these decisions and that to set pending work aside."""
        items = tuple(items)
        new = (WorkAside(item=item, reason=reason, window=window, at=at) for item in items)
        return replace(self, aside=(*self.aside, *items), all_aside=(*self.all_aside, *new))

    def giving_up(self, pending: Iterable[WorkItem], found: Iterable[WorkAside]) -> "DecidedWork":
        """Return these decisions and that to give up pending work, and work that was set aside."""
        without = self.retrying(found)
        ended = without.retried[len(self.retried) :]
        return replace(without, given_up=(*self.given_up, *pending, *ended))

    def retrying(self, found: Iterable[WorkAside]) -> "DecidedWork":
        """Return these decisions and that to put back work that was set aside."""
        found = list(found)
        return replace(
            self,
            retried=(*self.retried, *(each.item for each in found)),
            all_aside=tuple(each for each in self.all_aside if each not in found),
        )


NOTHING_DECIDED = DecidedWork()


def decided_of(item: WorkItem, decision: Decision, reason: str, at: datetime, *, by: str | None = None) -> Decided:
    """Return the fact that records a decision on work."""
    return Decided(
        decision=decision,
        into=item.into,
        source=item.name,
        start=item.start,
        end=item.end if item.has_end else None,
        is_shares=item.is_shares,
        reason=reason,
        by=by,
        at=at,
    )
