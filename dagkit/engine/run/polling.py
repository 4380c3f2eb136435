"""Windows that only poll: they ask work without an end whether there is more of it by now. Pure."""

from collections.abc import Sized
from dataclasses import replace
from datetime import datetime

from dagkit.engine.work.item import Number, WorkItem, end_of, has_end
from dagkit.engine.work.split import Allocation, all_in
from dagkit.engine.worker.protocol import Answer, Report

def only_polls(sent: Sized, given: Sized, allocation: Allocation) -> bool:
    """Whether a window does nothing but ask work without an end whether there is more of it by now.

    Nothing need be promised of it: whatever it finds is found again.
    """
    allocated = all_in(allocation)
    return bool(allocated) and not sent and not given and not any(map(has_end, allocated))


def found_nothing(allocation: Allocation, answer: Answer) -> bool:
    """Whether all that was dealt had nothing to do, and nothing else came of the window."""
    left = [each for report in answer.reports for each in report.left]
    wrote = any(report.parts for report in answer.reports)
    # and not one that ended, and one that came of it
    same = sorted(map(_stretch, left)) == sorted(map(_stretch, all_in(allocation)))
    return same and all(each.in_vain for each in left) and not wrote and not answer.delayed


def timed(answer: Answer, now: datetime) -> Answer:
    """The answer that came now, with the instants at which what was put off is due."""
    return replace(answer, reports=tuple(_timed(each, now) if each.put_off else each for each in answer.reports))


def _timed(report: Report, now: datetime) -> Report:
    due = {end: put_off.due(now) for end, put_off in report.put_off.items()}
    left = (each.model_copy(update={"due": due.get(end_of(each), each.due)}) for each in report.left)
    return replace(report, left=tuple(left))


def _stretch(each: WorkItem) -> tuple[str, Number, int, int]:
    return each.into, each.number, each.start, each.end


