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
    """The numbers below an element."""

    kind = "tests.work.count/1"
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


class CountsMany(Count):
    def process(self, element, tracker):
        number, granted = tracker.current_restriction().start, 3
        while granted == 3:
            granted = tracker.claim_many(range(number, number + 3))
            yield Batch.of(list(range(number, number + granted)))
            number += granted


class PutsOff(Count):
    """After each number the rest is put off."""

    def process(self, element, tracker):
        number = tracker.current_restriction().start
        if tracker.try_claim(number):
            yield number
            tracker.defer_remainder(timedelta(seconds=1))


class EmitsBetween(Count):
    def process(self, element, tracker):
        number = tracker.current_restriction().start
        while tracker.try_claim(number):
            self.numbers.emit(number)
            yield number * 100
            number += 1


@pytest.mark.parametrize("operator", [Count(), CountsMany(), PutsOff(), EmitsBetween()], ids=lambda o: type(o).__name__)
def test_work_that_can_be_split_passes(operator):
    proven = check_every_split_of(operator, 12)
    assert proven.records == (24 if isinstance(operator, EmitsBetween) else 12)
    assert proven.cuts == 11
    assert proven.granted >= 11
    assert proven.races == 2 * proven.records * 11


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
    ids=["LF", "LF and CRLF", "escapes", "a header", "a delimiter of two bytes"],
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


class NeverSplits(Count):
    def tracker(self, element, restriction):
        return UnsplittableRestrictionTracker(OffsetRestrictionTracker(restriction))


class ReadsAllAtOnce(Count):
    def process(self, element, tracker):
        whole = tracker.current_restriction()
        for number in range(tracker.claim_many(range(whole.start, whole.stop))):
            yield whole.start + number
        tracker.try_claim(whole.stop)


class LiesAboutItsStart(Count):
    """Begins with the whole, whatever it was given, and claims only what it was given."""

    def process(self, element, tracker):
        start = tracker.current_restriction().start
        number = 0
        while number < start or tracker.try_claim(number):
            yield number
            number += 1


class BeginsTooLate(Count):
    """Skips what it takes for the rest of a record that another range reads."""

    def process(self, element, tracker):
        number = tracker.current_restriction().start
        number += number > 0
        while tracker.try_claim(number):
            yield number
            number += 1


class BeginsBeforeItsStart(Count):
    def process(self, element, tracker):
        number = tracker.current_restriction().start // 2
        while tracker.try_claim(number):
            yield number
            number += 1


class DropsResiduals(Count):
    """Works through an element from its beginning only."""

    def process(self, element, tracker):
        given = tracker.current_restriction()
        for number in range(given.start, element + 1):
            if not tracker.try_claim(number):
                return
            if given.start == 0:
                yield number


class DoublesRecords(Count):
    """Sends what it was not granted."""

    def process(self, element, tracker):
        number = tracker.current_restriction().start
        while True:
            granted = tracker.try_claim(number)
            if number < element:
                yield number
            if not granted:
                return
            number += 1


class DropsWhatItHeld(Count):
    """Holds one number back, and forgets it where the end is not the end that it knows."""

    def process(self, element, tracker):
        number = tracker.current_restriction().start
        while tracker.try_claim(number):
            if number + 1 == element or tracker.current_restriction().stop == element:
                yield number
            number += 1


class IgnoresRefusals(Count):
    def process(self, element, tracker):
        given = tracker.current_restriction()
        for number in range(given.start, given.stop):
            tracker.try_claim(number)
            yield number
        tracker.try_claim(given.stop)


class ReturnsEarly(Count):
    def process(self, element, tracker):
        number = tracker.current_restriction().start
        while number < element - 1 and tracker.try_claim(number):
            yield number
            number += 1


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


SHARED = {"at": 0}


class SharesItsPlace(Count):
    def process(self, element, tracker):
        SHARED["at"] = tracker.current_restriction().start
        while tracker.try_claim(SHARED["at"]):
            SHARED["at"] += 1
            yield SHARED["at"] - 1


class SendsAllAtOnce(Count):
    def process(self, element, tracker):
        for number in Count.process(self, element, tracker):
            self.numbers.emit(number)


class GoesRound(Count):
    def process(self, element, tracker):
        tracker.defer_remainder()
        yield from ()


@pytest.mark.parametrize(
    ("operator", "fault", "words"),
    [
        (NeverSplits(), SplitsBroken, "never splits: it refused all 143 splits"),
        (ReadsAllAtOnce(), SplitsBroken, "never splits: it refused all 143 splits"),
        (LiesAboutItsStart(), SplitsBroken, "cut at 1: one too many 0"),
        (BeginsTooLate(), SplitsBroken, "cut at 1: lost 1"),
        (BeginsBeforeItsStart(), ClaimBeforeStart, "claimed 0, before the range's start 1"),
        (DropsResiduals(), SplitsBroken, "cut at 1: lost 1, 2, 3 and 8 more"),
        (DoublesRecords(), SplitsBroken, "cut at 1: one too many 1"),
        (DropsWhatItHeld(), SplitsBroken, "cut at 1: lost 0"),
        (IgnoresRefusals(), SplitsBroken, "split at 1 after 1 records: one too many 1, 2, 3 and 8 more"),
        (ReturnsEarly(), WorkUnclaimed, r"\[11, 12\) was never claimed"),
        (GivesAwayWhatItKeeps(), SplitsBroken, "split at 1 after 1 records: one too many 0"),
        (LosesWhatItGivesAway(), SplitsBroken, "split at 1 after 1 records: lost 1"),
        (SharesItsPlace(), SplitsBroken, r"split at \d+ after \d+ records: (lost|one too many) "),
        (SendsAllAtOnce(), SplitsBroken, "SendsAllAtOnce.process sends all at once; let it yield"),
        (GoesRound(), SplitsBroken, r"OffsetRange\(0, 12\) was deferred as a whole"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Count) else "",
)
def test_work_that_cannot_be_split_is_named(operator, fault, words):
    with pytest.raises(fault, match=words):
        check_every_split_of(operator, 12)
