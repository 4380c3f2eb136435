"""The elements that slots process now, as text."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from dagkit.engine.reports.run_events import SlotAtWork
from dagkit.errors import printable
from dagkit.observers.amounts import in_time

_MOST_NAMED = 3


def slots_at_work(working: Sequence[SlotAtWork], at: datetime) -> Iterator[str]:
    """A text for each operator, as of `at`: `Reader a.txt 40% for 12 s, b.txt for 3 s`, what takes longest first."""
    for operator in dict.fromkeys(work.operator for work in working):
        its = [work for work in working if work.operator == operator]
        named = ", ".join(_named(work, at) for work in its[:_MOST_NAMED])
        yield f"{printable(operator)} {named}{', and more' if len(its) > _MOST_NAMED else ''}"


def _named(work: SlotAtWork, at: datetime) -> str:
    share = "" if work.fraction is None else f" {work.fraction:.0%}"
    return f"{printable(work.source):.60}{share} for {in_time((at - work.since).total_seconds())}"
