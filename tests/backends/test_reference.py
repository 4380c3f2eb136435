"""How the reference reads: item by item, and at the end of a window it splits what it reads, without a watchdog."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from dagkit import Block, InputOperator, InputPort, Operator, OutputPort, SplittableOperator, State
from dagkit.backends.reference import ReferenceBackend
from dagkit.engine.program.failures import OperatorFailed
from dagkit.engine.worker.protocol import Report, WindowTask
from dagkit.ranges import OFFSET_INFINITY, OffsetRange, OffsetRestrictionTracker, RestrictionTracker
from tests.backends.cast import chain, state_of
from tests.engine.cast import Collect
from tests.engine.items import item_of
from tests.patience import join

INTO = "reads.blocks"


class Blocks(InputOperator):
    out = OutputPort(Block)


def claimed(element: Block, tracker: RestrictionTracker[OffsetRange, int]) -> Iterator[int]:
    position = element.start
    while tracker.try_claim(position):
        yield position
        position += 1


class Yields(SplittableOperator[Block]):
    blocks = InputPort(Block)
    numbers = OutputPort(int)

    def process(self, element: Block, tracker: RestrictionTracker[OffsetRange, int]) -> Iterator[int]:
        yield from claimed(element, tracker)


class Emits(Yields):
    def process(self, element: Block, tracker: RestrictionTracker[OffsetRange, int]) -> Any:
        for number in claimed(element, tracker):
            self.numbers.emit(number)


class Counts(Yields):
    counted = State(0)

    def process(self, element: Block, tracker: RestrictionTracker[OffsetRange, int]) -> Any:
        for _ in claimed(element, tracker):
            self.counted += 1


class Stops(Yields):
    """Returns before its block is read to the end."""

    def process(self, element: Block, tracker: RestrictionTracker[OffsetRange, int]) -> Iterator[int]:
        if tracker.try_claim(element.start):
            yield element.start


def read(reader: Operator, *blocks: Block, lasts_millis: float | None = None) -> tuple[Any, Report]:
    """One window: what was kept of it, and what the reader reports."""
    backend = ReferenceBackend(chain(found=Blocks(), reads=reader, keep=Collect()))
    stage = backend.program.stage_of["reads"]
    work = tuple(item_of(INTO, block, block.path) for block in blocks)
    answer = backend.run(WindowTask(7, work={(stage.level, 0): work}, lasts_millis=lasts_millis))
    (reading,) = (report for report in answer.reports if "reads" in report.figures)
    return [item for state in state_of(answer, "keep") for item in state.get("arrived", [])], reading


def left(report: Report) -> list[tuple[str, int, int]]:
    return [(str(each.source), each.start, each.end) for each in report.left]


@pytest.mark.parametrize("reader", [Yields(), Emits()])
def test_without_a_deadline_elements_are_read_to_their_end_in_their_order(reader):
    kept, report = read(reader, Block(2, "b", 7, 9), Block(1, "a", 3, 6))
    assert (kept, left(report), report.positions) == ([3, 4, 5, 7, 8], [], 5)


@pytest.mark.parametrize("reader", [Yields(), Emits()])
def test_when_the_time_is_over_one_item_is_read_and_all_else_is_left(reader):
    kept, report = read(reader, Block(1, "a", 3, 6), Block(2, "b", 7, 9), lasts_millis=0.0)
    assert (kept, left(report)) == ([3], [("a", 4, 6), ("b", 7, 9)])
    assert (report.positions, report.left[0].turn, report.left[0].done_positions) == (1, 7, 1)
    assert [(each.source, each.start, each.stop) for each in report.done[INTO].stretches] == [("a", 3, 4)]


@pytest.mark.parametrize("reader", [Yields(), Emits()])
def test_what_has_no_end_comes_last_and_ends_with_the_window(reader):
    kept, report = read(reader, Block(1, "endless", 5, OFFSET_INFINITY), Block(2, "b", 7, 8), lasts_millis=20.0)
    ((source, start, end),) = left(report)
    assert (source, end) == ("endless", OFFSET_INFINITY)
    assert kept == [7, *range(5, start)]


def test_a_silent_reader_of_what_has_no_end_is_interrupted():
    _, report = read(Counts(), Block(1, "endless", 5, OFFSET_INFINITY), lasts_millis=0.0)
    ((_, start, end),) = left(report)
    assert (report.state["reads"]["counted"], end) == (start - 5, OFFSET_INFINITY)


class Torn(OffsetRestrictionTracker):
    def try_split(self, fraction_of_remainder: float) -> Any:
        raise ValueError("torn")


class ClaimsTorn(Counts):
    """Claims a number after its tracker has raised, and has no end."""

    def tracker(self, element: Block, restriction: OffsetRange) -> Torn:
        return Torn(restriction)

    def process(self, element: Block, tracker: RestrictionTracker[OffsetRange, int]) -> None:
        tracker.try_claim(element.start)
        join(*(thread for thread in threading.enumerate() if thread.name == "reference-clock"), seconds=120)
        tracker.try_claim(element.start + 1)
        raise AssertionError("its work has no end")


def test_work_without_an_end_fails_at_the_next_claim_after_its_tracker_raised():
    with pytest.raises(OperatorFailed, match="ValueError: torn"):
        read(ClaimsTorn(), Block(1, "endless", 5, OFFSET_INFINITY), lasts_millis=0.0)


def test_what_is_neither_read_nor_given_back_is_a_failure():
    with pytest.raises(OperatorFailed, match=r"reads failed in window 7, slot 0: Stops.process returned, and of Block"):
        read(Stops(), Block(1, "a", 3, 6))
