"""The backlog is counted while blocks come and go. It equals a recount, and its cost does not depend on the queue."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from dagkit.api.stats import Backlog
from dagkit.engine.parts.run_part import Look
from dagkit.engine.program.address import Address
from dagkit.engine.work.cost import CostEstimate
from dagkit.engine.work.item import WorkItem
from dagkit.engine.work.queue import WorkQueue
from dagkit.engine.work.schedule import WindowSchedule
from dagkit.engine.work.split import Allocation, BacklogCount, SplitPlanner, all_in, anywhere
from dagkit.ranges import OFFSET_INFINITY, OFFSET_UNKNOWN
from dagkit.scaling.policy import PIECE
from tests.engine.cast import Desk, numbers_collected
from tests.engine.items import calls_of, waiting
from tests.examples import examples

INTO = Address("reader.blocks")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
LENGTHS = st.sampled_from((-1, 0, 1, PIECE - 1, PIECE, 2 * PIECE - 1, 2 * PIECE, 5 * PIECE))


def block(number: int, length: int) -> WorkItem:
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
        self.queue.add(block(self.found + number, length) for number, length in enumerate(lengths))
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
        self.queue.put_back(replace(rest, due=due) for rest in rests)

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
        due = [item for item in self.queue.all() if item.due is None or item.due <= NOW]
        in_flight = [item for allocation in self.taken for item in all_in(allocation)]
        found = self.queue.backlogs({INTO: even}, NOW, [BacklogCount.by_input(in_flight, NOW)])
        assert found == ({INTO: recounted([*due, *in_flight])} if due or in_flight else {})


TestCounted = pytest.mark.slow(Counted.TestCase)
TestCounted.settings = settings(max_examples=examples(60), stateful_step_count=25)


def test_a_range_whose_end_is_not_known_is_one_piece_without_positions():
    unknown = replace(block(1, 1), end=OFFSET_UNKNOWN)
    queue = WorkQueue.of([block(0, PIECE), unknown])
    backlog = queue.backlogs({INTO: even}, NOW)[INTO]
    assert (backlog.blocks, backlog.positions, backlog.pieces, backlog.endless) == (2, PIECE, 2, 0)
    queue.take({INTO: 1}, {INTO: float(10 * PIECE)}, SplitPlanner())
    assert queue.positions == 0


def test_asking_costs_the_same_however_many_blocks_wait():
    short, long = (WorkQueue.of(block(number, 2 * PIECE) for number in range(count)) for count in (10, 300))
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
