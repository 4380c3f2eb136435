"""The watermark of one source: of a splittable operator, or of the partitions of another operator. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from dagkit.engine.inputs.event_times import Estimate
from dagkit.engine.work.item import WorkItem


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
    active = [item for item in items if not is_idle(item.idle_since, idle_after, now)]
    holds = [item.not_before if item.reached is None else item.reached for item in active]
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
