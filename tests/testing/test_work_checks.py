"""An operator whose work can be split passes, and what is wrong with any other is named."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from dagkit import Batch, Block, InputPort, OutputPort, SplittableOperator
from dagkit.ranges import OFFSET_INFINITY, OffsetRange, OffsetRestrictionTracker, PositionUnmeasured, WorkUnclaimed
from dagkit.testing import SplitsBroken, check_every_split_of
from dagkit_operators import LineReader


class Count(SplittableOperator[int]):
    stateless = True
    ends = InputPort(int)
    numbers = OutputPort(int, main=True)
    tens = OutputPort(int)

    def initial_restriction(self, element: int) -> OffsetRange:
        return OffsetRange(0, element)

    def process(self, element: int, tracker: Any) -> Iterator[int]:
        number = tracker.current_restriction().start
        while tracker.try_claim(number):
            if number % 10 == 0:
                self.tens.emit(number)
            yield number
            number += 1


def count_by(process: Any) -> Count:
    """A `Count` whose `process` is this function."""
    return type(process.__name__, (Count,), {"process": process})()


def counts_many(self, element, tracker):
    number, granted = tracker.current_restriction().start, 3
    while granted == 3:
        granted = tracker.claim_many(range(number, number + 3))
        yield Batch.of(list(range(number, number + granted)))
        number += granted


def puts_off(self, element, tracker):
    """After each number the rest is put off."""
    number = tracker.current_restriction().start
    if tracker.try_claim(number):
        yield number
        tracker.defer_remainder(timedelta(seconds=1))


def emits_between(self, element, tracker):
    number = tracker.current_restriction().start
    while tracker.try_claim(number):
        self.numbers.emit(number)
        yield number * 100
        number += 1


@pytest.mark.parametrize(
    ("process", "records"), [(Count.process, 12), (counts_many, 12), (puts_off, 12), (emits_between, 24)]
)
def test_work_that_can_be_split_passes(process, records):
    proven = check_every_split_of(count_by(process), 12)
    assert (proven.records, proven.cuts, proven.races) == (records, 11, 2 * records * 11)
    assert proven.granted >= 11


def test_another_output_is_compared_where_it_is_named():
    assert check_every_split_of(Count(), 25, output="tens", positions=[5, 10, 11, 20]).records == 3


def test_work_without_an_end_is_checked_within_one():
    assert check_every_split_of(Count(), OFFSET_INFINITY, OffsetRange(10**6, 10**6 + 9)).records == 9
    with pytest.raises(PositionUnmeasured, match="check it within a range"):
        check_every_split_of(Count(), OFFSET_INFINITY)


TEXT = b"be\r\n\nor\\\nt\n,"


@pytest.mark.parametrize(
    "properties",
    [{}, {"keep_returns": False}, {"escape": "\\"}, {"skip_header_lines": 1}, {"delimiter": "\r\n"}],
    ids=str,
)
@pytest.mark.parametrize("chunk_size", [1, 5])
def test_reading_lines_can_be_split_at_every_byte(properties, chunk_size, tmp_path):
    proven = check_every_split_of(LineReader(chunk_size=chunk_size, **properties), block_of(tmp_path, TEXT))
    assert proven.cuts == len(TEXT) - 1


def block_of(folder: Path, content: bytes) -> Block:
    path = folder / "file"
    path.write_bytes(content)
    return Block(0, str(path), 0, len(content), True, "", {"length": len(content)})


def returns_early(self, element, tracker):
    number = tracker.current_restriction().start
    while number < element - 1 and tracker.try_claim(number):
        yield number
        number += 1


def sends_all_at_once(self, element, tracker):
    for number in Count.process(self, element, tracker):
        self.numbers.emit(number)


def goes_round(self, element, tracker):
    tracker.defer_remainder()
    yield from ()


class GivesAwayTwice(OffsetRestrictionTracker):
    """What it gives away overlaps with what it keeps."""

    def try_split(self, fraction_of_remainder):
        taken = super().try_split(fraction_of_remainder)
        return taken and replace_residual(taken, start=taken.residual.start - 1)


class LosesResiduals(OffsetRestrictionTracker):
    """What it gives away begins behind what it keeps no more."""

    def try_split(self, fraction_of_remainder):
        taken = super().try_split(fraction_of_remainder)
        return taken and replace_residual(taken, start=min(taken.residual.start + 1, taken.residual.stop))


def replace_residual(taken, **bounds):
    return taken._replace(residual=replace(taken.residual, **bounds))


class GivesAwayWhatItKeeps(Count):
    def tracker(self, element, restriction):
        return GivesAwayTwice(restriction)


class LosesWhatItGivesAway(Count):
    def tracker(self, element, restriction):
        return LosesResiduals(restriction)


@pytest.mark.parametrize(
    ("operator", "fault", "words"),
    [
        (returns_early, WorkUnclaimed, r"\[11, 12\) was never claimed"),
        (GivesAwayWhatItKeeps(), SplitsBroken, "split at 1 after 1 records: one too many 0"),
        (LosesWhatItGivesAway(), SplitsBroken, "split at 1 after 1 records: lost 1"),
        (sends_all_at_once, SplitsBroken, "sends_all_at_once.process sends all at once; let it yield"),
        (goes_round, SplitsBroken, r"OffsetRange\(0, 12\) was deferred as a whole"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Count) else getattr(value, "__name__", ""),
)
def test_work_that_cannot_be_split_is_named(operator, fault, words):
    """See also test_split_checks.py: the check of an operator is that of a source."""
    with pytest.raises(fault, match=words):
        check_every_split_of(operator if isinstance(operator, Count) else count_by(operator), 12)
