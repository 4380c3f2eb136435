"""Compare the handovers of a window as givers and takers report them. Pure.

Only reports count, not what the board sent: work that was given and not taken waits for the next window, and work that
was taken and not given was done twice, so the window runs again without a board.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from dagkit.engine.program.address import Address
from dagkit.engine.program.facts import Split
from dagkit.engine.program.failures import WindowLost
from dagkit.engine.work.handover import Handover
from dagkit.engine.work.item import ItemKey
from dagkit.engine.work.schedule import WindowSchedule
from dagkit.engine.work.split import HANDED, Allocation, SlotWork, split_of
from dagkit.engine.worker.protocol import Answer, Report


def settle_handovers(window_id: int, schedule: WindowSchedule, answer: Answer) -> tuple[WindowSchedule, Answer]:
    """Return what each slot had after the handovers of a window, and the answer in which givers left the rest.

    Raise WindowLost if work that a slot did was not given to it.
    """
    given = [handover for report in answer.reports for handover in report.gave]
    takers = {token: report.slot for report in answer.reports for token in report.took}
    taken = sum(len(report.took) for report in answer.reports)
    if len(takers) < taken or not takers.keys() <= {handover.token for handover in given}:
        raise WindowLost(
            f"part of window {window_id} ran again after it had handed work over to other slots, as it does when an "
            "executor is lost, so that work was done twice",
            "the window runs again by itself; see why the executor was lost",
        )
    reports = tuple(_with_untaken(report, takers.keys()) for report in answer.reports)
    schedule = replace(schedule, allocation=_after(schedule.allocation, given, takers), handed=tuple(_splits(given)))
    return schedule, replace(answer, reports=reports)


def _with_untaken(report: Report, taken: Container[str]) -> Report:
    untaken = [item for handover in report.gave if handover.token not in taken for item in handover.work]
    return replace(report, left=(*report.left, *untaken)) if untaken else report


def _splits(given: Iterable[Handover]) -> Iterator[Split]:
    for handover in given:
        if handover.cut_from is not None:
            (item,) = handover.work
            yield split_of(replace(item, start=handover.cut_from), item.start, HANDED, handover.slot)


def _after(allocation: Allocation, given: Sequence[Handover], takers: Mapping[str, int]) -> Allocation:
    """Divide allocated items where handovers did, and move the pieces to the slots that took them."""
    cuts: dict[ItemKey, set[int]] = {}
    moved: dict[tuple[ItemKey, int], int] = {}
    for handover in given:
        for item in handover.work:
            if handover.cut_from is not None:
                cuts.setdefault(item.key, set()).add(item.start)
            if handover.token in takers:
                moved[item.key, item.start] = takers[handover.token]
    after: dict[Address, SlotWork] = {into: [[] for _ in slot_work] for into, slot_work in allocation.items()}
    for into, slot_work in allocation.items():
        for slot, slot_items in enumerate(slot_work):
            for item in slot_items:
                places = sorted(at for at in cuts.get(item.key, ()) if item.start < at < item.end)
                for start, end in pairwise([item.start, *places, item.end]):
                    after[into][moved.get((item.key, start), slot)].append(item.part(start, end))
    return after
