"""The dealer: what a window is given follows from what those before it showed, and what it left is given again."""

from dataclasses import replace
from datetime import UTC, datetime
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit.engine.program.facts import Split
from dagkit.engine.program.points import Point
from dagkit.engine.record.history import history
from dagkit.engine.work.cost import CostEstimate, learnt, usual_of
from dagkit.engine.work.item import Deferral, DoneBefore, WorkItem
from dagkit.engine.work.queue import WorkQueue
from dagkit.engine.work.schedule import BESIDES, FIRST_POSITIONS, LEAST_ERROR, Scheduler, WindowLength, WindowSizer
from dagkit.engine.work.split import EVEN, OVER, PUT_OFF, SlotResult, anywhere, split_at_the_end
from dagkit.ranges import OFFSET_INFINITY
from dagkit.scaling.policy import LONGEST_MILLIS
from dagkit.testing import CrashAfter
from tests.engine.cast import Desk, files_given, lines_through_filter
from tests.engine.items import waiting

INTO = "read.blocks"
NEAR = {INTO: anywhere}


def block(number: int, start: int, end: int, *, done: int = 0, millis: float = 0.0) -> WorkItem:
    return waiting(number, start, end, INTO, done=DoneBefore(done, millis))


def dealer_of(*blocks: WorkItem, error: float = 0.02) -> Scheduler:
    """One that knows that a position takes a millisecond; what was measured comes first, as windows give it back."""
    queue = WorkQueue.of(each for each in blocks if not each.done.positions)
    queue.put_back(each for each in blocks if each.done.positions)
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
    assert after.done[:3] == (170, 170 * 11.0, 0)


def test_what_costs_something_else_now_is_another_stretch_and_what_was_not_begun_is_known_as_it_was():
    before = block(0, 100, 1000, done=100, millis=1000.0)
    after = learnt(before, left_of(before, 500, 400.0))
    assert (after.done.positions, after.done.millis) == (400, 400.0)
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
    put_off = replace(rest, deferral=Deferral(due=datetime(2024, 1, 1, tzinfo=UTC)))
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


NEW = WindowSizer(500.0)
RIGHT = WindowSizer(500.0, positions=1000.0, millis=10.0, overhead_millis=100.0, error=0.04)
WRONG = WindowSizer(500.0, positions=1000.0, millis=10.0, overhead_millis=100.0, error=1.0)
SHARED = replace(WRONG, hands_over=True)


@pytest.mark.parametrize(
    ("pace", "backlog", "lasts", "work"),
    [
        (NEW, 10**9, 2500.0, FIRST_POSITIONS),  # a first window measures
        (NEW, 10**6, 1000.0, FIRST_POSITIONS),  # and is short where there is little to read
        (WindowSizer(60_000.0), 10**9, 60_000.0, FIRST_POSITIONS),  # no window is shorter than asked for
        (RIGHT, 0, 500.0, 0),  # with nothing to do a window is short
        (RIGHT, 2000.0, 2260.0, 2000.0),  # what is known well is done in one window
        (RIGHT, 10_000.0, 5000.0, 5000.0),  # what is known less well is done in several
        (WRONG, 10_000.0, 1000.0, 1000.0),  # where forecasts are wrong windows are short
        (SHARED, 10_000.0, *[sqrt(10_000.0 * 100.0 / LEAST_ERROR)] * 2),  # unless slots hand work over
        (WRONG, 600.0, 600.0, 600.0),  # and no slot waits for what takes longer than it should
        (RIGHT, 1e9, LONGEST_MILLIS, LONGEST_MILLIS),  # in a large backlog windows are long
    ],
)
def test_the_next_window(pace, backlog, lasts, work):
    assert pace.next(backlog) == pytest.approx(WindowLength(lasts, work))


def test_windows_that_are_delivered_while_the_next_one_runs_are_short():
    """Slots have nothing to do while the last one is delivered."""
    exact = replace(RIGHT, hands_over=True)
    assert exact.next(10_000.0, is_delivered=True) == pytest.approx(WindowLength(1000.0, 1000.0))


def test_windows_get_shorter_as_the_backlog_does():
    lengths = [WRONG.next(backlog).lasts_millis for backlog in (1e6, 1e5, 2e4, 5e3, 1e3)]
    assert lengths == sorted(lengths, reverse=True)
    assert (lengths[0], lengths[-1]) == (LONGEST_MILLIS, 500.0)


@pytest.mark.parametrize(
    ("pace", "positions", "millis", "usual"),
    [
        (RIGHT, 0, 100.0, 0.01),  # a window that read nothing shows nothing
        (RIGHT, 100, 0.0, 0.01),  # nor does one that took no time
        (RIGHT, 900, 27.0, 0.02),  # what was read counts as much as all before that is remembered
        (NEW, 0, 0.0, None),  # nothing is usual before anything was measured
        (NEW, 1000, 10.0, 0.01),
    ],
)
def test_what_is_known_after_a_window(pace, positions, millis, usual):
    assert pace.after(positions, millis).usual == pytest.approx(usual)


@pytest.mark.parametrize(
    ("expected", "took", "error"),
    [
        ([100.0, 200.0], [300.0, 600.0], LEAST_ERROR),  # all were slower alike
        ([100.0, 100.0], [50.0, 150.0], 0.5),
        ([100.0, 100.0], [0.0, 500.0], 1.0),
        ([1.0], [9.0], RIGHT.error),  # a slot alone waits for no other
    ],
)
def test_a_forecast_is_as_wrong_as_slots_were_off(expected, took, error):
    assert RIGHT.after_forecast(expected, took).error == pytest.approx(error)


def test_a_wrong_forecast_is_forgotten_by_and_by():
    pace, errors = WRONG, []
    for _ in range(8):
        pace = pace.after_forecast([1.0, 1.0], [1.0, 1.0])
        errors.append(pace.error)
    assert errors == sorted(errors, reverse=True)
    assert (errors[0], errors[-1]) == (0.5, LEAST_ERROR)


def test_what_a_window_costs_is_believed_at_once_where_it_is_less_and_slowly_where_it_is_more():
    assert RIGHT.after_window(1040.0, 1000.0).overhead_millis == 40.0
    assert RIGHT.after_window(9000.0, 1000.0).overhead_millis == 125.0


@given(st.integers(0, 10**15), st.floats(0, 1e9), st.floats(0, 1e12), st.floats(0.0, 1.0))
def test_every_window_ends_and_is_given_something(positions, millis, backlog, off):
    pace = NEW.after(positions, millis).after_forecast([1.0, 1.0], [1.0 - off, 1.0 + off])
    length = pace.next(backlog)
    assert 500.0 <= length.lasts_millis <= 2 * LONGEST_MILLIS
    assert length.work_millis > 0 or not backlog
