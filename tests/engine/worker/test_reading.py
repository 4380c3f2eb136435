"""Reading blocks in a window: split at the deadline, left where it came too late, and never nothing at all."""

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit import Batch, Block, InputPort, OutputPort, SplittableOperator
from dagkit.api.stats import WorkProgress
from dagkit.engine.program.address import Address
from dagkit.engine.program.entrances import operator_of
from dagkit.engine.program.failures import OperatorFailed
from dagkit.engine.work.elements import Elements
from dagkit.engine.work.item import WorkItem
from dagkit.engine.worker.instances import GATHERED_ITEMS, bind_output, of_items
from dagkit.engine.worker.protocol import WindowTask
from dagkit.engine.worker.reading import Reading
from dagkit.engine.worker.work_in_hand import Speed
from dagkit.ranges import OFFSET_INFINITY, OffsetRange, OffsetRestrictionTracker, RestrictionTracker, WorkUnclaimed
from tests.engine.items import block_in, item_of, waiting
from tests.patience import within


class Hooked(SplittableOperator[Block]):
    """Reads numbers, and calls back after each claim."""

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


class Batched(Hooked):
    def process(self, element: Block, tracker: RestrictionTracker[OffsetRange, int]) -> Iterator[Any]:
        for number in super().process(element, tracker):
            yield Batch.of([number])


INTO = Address("hooked.blocks")


def reading_of(elements: Elements, *given: WorkItem | Block, task: WindowTask | None = None, **known: Any) -> Reading:
    """A slot's work on these, in window 7 unless a task says otherwise."""
    work = [each if isinstance(each, WorkItem) else item_of(INTO, each, each.path) for each in given]
    return Reading(elements, 3, task or WindowTask(7), work, **known)


def elements_of(operator: Hooked, take: Callable[[Any], Any] = lambda _: None) -> Elements:
    """The elements of an operator, and what takes each number that it reads."""
    bind_output(operator, "numbers", [of_items(take)])
    return Elements(INTO, operator, Block)


@dataclass
class Slot:
    """One slot that reads, without an end to its time until `over` says so."""

    stops_at: int | None = None
    split_at: frozenset[int] = frozenset()
    is_over: bool = False
    """Whether its time is over before it began."""
    read: list[int] = field(default_factory=list)
    flushed: int = 0

    def __post_init__(self) -> None:
        self.elements = elements_of(Hooked(after_claim=self._claimed, stops_at=self.stops_at), self.read.append)

    def work(self, *given: WorkItem | Block, arriving: Sequence[Block] = ()) -> Reading:
        """Work through what it is given, and what arrives besides."""
        self.reading = reading_of(self.elements, *given, flush=self._flush)
        for each in arriving:
            self.reading.take(each)
        for _ in self.reading.work():
            if self.is_over:
                self.over()
        return self.reading

    def over(self) -> None:
        self.reading.in_hand.deadline._ends = 0.0
        self.reading.in_hand.deadline.split()

    def _claimed(self, position: int) -> None:
        if position in self.split_at:
            self.over()

    def _flush(self) -> None:
        self.flushed += 1


def left(reading: Reading) -> list[Block]:
    return [block_in(each) for each in reading.done.left]


def test_a_block_is_read_to_its_end():
    slot = Slot()
    reading = slot.work(Block(1, "a", 3, 6))
    assert (slot.read, reading.done.left, reading.done.positions, slot.flushed) == ([3, 4, 5], [], 3, 1)


def test_what_is_not_claimed_at_the_deadline_is_left():
    slot = Slot(split_at=frozenset({4}))
    reading = slot.work(Block(1, "a", 3, 9))
    assert (slot.read, left(reading)) == ([3, 4], [Block(1, "a", 5, 9)])
    assert reading.done.positions == reading.done.left[0].done.positions == 2
    assert reading.done.left[0].done.millis > 0


@pytest.mark.parametrize("late", [{"split_at": frozenset({4})}, {"is_over": True}])
def test_a_block_that_comes_too_late_is_left_whole_but_a_window_begins_one_however_late_it_is(late):
    slot = Slot(**late)
    reading = slot.work(Block(1, "a", 3, 5), Block(2, "a", 5, 9))
    assert (slot.read, left(reading)) == ([3, 4], [Block(2, "a", 5, 9)])


def test_what_comes_from_another_operator_is_work_like_any_other():
    slot = Slot(split_at=frozenset({1}))
    reading = slot.work(arriving=[Block(1, "a", 0, 4), Block(2, "a", 4, 6)])
    assert slot.read == [0, 1]
    assert [(each.number, each.source, block_in(each)) for each in reading.done.left] == [
        ((7, 3, 0), "a", Block(1, "a", 2, 4)),
        ((7, 3, 1), "a", Block(2, "a", 4, 6)),
    ]


def test_what_has_no_end_comes_last_and_waits_for_those_that_had_no_turn():
    slot = Slot(split_at=frozenset({5, 40}))
    endless, other = (waiting(number, 40, OFFSET_INFINITY, INTO, path) for number, path in ((1, "a"), (3, "c")))
    first = slot.work(endless, Block(2, "b", 5, 6))
    assert (slot.read, left(first)) == ([5], [Block(1, "a", 40, OFFSET_INFINITY)])
    (again,) = slot.work(*first.done.left).done.left
    assert (slot.read, again.start, again.done.turn) == ([5, 40], 41, 7)
    assert [each.number for each in slot.work(again, other).done.left] == [(3,), (1,)]
    assert slot.read == [5, 40, 40]


@pytest.mark.slow
def test_what_has_no_end_shares_the_window():
    work = [waiting(n, 0, OFFSET_INFINITY, INTO) for n in range(4)]
    reading = reading_of(Slot().elements, *work, task=WindowTask(1, lasts_millis=2000.0))
    for _ in reading.work():
        pass
    assert [each.number for each in reading.done.left] == [(0,), (1,), (2,), (3,)]
    assert all(each.start > 0 for each in reading.done.left)


@pytest.mark.parametrize(
    ("operator", "count", "seen"),
    [
        (Batched(), 3, [1, 2, 3, 3]),
        (Hooked(), 2 * GATHERED_ITEMS + 1, [GATHERED_ITEMS, 2 * GATHERED_ITEMS, 2 * GATHERED_ITEMS + 1]),
    ],
    ids=["after each batch", "after as many items as a batch has"],
)
def test_what_was_made_may_go_on_before_its_block_is_done(operator, count, seen):
    read: list[int] = []
    reading = reading_of(elements_of(operator, read.append), Block(1, "a", 0, count))
    assert [len(read) for _ in reading.work()] == seen


def test_an_operator_that_stops_with_work_unclaimed_is_reported():
    slot = Slot(stops_at=5)
    with pytest.raises(OperatorFailed) as raised:
        slot.work(Block(1, "a", 3, 9))
    failure = raised.value.failure
    assert (failure.operator, failure.window_id, failure.slot) == ("hooked", 7, 3)
    assert raised.value.code == "work-unclaimed"
    assert re.search(r"Block\(block_id=1, path='a'.*\[5, 9\) was never claimed", failure.message)
    assert raised.value.help.startswith("claim until a claim is refused")
    assert isinstance(raised.value.__cause__, WorkUnclaimed)
    assert slot.reading.now.element == Block(1, "a", 3, 9)


@given(
    lengths=st.lists(st.integers(0, 8), min_size=1, max_size=8),
    split_at=st.frozensets(st.integers(0, 64), max_size=6),
)
def test_window_by_window_every_position_is_read_once(lengths, split_at):
    ends = [sum(lengths[: number + 1]) for number in range(len(lengths))]
    waits = [waiting(n, end - length, end, INTO) for n, (end, length) in enumerate(zip(ends, lengths, strict=True))]
    read: list[int] = []
    windows = 0
    while waits:
        slot = Slot(split_at=split_at)
        reading = slot.work(*waits)
        read += slot.read
        assert sum(each.length for each in waits) == reading.done.positions + sum(
            each.length for each in reading.done.left
        )
        waits, windows = reading.done.left, windows + 1
        assert windows <= 2 * sum(lengths) + len(lengths)
    assert sorted(read) == list(range(sum(lengths)))


def test_unfinished_work_reports_how_far_it_has_come_since_it_began():
    """Not since its last window: progress would fall back with each window."""
    first = Slot(split_at=frozenset({3})).work(Block(1, "a", 0, 10))
    second = Slot(split_at=frozenset({6})).work(*first.done.left)
    endless = Slot(split_at=frozenset({3})).work(Block(1, "a", 0, OFFSET_INFINITY))
    progress = [
        first.done.underway,
        second.done.underway,
        Slot().work(*second.done.left).done.underway,
        endless.done.underway,
    ]
    assert progress == [
        [WorkProgress("a", 4.0, 6.0)],
        [WorkProgress("a", 7.0, 3.0)],
        [],
        [WorkProgress("a", 4.0, None)],
    ]
    assert (second.done.underway[0].fraction, endless.done.underway[0].fraction) == (0.7, None)


class Torn(OffsetRestrictionTracker):
    def try_split(self, fraction_of_remainder: float) -> Any:
        raise ValueError("torn")


class Tearing(Hooked):
    """Reads without an end, and claims only the first numbers."""

    claims: int = 0
    sends: Callable[[int], Any] = int

    def tracker(self, element: Block, restriction: OffsetRange) -> Torn:
        return Torn(restriction)

    def process(self, element: Block, tracker: RestrictionTracker[OffsetRange, int]) -> Iterator[Any]:
        for number in range(3 * GATHERED_ITEMS):
            if number < self.claims and not tracker.try_claim(number):
                return
            self.after_claim(number)
            yield self.sends(number)
        raise AssertionError("its work has no end")


@pytest.mark.parametrize(
    ("end", "claims", "sends", "reached"),
    [
        (9, OFFSET_INFINITY, int, 5),  # at the next claim
        (OFFSET_INFINITY, OFFSET_INFINITY, int, 5),
        (OFFSET_INFINITY, 6, lambda number: Batch.of([number]), 5),  # at the next batch
        (OFFSET_INFINITY, 6, int, GATHERED_ITEMS - 1),  # at the next items
    ],
)
def test_work_fails_soon_after_its_tracker_raised_at_the_deadline(end, claims, sends, reached):
    """The watchdog asks it on a thread of its own, which must not end: it has all deadlines of the slot."""
    numbers: list[int] = []

    def over(number: int) -> None:
        numbers.append(number)
        if number == 5:
            watchdog.submit(reading.in_hand.deadline.split).result(within(30))

    reading = reading_of(elements_of(Tearing(after_claim=over, claims=claims, sends=sends)), Block(1, "a", 0, end))
    with ThreadPoolExecutor(1) as watchdog, pytest.raises(ValueError, match="torn") as raised:
        list(reading.work())
    assert (operator_of(raised.value), numbers[-1]) == ("hooked", reached)


class Whole(Batched):
    """Reads numbers; a block at once, if it is asked to."""

    def process_whole(self, element: Block) -> Iterator[Any]:
        yield Batch.of([-number for number in range(element.start, element.end)])


def read_whole(
    patch: pytest.MonkeyPatch, quick_seconds: float, *bounds: tuple[int, int], refused: int | None = None
) -> tuple[Reading, list[int]]:
    """What a slot reads of blocks if those that take less are quick; what is read at once is negative."""
    patch.setattr("dagkit.engine.worker.work_in_hand.QUICK_SECONDS", quick_seconds)
    read = list[int]()

    def take(number: int) -> None:
        if number == refused:
            raise ValueError("refused")
        read.append(number)

    blocks = [Block(number, f"f{number}", start, end, True) for number, (start, end) in enumerate(bounds)]
    reading = reading_of(elements_of(Whole(), take), *blocks)
    for _ in reading.work():
        pass
    return reading, read


def test_small_elements_are_read_at_once_after_the_first_was_quick(monkeypatch):
    assert read_whole(monkeypatch, 0.0, (1, 3), (3, 5))[1] == [1, 2, 3, 4], "they are claimed while they take long"
    reading, read = read_whole(monkeypatch, 1e9, (1, 3), (3, 5), (5, 7))
    assert read == [1, 2, -3, -4, -5, -6]
    done = [(each.source, each.start, each.end) for each in reading.done.record.done]
    assert done == [("f0", 1, 3), ("f1", 3, 5), ("f2", 5, 7)]
    assert (reading.done.left, reading.done.begun, reading.done.positions) == ([], 3, 6)


def test_a_failure_names_the_element_that_is_read_at_once(monkeypatch):
    with pytest.raises(ValueError, match="refused") as raised:
        read_whole(monkeypatch, 1e9, (1, 3), (3, 5), refused=-4)
    assert operator_of(raised.value) == "hooked"


@pytest.mark.parametrize(
    ("before", "amount", "seconds"),
    [((10.0, 2.0), 20.0, 4.0), ((10.0, 2.0), 5.0, 2.0), (None, 5.0, inf), ((0.0, 2.0), 5.0, inf)],
    ids=["in proportion", "at least that of the last", "unknown at first", "unknown after an item of unknown amount"],
)
def test_the_time_of_an_item_is_expected_from_the_last_one(before, amount, seconds):
    speed = Speed()
    speed.begin(0.0)
    if before is not None:
        speed.end(*before)
    assert speed.last_seconds_for(amount) == seconds
