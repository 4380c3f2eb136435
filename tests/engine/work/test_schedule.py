"""The dealer: what a window is given follows from what those before it showed, and what it left is given again."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from dagkit.engine.program.facts import Split
from dagkit.engine.program.points import Point
from dagkit.engine.record.history import history
from dagkit.engine.work.cost import CostEstimate, learnt, usual_of
from dagkit.engine.work.item import WorkItem
from dagkit.engine.work.queue import WorkQueue
from dagkit.engine.work.schedule import BESIDES, Scheduler, WindowSizer
from dagkit.engine.work.split import EVEN, OVER, PUT_OFF, SlotResult, anywhere, split_at_the_end
from dagkit.ranges import OFFSET_INFINITY
from dagkit.scaling.policy import LONGEST_MILLIS
from dagkit.testing import CrashAfter
from tests.engine.cast import Desk, files_given, lines_through_filter
from tests.engine.items import waiting

INTO = "read.blocks"
NEAR = {INTO: anywhere}


def block(number: int, start: int, end: int, *, done: int = 0, millis: float = 0.0) -> WorkItem:
    return waiting(number, start, end, INTO, done_positions=done, done_millis=millis)


def dealer_of(*blocks: WorkItem, error: float = 0.02) -> Scheduler:
    """One that knows that a position takes a millisecond; what was measured comes first, as windows give it back."""
    queue = WorkQueue.of(each for each in blocks if not each.done_positions)
    queue.put_back(each for each in blocks if each.done_positions)
    return Scheduler(queue, WindowSizer(500.0, positions=1000.0, millis=1000.0, error=error))


def left_of(each: WorkItem, at: int, millis: float) -> WorkItem:
    """What a slot left of a block that it read up to a position."""
    return each.part(at, each.end).measured(at - each.start, millis, 0)


# ---- what is expected


def test_what_was_measured_is_expected_of_as_much_again_and_the_usual_of_the_rest():
    each = block(0, 100, 1000, done=100, millis=1000.0)
    assert CostEstimate(0.5).millis(each) == 100 * 10.0 + 800 * 0.5
    reached = [CostEstimate(0.5).reached(each, millis) for millis in (0, 500, 1000, 1100, 9999)]
    assert reached == [100, 150, 200, 400, 1000]


def test_what_lies_behind_a_cut_is_known_only_as_far_as_it_was():
    each = block(0, 100, 1000, done=100, millis=1000.0)
    near, far = each.part(100, 150), each.part(150, 1000)
    assert CostEstimate(0.5).millis(near) + CostEstimate(0.5).millis(far) == CostEstimate(0.5).millis(each)


def test_a_dear_stretch_that_goes_on_is_known_to_be_longer():
    before = block(0, 100, 1000, done=100, millis=1000.0).part(150, 1000)  # others were given what is before
    after = learnt(before, left_of(before, 170, 220.0))
    assert (after.done_positions, after.done_millis, after.done_apart) == (170, 170 * 11.0, 0)


def test_what_costs_something_else_now_is_another_stretch_and_what_was_not_begun_is_known_as_it_was():
    before = block(0, 100, 1000, done=100, millis=1000.0)
    after = learnt(before, left_of(before, 500, 400.0))
    assert (after.done_positions, after.done_millis) == (400, 400.0)
    assert learnt(before, before) == before


def test_the_usual_is_that_of_all_that_was_begun():
    assert usual_of([block(0, 0, 9)]) is None
    assert usual_of([block(0, 5, 9, done=5, millis=20.0), block(1, 0, 9), block(2, 5, 9, done=5, millis=10.0)]) == 3.0


# ---- allocation


def test_blocks_of_one_length_and_another_cost_are_allocated_by_their_cost():
    dear, *others = block(0, 0, 1000, done=1000, millis=9000.0), *(block(number, 0, 1000) for number in (1, 2, 3))
    given = dealer_of(dear, *others).next(1, {INTO: 2}, NEAR, overlaps=True)
    loads = [sum(map(given.forecast.millis, hand)) for hand in given.allocation[INTO]]
    assert loads == pytest.approx([6000.0, 6000.0], abs=9)
    assert [(cut.element_id, cut.why) for cut in given.cuts] == [(0, EVEN)]


def test_where_no_other_window_begins_slots_are_allocated_more_and_what_was_not_begun_costs_no_piece():
    scheduler = dealer_of(block(0, 0, 100_000), error=1.0)
    given = scheduler.next(1, {INTO: 2}, NEAR, overlaps=False)
    first, second = hands = given.allocation[INTO]
    loads = [sum(each.length for each in hand) for hand in hands]
    assert loads == pytest.approx([(1 + BESIDES) * given.lasts_millis] * 2, rel=0.01)
    assert first[0].end == second[0].start < second[0].end == first[1].start
    left = [[left_of(hand[0], hand[0].start + 700, 700.0), *hand[1:]] for hand in hands]
    scheduler.over(given, [SlotResult(0, slot, 700.0, 700.0, each) for slot, each in enumerate(left)])
    waits = [(each.start, each.end) for each in scheduler.queue.all()]
    assert waits == [(700, second[0].start), (second[0].start + 700, 100_000)]


def test_a_slot_that_was_at_work_is_reported_with_its_split_and_one_that_was_not_is_not():
    given = dealer_of(block(0, 0, 1000), block(1, 0, 1000)).next(1, {INTO: 2}, NEAR, overlaps=True)
    first, second = (hand[0] for hand in given.allocation[INTO])
    idle, rest = SlotResult(0, 1, 0.0, 0.0, [second]), left_of(first, 5, 9.0)
    put_off = replace(rest, due=datetime(2024, 1, 1, tzinfo=UTC))
    for left, why in ((rest, OVER), (put_off, PUT_OFF)):
        (split,) = split_at_the_end(given.allocation, [SlotResult(0, 0, 5.0, 9.0, [left]), idle])
        assert (split.element_id, split.start, split.at, split.end, split.slot, split.why) == (0, 0, 5, 1000, 0, why)


def test_a_forecast_that_was_wrong_makes_the_next_window_short():
    scheduler = dealer_of(*(block(number, 0, 10_000) for number in range(4)))
    given = scheduler.next(1, {INTO: 2}, NEAR, overlaps=True)
    assert given.lasts_millis == 10_000.0
    (a,), (b,) = given.allocation[INTO]
    slow = SlotResult(0, 1, 10.0, 10_000.0, [left_of(b, 10, 1e4)])
    scheduler.over(given, [SlotResult(0, 0, 10_000.0, 10_000.0, []), slow])
    assert a.number != b.number
    assert scheduler.pace.error > 0.9
    assert scheduler.next(2, {INTO: 2}, NEAR, overlaps=True).lasts_millis < 4000


# ---- what is kept


@pytest.mark.parametrize("crashes", [(), (CrashAfter(Point.PLANNED, 1),)], ids=["undisturbed", "promised and kept"])
def test_what_was_cut_so_that_it_could_be_allocated_is_in_the_ledger_with_its_window(tmp_path, crashes):
    files_given(tmp_path, ("x" * (1 << 20) + "\n") * 4)
    desk = Desk(tmp_path, lines_through_filter(tmp_path, block_size=1 << 30, chunk=1 << 20))
    assert desk.crash(*crashes) == len(crashes)
    desk.run()
    first, *_ = history(desk.ledger())
    split, *_ = (fact for fact in first.checkpoint.facts if isinstance(fact, Split))
    assert (first.checkpoint.window, split.why, split.slot, split.start) == (1, EVEN, None, 0)
    assert split.at == pytest.approx(2 << 20, abs=9)


# ---- slots that hand work over


@pytest.mark.parametrize(("hands_over", "lasts"), [(True, LONGEST_MILLIS), (False, 810.0)])
def test_slots_that_hand_work_over_have_time_until_there_is_none(hands_over, lasts):
    dealer = dealer_of(block(0, 0, 1000), block(1, 1000, 1400))
    given = dealer.next(1, {INTO: 2}, NEAR, overlaps=False)
    dealer.over(given, [SlotResult(0, slot, 0.0 if slot else 700.0, 700.0, [], hands_over) for slot in (0, 1)])
    dealer.queue.put_back([block(2, 0, 1400)])
    assert dealer.next(2, {INTO: 2}, NEAR, overlaps=False).lasts_millis == pytest.approx(lasts, rel=0.2)


def test_work_without_an_end_keeps_the_window_short_also_where_slots_hand_work_over():
    dealer = dealer_of(block(0, 0, OFFSET_INFINITY), block(1, 0, 1000))
    dealer.pace = replace(dealer.pace, hands_over=True)
    assert dealer.next(1, {INTO: 2}, NEAR, overlaps=False).lasts_millis < 1000.0


@pytest.mark.parametrize(("positions", "is_worth"), [(100, False), (1000, True)])
def test_only_windows_of_some_length_have_a_board(positions, is_worth):
    dealer = dealer_of(block(0, 0, positions))
    assert dealer.next(1, {INTO: 2}, NEAR, overlaps=False).is_worth_sharing is is_worth
