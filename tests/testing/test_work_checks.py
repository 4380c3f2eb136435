"""An operator whose work can be split passes, and what is wrong with any other is named."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from dagkit import Batch, Block, InputPort, OutputPort, SplittableOperator
from dagkit.ranges import (
    OFFSET_INFINITY,
    ClaimBeforeStart,
    OffsetRange,
    OffsetRestrictionTracker,
    PositionUnmeasured,
    UnsplittableRestrictionTracker,
    WorkUnclaimed,
)
from dagkit.testing import SplitsBroken, check_every_split_of
from dagkit_operators import FixedLengthReader, LineReader


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


def test_records_of_one_length_are_split_between_two(tmp_path):
    proven = check_every_split_of(FixedLengthReader(length=4, chunk_size=8), block_of(tmp_path, bytes(range(18))))
    assert (proven.records, proven.cuts) == (5, 4)


def block_of(folder: Path, content: bytes) -> Block:
    path = folder / "file"
    path.write_bytes(content)
    return Block(0, str(path), 0, len(content), True, "", {"length": len(content)})


def reads_all_at_once(self, element, tracker):
    whole = tracker.current_restriction()
    for number in range(tracker.claim_many(range(whole.start, whole.stop))):
        yield whole.start + number
    tracker.try_claim(whole.stop)


def lies_about_its_start(self, element, tracker):
    """Begins with the whole, whatever it was given, and claims only what it was given."""
    start, number = tracker.current_restriction().start, 0
    while number < start or tracker.try_claim(number):
        yield number
        number += 1


def begins_too_late(self, element, tracker):
    """Skips what it takes for the rest of a record that another range reads."""
    number = tracker.current_restriction().start
    number += number > 0
    while tracker.try_claim(number):
        yield number
        number += 1


def begins_before_its_start(self, element, tracker):
    number = tracker.current_restriction().start // 2
    while tracker.try_claim(number):
        yield number
        number += 1


def drops_residuals(self, element, tracker):
    """Works through an element from its beginning only."""
    given = tracker.current_restriction()
    for number in range(given.start, element + 1):
        if not tracker.try_claim(number):
            return
        if given.start == 0:
            yield number


def doubles_records(self, element, tracker):
    number, granted = tracker.current_restriction().start, True
    while granted:
        granted = tracker.try_claim(number)
        if number < element:
            yield number
        number += 1


def drops_what_it_held(self, element, tracker):
    """Holds one number back, and forgets it where the end is not the end that it knows."""
    number = tracker.current_restriction().start
    while tracker.try_claim(number):
        if number + 1 == element or tracker.current_restriction().stop == element:
            yield number
        number += 1


def ignores_refusals(self, element, tracker):
    given = tracker.current_restriction()
    for number in range(given.start, given.stop):
        tracker.try_claim(number)
        yield number
    tracker.try_claim(given.stop)


def returns_early(self, element, tracker):
    number = tracker.current_restriction().start
    while number < element - 1 and tracker.try_claim(number):
        yield number
        number += 1


SHARED = {"at": 0}


def shares_its_place(self, element, tracker):
    SHARED["at"] = tracker.current_restriction().start
    while tracker.try_claim(SHARED["at"]):
        SHARED["at"] += 1
        yield SHARED["at"] - 1


def sends_all_at_once(self, element, tracker):
    for number in Count.process(self, element, tracker):
        self.numbers.emit(number)


def goes_round(self, element, tracker):
    tracker.defer_remainder()
    yield from ()


class NeverSplits(Count):
    def tracker(self, element, restriction):
        return UnsplittableRestrictionTracker(OffsetRestrictionTracker(restriction))


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
        (NeverSplits(), SplitsBroken, "never splits: it refused all 143 splits"),
        (reads_all_at_once, SplitsBroken, "never splits: it refused all 143 splits"),
        (lies_about_its_start, SplitsBroken, "cut at 1: one too many 0"),
        (begins_too_late, SplitsBroken, "cut at 1: lost 1"),
        (begins_before_its_start, ClaimBeforeStart, "claimed 0, before the range's start 1"),
        (drops_residuals, SplitsBroken, "cut at 1: lost 1, 2, 3 and 8 more"),
        (doubles_records, SplitsBroken, "cut at 1: one too many 1"),
        (drops_what_it_held, SplitsBroken, "cut at 1: lost 0"),
        (ignores_refusals, SplitsBroken, "split at 1 after 1 records: one too many 1, 2, 3 and 8 more"),
        (returns_early, WorkUnclaimed, r"\[11, 12\) was never claimed"),
        (GivesAwayWhatItKeeps(), SplitsBroken, "split at 1 after 1 records: one too many 0"),
        (LosesWhatItGivesAway(), SplitsBroken, "split at 1 after 1 records: lost 1"),
        (shares_its_place, SplitsBroken, r"split at \d+ after \d+ records: (lost|one too many) "),
        (sends_all_at_once, SplitsBroken, "sends_all_at_once.process sends all at once; let it yield"),
        (goes_round, SplitsBroken, r"OffsetRange\(0, 12\) was deferred as a whole"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Count) else getattr(value, "__name__", ""),
)
def test_work_that_cannot_be_split_is_named(operator, fault, words):
    with pytest.raises(fault, match=words):
        check_every_split_of(operator if isinstance(operator, Count) else count_by(operator), 12)
