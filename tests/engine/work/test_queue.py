"""The block queue allocates work so that all slots are busy, and nothing is lost or doubled."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from dagkit.api.stats import Backlog
from dagkit.engine.parts.run_part import Look
from dagkit.engine.program.address import Address
from dagkit.engine.work.cost import CostEstimate
from dagkit.engine.work.item import Deferral, DoneBefore, WorkItem
from dagkit.engine.work.queue import InputBacklog, WorkQueue
from dagkit.engine.work.schedule import WindowSchedule
from dagkit.engine.work.split import Allocation, BacklogCount, SplitPlanner, all_in, anywhere, place_in
from dagkit.ranges import OFFSET_INFINITY, OFFSET_UNKNOWN
from dagkit.scaling.policy import PIECE
from tests.engine.cast import Desk, numbers_collected
from tests.engine.items import calls_of, waiting
from tests.examples import examples

INTO = Address("reader.blocks")


def queue_of(*lengths: int) -> WorkQueue:
    return WorkQueue.of(waiting(n, 0, OFFSET_INFINITY if length < 0 else length) for n, length in enumerate(lengths))


def stretches(queue: WorkQueue) -> list[tuple[int, int, int]]:
    return [(each.number[0], each.start, each.end) for each in queue.all()]


def positions_in(queue: WorkQueue) -> int:
    return sum(pending.positions for pending in queue.pending().values())


def take(queue: WorkQueue, slots: int, each: float) -> Allocation:
    """A deal of whole blocks; as long as nothing is measured, positions count."""
    return queue.take({INTO: slots}, {INTO: each}, SplitPlanner())


def slot_work(allocation: Allocation) -> list[list[int]]:
    return [[each.number[0] for each in hand] for hand in allocation[INTO]]


def promised(allocation):
    return WindowSchedule(allocation, 0.0, CostEstimate()).promise(last=False).deal


@pytest.mark.parametrize(
    ("lengths", "slots", "each", "allocated", "left"),
    [
        ([9], 3, 100, [[0], [], []], 0),
        ([1, 1, 1, 1], 2, 100, [[0, 2], [1, 3]], 0),
        ([1, 1, 1, 3], 2, 100, [[3], [0, 1, 2]], 0),  # the longest goes first, to the slot with least
        ([5, 5, 5, 5], 2, 5, [[0], [1]], 2),  # no more than a window can read
        ([50, 50, 50], 2, 1, [[0], [1]], 1),  # every slot gets a block, however long
        ([-1, -1], 2, 1, [[0], [1]], 0),  # sources without an end lie in different hands
        ([0, 0, 0], 2, 1, [[0, 2], [1]], 0),  # empty blocks are dealt like others
        ([0, 0, 1], 2, 1, [[1, 2], [0]], 0),  # what takes no time lies in different hands
        ([-1, -1, 5], 2, 100, [[2, 1], [0]], 0),  # what has no end does, too, behind all else
        ([], 2, 9, [[], []], 0),
    ],
)
def test_an_allocation(lengths, slots, each, allocated, left):
    queue = queue_of(*lengths)
    assert (slot_work(take(queue, slots, each)), len(queue)) == (allocated, left)


lengths = st.lists(st.integers(-1, 40), max_size=30)


@given(lengths, st.integers(1, 5), st.floats(0, 50))
def test_what_is_allocated_and_what_waits_are_all_and_no_slot_is_idle_while_another_has_two(lengths, slots, each):
    queue = queue_of(*lengths)
    allocated = slot_work(take(queue, slots, each))
    waits = [item.number[0] for item in queue.all()]
    assert sorted([number for hand in allocated for number in hand] + waits) == list(range(len(lengths)))
    assert waits == sorted(waits)
    assert all(allocated) or max(map(len, allocated)) <= 1


@given(lengths, st.integers(1, 5))
def test_no_slot_has_more_than_the_others_by_more_than_its_last_block(lengths, slots):
    allocated = take(queue_of(*lengths), slots, 1e9)[INTO]
    loads = [sum(max(1, each.length) for each in hand) for hand in allocated]
    longest = max([1, *(each.length for hand in allocated for each in hand)])
    assert max(loads) - min(loads) <= longest


@given(lengths, st.integers(1, 5), st.floats(0, 50))
def test_promised_work_is_allocated_again(lengths, slots, each):
    first, second = queue_of(*lengths), queue_of(*lengths)
    allocation = take(first, slots, each)
    assert second.take_these(promised(allocation), {INTO: slots}) == allocation
    assert second.all() == first.all()


@given(lengths, st.integers(1, 5), st.integers(1, 5))
def test_promised_work_is_allocated_whole_to_fewer_or_more_slots(lengths, before, now):
    first, second = queue_of(*lengths), queue_of(*lengths)
    allocation = take(first, before, 10)
    again = second.take_these(promised(allocation), {INTO: now})
    assert len(again[INTO]) == now
    assert sorted(chain.from_iterable(slot_work(again))) == sorted(chain.from_iterable(slot_work(allocation)))
    assert second.all() == first.all()


def test_blocks_of_one_number_and_two_files_are_distinguished():
    blocks = [waiting(0, 0, 5, path="a"), waiting(0, 0, 5, path="b")]
    first, second = WorkQueue.of(blocks), WorkQueue.of(blocks)
    allocation = take(first, 1, 1)
    assert [each.source for each in second.take_these(promised(allocation), {INTO: 1})[INTO][0]] == ["a"]
    assert [each.source for each in second.all()] == ["b"]


def test_what_a_window_left_comes_before_what_was_never_begun():
    queue = queue_of(4, 4, 4)
    taken = take(queue, 1, 5)
    assert slot_work(taken) == [[0, 1]]
    queue.put_back([waiting(1, 2, 4), waiting(0, 3, 4)])
    assert stretches(queue) == [(0, 3, 4), (1, 2, 4), (2, 0, 4)]


def test_each_input_has_a_queue_of_its_own():
    queue = WorkQueue.of([waiting(0, 0, 5), waiting(1, 0, 5, into="other.blocks")])
    allocation = queue.take({INTO: 1, "other.blocks": 2}, {INTO: 1, "other.blocks": 1}, SplitPlanner())
    assert [[len(hand) for hand in allocation[into]] for into in (INTO, "other.blocks")] == [[1], [1, 0]]


def test_sources_without_an_end_take_turns():
    queue = queue_of(-1, -1, 5)
    (first,) = take(queue, 1, 0)[INTO]
    queue.put_back(replace(each, done=DoneBefore(turn=1)) for each in first)
    assert [each.number[0] for each in queue.all()] == [1, 2, 0]


def test_a_deferred_item_costs_the_same_to_wake_however_many_are_due():
    def calls(count: int) -> int:
        queue = WorkQueue(deferred=[replace(waiting(n, 0, 5), deferral=Deferral(due=NOW)) for n in range(count)])
        return calls_of(lambda: queue.wake(NOW, lambda _: True))

    assert calls(400) < 5 * calls(100)


def test_what_was_cut_apart_and_not_begun_waits_in_one_again_and_what_its_operator_divided_does_not():
    parts = [waiting(1, 5, 10), waiting(1, 0, 5), waiting(2, 0, 5), waiting(1, 12, 17)]
    for cuts, waits in (
        ({place_in(waiting(1, 0, 9), at) for at in (5, 11)}, [(1, 0, 10), (1, 12, 17), (2, 0, 5)]),
        (set(), [(1, 0, 5), (1, 5, 10), (1, 12, 17), (2, 0, 5)]),
    ):
        queue = queue_of()
        queue.put_back(parts, cuts)
        assert stretches(queue) == waits


def test_a_promised_stretch_may_be_of_several_parts():
    queue = WorkQueue.of([waiting(1, 0, 5), waiting(0, 0, 3), waiting(1, 5, 10), waiting(1, 10, 15)])
    (hand,) = queue.take_these({INTO: [[((1,), 2, 12)]]}, {INTO: 1})[INTO]
    assert [(each.start, each.end) for each in hand] == [(2, 12)]
    assert stretches(queue) == [(1, 0, 2), (0, 0, 3), (1, 12, 15)]
    with pytest.raises(AssertionError, match="does not wait"):
        queue.take_these({INTO: [[((1,), 1, 13)]]}, {INTO: 1})


CUTTER = SplitPlanner(CostEstimate(1.0), {INTO: anywhere})


def test_the_end_of_a_line_is_left_to_the_next_window_in_part():
    queue = queue_of(1000)
    (hand,) = queue.take({INTO: 1}, {INTO: 300.0}, CUTTER)[INTO]
    assert [(each.start, each.end) for each in hand] == [(0, 300)]
    assert stretches(queue) == [(0, 300, 1000)]


def test_what_is_given_besides_comes_after_what_is_to_be_done():
    queue = queue_of(1000)
    allocation = queue.take({INTO: 2}, {INTO: 200.0}, CUTTER, besides=1.0)
    hands = [[(each.start, each.end) for each in hand] for hand in allocation[INTO]]
    assert hands == [[(0, 200), (400, 600)], [(200, 400), (600, 800)]]
    assert positions_in(queue) == 200


def test_of_work_without_an_end_that_waits_which_a_window_saw_and_did_not_read():
    followed = replace(waiting(0, 10, OFFSET_INFINITY), done=DoneBefore(turn=1, seen_end=25))
    queue = WorkQueue.of([followed, waiting(1, 0, 5), waiting(2, 3, OFFSET_INFINITY)])
    assert queue.pending() == {INTO: InputBacklog(blocks=3, positions=20, endless=2)}
    assert queue.backlogs({}, NOW)[INTO].positions == 5, "a policy does not know how to work it off sooner"
    take(queue, 3, 100)
    assert queue.pending() == {INTO: InputBacklog(0, 0, 0)}
    queue.put_back([followed.part(20, OFFSET_INFINITY)])
    assert positions_in(queue) == 5


def test_a_source_without_an_end_waits_as_far_as_an_input_operator_sees_it_also_while_it_is_deferred():
    followed = replace(waiting(0, 10, OFFSET_INFINITY), source="a", done=DoneBefore(turn=1, seen_end=12))
    queue = WorkQueue.of([followed, replace(followed, source="b", deferral=Deferral(due=NOW))])
    elsewhere = [replace(followed, source="c"), waiting(3, 0, 5)]
    grown = [queue.see(ends, elsewhere) for ends in ({"a": 11, "b": 10}, {"a": 15, "b": 13, "c": 13}, {"b": 9})]
    assert grown == [{}, {INTO: 3 + 1 + 1}, {}]
    assert queue.pending() == {INTO: InputBacklog(blocks=1, positions=5, endless=1)}, "it cannot become shorter"
    queue.see({"b": 14})
    assert queue.pending() == {INTO: InputBacklog(blocks=2, positions=9, endless=2)}


@given(lengths, st.data())
def test_what_waits_is_counted_as_it_comes_and_goes(lengths, data):
    queue = queue_of(*lengths)
    for _ in range(3):
        allocated = take(queue, data.draw(st.integers(1, 3)), data.draw(st.floats(0, 50)))[INTO]
        back = [each for hand in allocated for each in hand if data.draw(st.booleans())]
        queue.put_back(back)
        assert positions_in(queue) == sum(each.length for each in queue.all())
        assert queue.millis(INTO, CostEstimate(2.0)) == pytest.approx(2 * positions_in(queue))
        assert len(queue) == len(queue.all())


NOW = datetime(2026, 1, 1, tzinfo=UTC)
LENGTHS = st.sampled_from((-1, 0, 1, PIECE - 1, PIECE, 2 * PIECE - 1, 2 * PIECE, 5 * PIECE))


def one_block(number: int, length: int) -> WorkItem:
    return waiting(number, 0, OFFSET_INFINITY if length < 0 else length)


def even(item: WorkItem, position: int) -> int | None:
    """Only blocks with an even number may be cut."""
    return position if item.number[0] % 2 == 0 else None


def recounted(items: Sequence[WorkItem]) -> Backlog:
    """The backlog of items in reading order; the first long one decides whether they are cut."""
    lengths = [item.length for item in items]
    long = [item for item in items if item.length >= 2 * PIECE]
    is_cut = bool(long) and long[0].number[0] % 2 == 0
    return Backlog(
        blocks=len(items),
        positions=sum(lengths),
        pieces=sum(max(1, length // PIECE) for length in lengths) if is_cut else len(items),
        endless=sum(not item.has_end for item in items),
    )


class Counted(RuleBasedStateMachine):
    """Blocks that are found, taken, promised, returned and deferred in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = WorkQueue()
        self.found = 0
        self.taken: list[Allocation] = []

    @rule(lengths=st.lists(LENGTHS, max_size=5))
    def find(self, lengths: list[int]) -> None:
        self.queue.add(one_block(self.found + number, length) for number, length in enumerate(lengths))
        self.found += len(lengths)

    @rule(slots=st.integers(1, 3), positions=st.integers(0, 6 * PIECE))
    def take(self, slots: int, positions: int) -> None:
        cutter = SplitPlanner(near={INTO: anywhere})
        self.taken.append(self.queue.take({INTO: slots}, {INTO: float(positions)}, cutter))

    @rule(read=st.integers(0, 3 * PIECE), seconds=st.sampled_from((None, -1, 1)))
    def end_window(self, read: int, seconds: int | None) -> None:
        if not self.taken:
            return
        rests = [
            item.part(min(item.start + read, item.end - 1), item.end)
            for item in all_in(self.taken.pop(0))
            if item.start < item.end
        ]
        due = None if seconds is None else NOW + timedelta(seconds=seconds)
        self.queue.put_back(replace(rest, deferral=Deferral(due=due)) for rest in rests)

    @rule()
    def repeat_a_promised_window(self) -> None:
        if not self.taken:
            return
        allocation = self.taken.pop()
        promise = WindowSchedule(allocation, 0.0, CostEstimate()).promise(last=False)
        self.queue.put_back(all_in(allocation))
        slots = {into: len(slot_work) for into, slot_work in allocation.items()}
        self.taken.append(self.queue.take_these(promise.deal, slots))

    @rule()
    def wake(self) -> None:
        self.queue.wake(NOW, lambda _: True)

    @invariant()
    def equals_a_recount(self) -> None:
        due = [item for item in self.queue.all() if item.deferral.due is None or item.deferral.due <= NOW]
        in_flight = [item for allocation in self.taken for item in all_in(allocation)]
        found = self.queue.backlogs({INTO: even}, NOW, [BacklogCount.by_input(in_flight, NOW)])
        assert found == ({INTO: recounted([*due, *in_flight])} if due or in_flight else {})


TestCounted = pytest.mark.slow(Counted.TestCase)
TestCounted.settings = settings(max_examples=examples(60), stateful_step_count=25)


def test_a_range_whose_end_is_not_known_is_one_piece_without_positions():
    unknown = replace(one_block(1, 1), end=OFFSET_UNKNOWN)
    queue = WorkQueue.of([one_block(0, PIECE), unknown])
    backlog = queue.backlogs({INTO: even}, NOW)[INTO]
    assert (backlog.blocks, backlog.positions, backlog.pieces, backlog.endless) == (2, PIECE, 2, 0)
    queue.take({INTO: 1}, {INTO: float(10 * PIECE)}, SplitPlanner())
    assert positions_in(queue) == 0


def test_asking_costs_the_same_however_many_blocks_wait():
    short, long = (WorkQueue.of(one_block(number, 2 * PIECE) for number in range(count)) for count in (10, 300))
    near = {INTO: anywhere}
    assert long.backlogs(near, NOW)[INTO].blocks == 300
    assert long.backlogs({}, NOW)[INTO].pieces == 300, "where nothing can be cut, a block is one piece"
    assert calls_of(lambda: long.backlogs(near, NOW)) == calls_of(lambda: short.backlogs(near, NOW))


def test_asking_again_costs_the_same_however_many_blocks_a_discovery_has(tmp_path):
    def calls(count: int) -> int:
        inputs = Desk(tmp_path / str(count), numbers_collected(((1,) * count,))).loop().parts.inputs
        inputs.begin()
        inputs.perform(Look())
        assert len(inputs.found) == 1

        def ask() -> list[int]:
            return [backlog.blocks for by_input in inputs.backlog_counts() for backlog in by_input.values()]

        assert ask() == [count]
        return calls_of(ask)

    assert calls(10) == calls(300)
