"""Views of the queue: they show what waits at one time, and how it changed, without looking at what stayed."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from dagkit.engine.program.address import Address
from dagkit.engine.program.differences import applied
from dagkit.engine.record.stored import text_of
from dagkit.engine.work import queue, waiting
from dagkit.engine.work.item import Deferral, ItemTimes, WorkItem
from dagkit.engine.work.queue import WorkQueue
from dagkit.engine.work.split import Allocation, SplitPlanner, all_in, anywhere
from dagkit.engine.work.waiting import Lane, Waiting, WorkSum
from dagkit.ranges import OFFSET_INFINITY
from tests.engine.items import calls_of

INPUTS = [Address("a.blocks"), Address("b.blocks")]
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def packs_are_small(monkeypatch):
    monkeypatch.setattr(waiting, "PACKED", 3)
    monkeypatch.setattr(queue, "MOST_AT_FRONT", 5)


def item(number: int, into: Address = INPUTS[0], end: int = 10) -> WorkItem:
    element = {"number": number, "receipt": {"to": "x"} if number % 5 == 0 else None}
    return WorkItem(into, (number,), element, 0, end, source=f"s{number}", element_id=number)


class Queued(RuleBasedStateMachine):
    """Work that is found, taken, returned, deferred and given up in any order, on two inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = WorkQueue()
        self.found = 0
        self.taken: list[Allocation] = []
        self.before = self.queue.waiting()
        self.listed: list[WorkItem] = []
        self.later: list[WorkItem] = []

    @rule(counts=st.tuples(st.integers(0, 9), st.integers(0, 9)), end=st.sampled_from((10, OFFSET_INFINITY)))
    def find(self, counts: tuple[int, int], end: int) -> None:
        for into, count in zip(INPUTS, counts, strict=True):
            self.queue.add(item(self.found + each, into, end) for each in range(count))
            self.found += count

    @rule(count=st.integers(0, 40))
    def take(self, count: int) -> None:
        cutter = SplitPlanner(near=dict.fromkeys(INPUTS, anywhere))
        self.taken.append(self.queue.take(dict.fromkeys(INPUTS, 2), dict.fromkeys(INPUTS, float(count)), cutter))

    @rule(start=st.integers(0, 9), is_deferred=st.booleans())
    def give_back(self, start: int, is_deferred: bool) -> None:
        for each in all_in(self.taken.pop()) if self.taken else ():
            rest = each.part(min(start, each.end - 1), each.end)
            self.queue.put_back([replace(rest, deferral=Deferral(due=NOON)) if is_deferred else rest])

    @rule()
    def wake(self) -> None:
        self.queue.wake(NOON, lambda _: True)

    @rule(number=st.integers(0, 30))
    def give_up(self, number: int) -> None:
        self.queue.removed(lambda each: each if each.element_id == number else None)

    @rule()
    def leave_to_later(self) -> None:
        self.later = self.queue.removed(lambda each: each if (each.element_id or 0) % 7 == 0 else None)

    @invariant()
    def the_change_leads_from_one_view_to_the_next(self) -> None:
        now = self.queue.waiting(self.later)
        change = now.change_since(self.before)
        assert list(self.before) == self.listed
        assert list(now) == (self.listed if change is None else applied(self.listed, change))
        if change is not None:
            text_of(change)
        self.before, self.listed = now, list(now)

    @invariant()
    def each_question_is_answered_as_by_a_list(self) -> None:
        now, listed = self.before, self.listed
        numbers = {each.element_id for each in listed}
        assert now.elements_among({1, 2, 17, self.found}) == numbers & {1, 2, 17, self.found}
        assert now.receipt_sources == {each.receipt_source for each in listed}
        for into in INPUTS:
            mine = [each for each in listed if each.into == into]
            assert (now.lengths()[into], now.sum_of(into)) == (len(mine), WorkSum.of(mine))
            assert list(now.of_others({into})) == [each for each in listed if each.into != into]


TestQueued = pytest.mark.slow(Queued.TestCase)


def test_a_view_is_cut_where_later_work_begins():
    lane = Lane(INPUTS[0], map(item, range(10)))
    for _ in range(2):
        lane.popleft()
    for place in range(12):
        before, behind = list(lane.view().until(place)), lane.view().since(place)
        assert [each.number[0] for each in before] == list(range(2, min(place, 10)))
        assert [each.number[0] for each in behind] == list(range(max(place, 2), 10))


def test_the_earliest_and_idle_work_decide_the_watermark_even_if_they_are_packed():
    def decisive(found: list[WorkItem]) -> Sequence[WorkItem]:
        return Waiting({"a.blocks": Lane(INPUTS[0], found).view()}).decisive

    found = [
        replace(item(number), times=ItemTimes(not_before=NOON + timedelta(hours=(number - 4) ** 2)))
        for number in range(9)
    ]
    earliest = min(found, key=lambda each: each.times.not_before or NOON)
    assert earliest in decisive(found)
    unknown = [replace(each, times=ItemTimes()) if each is found[5] else each for each in found]
    assert any(each.times.not_before is None for each in decisive(unknown))
    idle = [replace(item(number), deferral=Deferral(idle_since=NOON if number == 4 else None)) for number in range(9)]
    assert idle[4] in decisive(idle)


def test_a_window_costs_the_same_however_many_blocks_wait(monkeypatch):
    monkeypatch.setattr(waiting, "PACKED", 1024)

    def calls(count: int) -> int:
        work = WorkQueue.of(map(item, range(count)))
        work.put_back(all_in(work.take({INPUTS[0]: 2}, {INPUTS[0]: 5.0 * count}, SplitPlanner())))
        before = work.waiting()

        def window() -> None:
            cutter = SplitPlanner(near=dict.fromkeys(INPUTS, anywhere))
            work.put_back(all_in(work.take({INPUTS[0]: 2}, {INPUTS[0]: 50.0}, cutter)))
            work.waiting().change_since(before)

        return calls_of(window)

    calls(6 * 1024)  # Python caches which classes are sequences, once for all sizes
    assert calls(6 * 1024) == calls(3 * 1024)
