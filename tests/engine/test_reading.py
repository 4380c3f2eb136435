"""Reading blocks in a window: split at the deadline, left where it came too late, and never nothing at all."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit import Block, InputPort, OutputPort, SplittableOperator
from dagkit.engine.assignment import Left
from dagkit.engine.live import bind_output, of_items
from dagkit.engine.reading import Deadline, Reading
from dagkit.ranges import OffsetRange, OffsetRestrictionTracker, RestrictionTracker, WorkUnclaimed

WIRE = 7


class Hooked(SplittableOperator[Block]):
    """Reads numbers, and calls back after each claim."""

    kind = "cast.hooked/1"
    served_by_engine = True
    blocks = InputPort(Block)
    numbers = OutputPort(int)
    after_claim: Callable[[int], None] = lambda _: None
    stops_at: int | None = None

    def process(self, element: Block, tracker: RestrictionTracker[OffsetRange, int]) -> Iterator[int]:
        position = element.start
        while position != self.stops_at and tracker.try_claim(position):
            self.after_claim(position)
            yield position
            position += 1


@dataclass
class Slot:
    """One slot that reads, without an end to its time until `over` says so."""

    stops_at: int | None = None
    split_at: frozenset[int] = frozenset()
    read: list[int] = field(default_factory=list)
    flushed: int = 0

    def __post_init__(self) -> None:
        self.reading = Reading(None, lambda: None, self._flush)
        self.operator = Hooked(after_claim=self._claimed, stops_at=self.stops_at)
        bind_output(self.operator, "numbers", [of_items(self.read.append)])
        self.take = self.reading.reader(self.operator, WIRE)

    def over(self) -> None:
        """The deadline has come."""
        self.reading.deadline._ends = 0.0
        self.reading.deadline.split()

    def _claimed(self, position: int) -> None:
        if position in self.split_at:
            self.over()

    def _flush(self) -> None:
        self.flushed += 1


def test_a_block_is_read_to_its_end() -> None:
    slot = Slot()
    slot.take(Block(1, "a", 3, 6))
    assert (slot.read, slot.reading.left, slot.reading.positions, slot.flushed) == ([3, 4, 5], [], 3, 1)


def test_what_is_not_claimed_at_the_deadline_is_left() -> None:
    slot = Slot(split_at=frozenset({4}))
    slot.take(Block(1, "a", 3, 9))
    assert slot.read == [3, 4]
    (left,) = slot.reading.left
    assert (left.wire, left.block, left.done_positions) == (WIRE, Block(1, "a", 5, 9), 2)
    assert left.done_millis > 0
    assert slot.reading.positions == 2


def test_a_block_that_comes_too_late_is_left_whole() -> None:
    slot = Slot(split_at=frozenset({4}))
    slot.take(Block(1, "a", 3, 5))
    slot.take(Block(2, "a", 5, 9))
    assert slot.read == [3, 4]
    assert slot.reading.left == [Left(WIRE, Block(2, "a", 5, 9))]


def test_a_window_begins_one_block_however_late_it_is() -> None:
    slot = Slot()
    slot.over()
    slot.take(Block(1, "a", 3, 5))
    slot.take(Block(2, "a", 5, 9))
    assert slot.read == [3, 4]
    assert slot.reading.left == [Left(WIRE, Block(2, "a", 5, 9))]


def test_what_was_not_begun_is_not_split() -> None:
    deadline, tracker = Deadline(None), OffsetRestrictionTracker(OffsetRange(3, 9))
    deadline.watch(tracker)
    deadline.split()
    assert tracker.current_restriction() == OffsetRange(3, 9)
    tracker.try_claim(3)
    deadline.split()
    deadline.split()
    assert tracker.current_restriction() == OffsetRange(3, 4)
    assert deadline.residual() == OffsetRange(4, 9)


def test_what_is_not_watched_any_more_is_not_split() -> None:
    deadline, tracker = Deadline(None), OffsetRestrictionTracker(OffsetRange(3, 9))
    deadline.watch(tracker)
    tracker.try_claim(3)
    assert deadline.residual() is None
    deadline.split()
    assert tracker.current_restriction() == OffsetRange(3, 9)


def test_the_watchdog_splits_what_begins_after_the_deadline() -> None:
    deadline, tracker = Deadline(0.0), OffsetRestrictionTracker(OffsetRange(0, 2**40))
    deadline.watch(tracker)
    position = 0
    while tracker.try_claim(position):
        position += 1
    deadline.end()
    assert deadline.residual() == OffsetRange(position, 2**40)


def test_the_watchdog_ends_with_its_window() -> None:
    deadline = Deadline(1e9)
    deadline.watch(OffsetRestrictionTracker(OffsetRange(0, 9)))
    assert deadline._watchdog is not None
    deadline.end()
    deadline._watchdog.join(10)
    assert not deadline._watchdog.is_alive()


def test_what_comes_from_another_operator_is_read_whole() -> None:
    slot = Slot()
    slot.over()
    read = slot.reading.reader(slot.operator, None)
    read(Block(1, "a", 0, 2))
    read(Block(2, "a", 2, 4))
    assert (slot.read, slot.reading.left) == ([0, 1, 2, 3], [])


def test_whoever_stops_with_work_unclaimed_is_told() -> None:
    slot = Slot(stops_at=5)
    with pytest.raises(WorkUnclaimed):
        slot.take(Block(1, "a", 3, 9))
    assert slot.reading.element == Block(1, "a", 3, 9)


@given(
    lengths=st.lists(st.integers(0, 8), min_size=1, max_size=8),
    split_at=st.frozensets(st.integers(0, 64), max_size=6),
)
def test_window_by_window_every_position_is_read_once(lengths: list[int], split_at: frozenset[int]) -> None:
    starts = [sum(lengths[:number]) for number in range(len(lengths))]
    waiting = [
        Block(n, "a", start, start + length) for n, (start, length) in enumerate(zip(starts, lengths, strict=True))
    ]
    read: list[int] = []
    windows = 0
    while waiting:
        slot = Slot(split_at=split_at)
        for block in waiting:
            slot.take(block)
        slot.reading.deadline.end()
        read += slot.read
        left: list[Any] = [each.block for each in slot.reading.left]
        assert sum(block.end - block.start for block in waiting) == slot.reading.positions + sum(
            block.end - block.start for block in left
        )
        waiting, windows = left, windows + 1
        assert windows <= 2 * sum(lengths) + len(lengths)
    assert sorted(read) == list(range(sum(lengths)))
