"""Times: how far event time has come in each splittable operator that tells it, and so in the application. Pure."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from dagkit.engine.work.item import WorkItem
from dagkit.engine.worker.protocol import Answer

Watermarks = Mapping[str, datetime | None]
"""By the input of the work; None where nothing was told yet."""


def watermarks_after(
    before: Watermarks,
    timed_inputs: Iterable[str],
    waiting: Iterable[WorkItem],
    answer: Answer,
    coming: Collection[str],
) -> dict[str, datetime | None]:
    """Event time has come as far as in that which is furthest behind of all that waits; where nothing does, as told.

    What was not begun, and what was found and still has to join the queue, `coming` for an input, holds it where it is.
    """
    waiting = list(waiting)
    after: dict[str, datetime | None] = {}
    for into in timed_inputs:
        left = [each.reached for each in waiting if each.into == into]
        known = [reached for reached in left if reached is not None]
        told = [times[into] for report in answer.reports for times in [report.reached] if into in times]
        now = [before[into]] if before.get(into) is not None else []
        if into not in coming and len(known) == len(left):
            now += [min(known)] if known else told
        after[into] = max((instant for instant in now if instant is not None), default=None)
    return after


def watermark_of(watermarks: Watermarks) -> datetime | None:
    """That of the application: no operator that tells one is behind it."""
    known = [instant for instant in watermarks.values() if instant is not None]
    return min(known) if known and len(known) == len(watermarks) else None
