"""The event times of an application: the watermarks of its operators after a window, and of single sources. Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from dagkit.engine.program.stored_value import StoredValue
from dagkit.engine.work.item import WorkItem
from dagkit.engine.worker.protocol import Report


class Estimate(StoredValue):
    """The watermark that one partition estimated."""

    at: datetime
    since: datetime
    """When the driver received the last estimate of the partition."""


class EventTimes(StoredValue):
    """The part of a checkpoint that watermarks are computed from. It is empty if no operator estimates one."""

    sent: Mapping[str, datetime | None] = {}
    """The watermark of what each operator sends; None before the first."""
    arrived: Mapping[str, datetime] = {}
    """The watermark of all inputs of an operator together."""
    idle: tuple[str, ...] = ()
    """The operators that do not hold back others, because all their sources are idle."""
    estimates: Mapping[str, tuple[Estimate | None, ...]] = {}
    """The estimates of operators that are not splittable, by operator and partition."""
    latest: Mapping[str, datetime] = {}
    """The latest watermark of any element of a splittable source."""
    growing: Mapping[str, Mapping[str, Estimate]] = {}
    """The latest watermark of each source that grows, by operator and source."""
    quiet_since: Mapping[str, datetime] = {}
    """Since when a splittable source of watermarks has had no work, if it can become idle."""
    slid: Mapping[str, tuple[datetime | None, ...]] = {}
    """The watermarks that operators with sliding windows would have passed on after their last windows, in order."""
    advanced: bool = False
    """Whether an operator that uses watermarks has not seen the latest one yet."""

    def renewed(self, now: datetime) -> "EventTimes":
        """Return the event times for a new launch: no source is idle yet, as none was asked since the last launch."""
        if not self.estimates and not self.quiet_since and not self.growing:
            return self
        estimates = {
            name: tuple(None if each is None else Estimate(at=each.at, since=now) for each in partitions)
            for name, partitions in self.estimates.items()
        }
        growing = {
            name: {source: Estimate(at=each.at, since=now) for source, each in sources.items()}
            for name, sources in self.growing.items()
        }
        quiet_since = dict.fromkeys(self.quiet_since, now)
        return self.model_copy(update={"estimates": estimates, "growing": growing, "quiet_since": quiet_since})

    @property
    def application(self) -> datetime | None:
        """The watermark of the application: the lowest of all operators; None while one of them has none."""
        known = [instant for instant in self.sent.values() if instant is not None]
        return min(known) if known and len(known) == len(self.sent) else None


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of sources and work for which event times are computed."""

    window_id: int
    now: datetime
    waiting: Sequence[WorkItem] = ()
    """The work that is not done, in the queue and in windows in flight; of work that is alike, the earliest."""
    reports: Sequence[Report] = ()
    """The reports of the window; none between two windows."""
    behind: Collection[str] = ()
    """The input operators that found input which is not sent, or which no committed window contains."""
    ended: Collection[str] = ()
    """The input operators that have ended for ever."""
    sources: Mapping[str, datetime | None] = field(default_factory=dict)
    """The watermarks that input operators estimate."""
    has_delayed_items: bool = False


class Watermark(NamedTuple):
    """The watermark of what an operator sends."""

    at: datetime | None = None
    is_idle: bool = False
    """Whether all its sources are idle, so that it does not hold back other inputs of an operator."""


def later(one: datetime | None, other: datetime | None) -> datetime | None:
    """Return the later of two instants, the known one if only one is, None if none is."""
    return other if one is None or (other is not None and other > one) else one


def of_elements(
    items: Sequence[WorkItem], latest: datetime | None, idle_after: timedelta | None, now: datetime
) -> Watermark:
    """Return the lowest watermark of all pending work; None while it is unknown for some of it.

    Idle work does not count. If no other work is pending, return the latest watermark that any element reached.
    """
    active = [item for item in items if not is_idle(item.deferral.idle_since, idle_after, now)]
    holds = [item.times.hold for item in active]
    if active:
        known = [hold for hold in holds if hold is not None]
        return Watermark(min(known) if len(known) == len(holds) else None)
    return Watermark(latest, is_idle=bool(items))


def of_partitions(estimates: Iterable[Estimate | None], idle_after: timedelta | None, now: datetime) -> Watermark:
    """Return the lowest estimate of all partitions that have made one and are not idle; if all are idle, the latest."""
    made = [estimate for estimate in estimates if estimate is not None]
    active = [estimate.at for estimate in made if not is_idle(estimate.since, idle_after, now)]
    if active:
        return Watermark(min(active))
    return Watermark(max((estimate.at for estimate in made), default=None), is_idle=bool(made))


def is_idle(since: datetime | None, idle_after: timedelta | None, now: datetime) -> bool:
    """Whether a part of a source that has had no input since an instant is idle now."""
    return since is not None and idle_after is not None and now - since >= idle_after


def idle_instants(since: Iterable[datetime | None], idle_after: timedelta | None, now: datetime) -> Iterator[datetime]:
    """Yield the instants after now at which parts of a source become idle."""
    if idle_after is not None:
        yield from (instant + idle_after for instant in since if instant is not None and now - instant < idle_after)
