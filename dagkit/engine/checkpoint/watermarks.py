"""The watermarks of splittable operators that estimate one, and of the application. Pure."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from dagkit.engine.work.item import WorkItem
from dagkit.engine.worker.protocol import Answer

Watermarks = Mapping[str, datetime | None]
"""By input; None before the first estimate."""


def watermarks_after(
    before: Watermarks,
    timed_inputs: Iterable[str],
    waiting: Iterable[WorkItem],
    answer: Answer,
    coming: Collection[str],
) -> dict[str, datetime | None]:
    """Return the lowest watermark of all pending work of each input; without pending work, the reported one.

    Work that was not begun, and discoveries that still have to join the queue (`coming`), hold the watermark.
    """
    waiting = list(waiting)
    after: dict[str, datetime | None] = {}
    for into in timed_inputs:
        left = [item.reached for item in waiting if item.into == into]
        known = [reached for reached in left if reached is not None]
        reported = [times[into] for report in answer.reports for times in [report.reached] if into in times]
        now = [before[into]] if before.get(into) is not None else []
        if into not in coming and len(known) == len(left):
            now += [min(known)] if known else reported
        after[into] = max((instant for instant in now if instant is not None), default=None)
    return after


def watermark_of(watermarks: Watermarks) -> datetime | None:
    """The watermark of the application: the lowest of all operators; None while one of them has none."""
    known = [instant for instant in watermarks.values() if instant is not None]
    return min(known) if known and len(known) == len(watermarks) else None
