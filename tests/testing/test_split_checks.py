"""The checker passes sources that keep the contract, and names what is wrong with the others."""

from collections.abc import Iterator
from threading import Event, current_thread, main_thread

import numpy as np
import pytest

from dagkit.ranges import (
    OFFSET_INFINITY,
    ByteKeyRange,
    ByteKeyRangeTracker,
    ClaimBeforeStart,
    OffsetRangeTracker,
    PositionUnmeasured,
    UnsplittableRangeTracker,
)
from dagkit.testing.split_checks import SplitsBroken, check_every_split
from tests.patience import within

TEXT = b"to be\n\nor\nnot to be\n,\nthat is"


class Lines:
    """Lines of a text; each belongs to the range that holds its first byte."""

    tracker = OffsetRangeTracker

    def __init__(self, text=TEXT):
        self.text = text

    def range_tracker(self, start, stop):
        return self.tracker(0 if start is None else start, len(self.text) if stop is None else stop)

    def first(self, start):
        """Where the first line begins that begins at or after a start."""
        return 0 if start == 0 else self.end(start - 1)

    def end(self, at):
        return self.text.find(b"\n", at) + 1 or len(self.text)

    def read(self, tracker) -> Iterator[bytes]:
        at = self.first(tracker.start_position())
        while at < len(self.text) and tracker.try_claim(at):
            yield self.text[at : self.end(at)]
            at = self.end(at)


class LinesInRuns(Lines):
    """The same lines, found and claimed three at a time."""

    def read(self, tracker):
        ends = np.flatnonzero(np.frombuffer(self.text, dtype=np.uint8) == ord("\n")) + 1
        starts = np.concatenate(([0], ends))
        starts = starts[(starts >= self.first(tracker.start_position())) & (starts < len(self.text))]
        for i in range(0, len(starts), 3):
            run = starts[i : i + 3]
            granted = tracker.claim_many(run)
            for at in run[:granted]:
                yield self.text[at : self.end(at)]
            if granted < len(run):
                return


class Blocks(Lines):
    """Words of lines: only the first word of a line is a split point."""

    def read(self, tracker):
        at = self.first(tracker.start_position())
        while at < len(self.text):
            for i, word in enumerate(self.text[at : self.end(at)].split(b" ")):
                if not tracker.try_return_record_at(i == 0, at + i):
                    return
                yield word
            at = self.end(at)


class Rows:
    """Rows of a table by key; some share one."""

    rows = (b"ant", b"bee", b"bee", b"cat", b"dog", b"dog", b"eel")

    def range_tracker(self, start, stop):
        return ByteKeyRangeTracker(ByteKeyRange(start or b"a", stop or b"f"))

    def read(self, tracker):
        for i, row in enumerate(self.rows):
            if row >= tracker.start_position():
                if not tracker.try_claim(row):
                    return
                yield row, i


@pytest.mark.parametrize("source", [Lines(), LinesInRuns(), Blocks(), Rows()], ids=lambda s: type(s).__name__)
def test_a_source_that_keeps_the_contract_passes(source):
    proven = check_every_split(source)
    assert proven.records == len(list(source.read(source.range_tracker(None, None))))
    assert proven.granted > 0
    assert proven.granted + proven.refused == (proven.records + 1) * proven.cuts
    assert proven.races == 2 * proven.records * proven.cuts


def test_what_was_proven_reads_as_a_sentence_and_positions_may_be_given():
    sentence = "2 records: 3 cuts beforehand, 4 splits granted and 5 refused while reading, "
    assert str(check_every_split(Lines(b"a\nb\n"))).startswith(sentence)
    assert check_every_split(Rows(), positions=[b"b", b"bee", b"bef", b"dog"]).cuts == 4


class NeverSplits(Lines):
    def range_tracker(self, start, stop):
        return UnsplittableRangeTracker(super().range_tracker(start, stop))


class ClaimsOnce(Lines):
    """Cuts beforehand are kept, but not those that come while it reads."""

    def read(self, tracker):
        stop, first = tracker.stop_position(), self.first(tracker.start_position())
        at = first
        while at < stop and (at != first or tracker.try_claim(at)):
            yield self.text[at : self.end(at)]
            at = self.end(at)


class IsOneBlock(Lines):
    def read(self, tracker):
        for i, line in enumerate(self.text.splitlines() if tracker.start_position() == 0 else ()):
            if not tracker.try_return_record_at(i == 0, i):
                return
            yield line


class BeginsTooLate(Lines):
    """Looks for the end of a line at its start, and not one byte before, so it skips a line that begins there."""

    def first(self, start):
        return 0 if start == 0 else self.end(start)


class Forgiving(OffsetRangeTracker):
    def _begin_at(self, position):
        pass


class BeginsTooEarly(Lines):
    tracker = Forgiving

    def first(self, start):
        return super().first(max(0, start - 1))


class RefusesAndCuts(OffsetRangeTracker):
    """Says no to some splits, and stops there all the same."""

    def try_split_at_position(self, position):
        split = super().try_split_at_position(position)
        return None if position % 2 else split


class LosesWhatItKept(Lines):
    tracker = RefusesAndCuts


class SharesItsPlace(Lines):
    """Keeps where it reads in the source, so that two readers disturb each other."""

    def read(self, tracker):
        self.at = self.first(tracker.start_position())
        while self.at < len(self.text) and tracker.try_claim(self.at):
            at, self.at = self.at, self.end(self.at)
            yield self.text[at : self.at]


class ReadsBackwards(Lines):
    def read(self, tracker):
        return iter(list(super().read(tracker))[::-1])


class GrowsMeanwhile(Lines):
    def read(self, tracker):
        yield from super().read(tracker)
        self.text += b"\nmore"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (NeverSplits(), r"never splits: it refused all 196 splits"),
        (ClaimsOnce(), r"split at 1 after 1 records: one too many b'\\n', b'or\\n', b'not to be\\n' and 2 more"),
        (IsOneBlock(), r"never splits in earnest: \d+ splits left nothing"),
        (BeginsTooLate(), r"cut at 6: lost b'\\n'"),
        (BeginsTooEarly(), r"cut at 1: one too many b'to be\\n'"),
        (LosesWhatItKept(), r"split at 1 after 1 records, which was refused: lost b'\\n', b'or\\n'"),
        (SharesItsPlace(), r"split at \d+ after \d records: (lost|one too many) "),
        (ReadsBackwards(), r"cut at 1: the records come in another order"),
        (GrowsMeanwhile(), r"read a second time: lost b'that is' and one too many b'that is\\n', b'more'"),
        (Lines(b""), r"no records, so nothing can be proven"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Lines) else "",
)
def test_a_source_that_does_not_is_named(source, words):
    with pytest.raises(SplitsBroken, match=words):
        check_every_split(source)


def test_what_a_tracker_raises_is_not_hidden():
    class Strict(BeginsTooEarly):
        tracker = OffsetRangeTracker

    with pytest.raises(ClaimBeforeStart, match="claimed 0, before the range's start 1"):
        check_every_split(Strict())


def test_a_source_without_an_end_needs_positions():
    class Endless(Lines):
        def range_tracker(self, start, stop):
            return OffsetRangeTracker(start or 0, OFFSET_INFINITY if stop is None else stop)

    with pytest.raises(PositionUnmeasured, match="it has no end"):
        check_every_split(Endless())


def test_a_reader_that_checks_and_acts_in_two_steps_loses_the_race():
    class Hesitating(OffsetRangeTracker):
        def __init__(self, start, stop):
            super().__init__(start, stop)
            self.claiming, self.cut = Event(), Event()

        def is_raced(self):
            return self.start_position() == 0 and current_thread() is not main_thread()

        def try_claim(self, position):
            stop = self.stop_position()
            if self.is_raced():
                self.claiming.set()
                self.cut.wait(within(10))
            with self._lock:
                self._last = position
                self._claims += 1
            return position < stop

        def try_split_at_position(self, position):
            if self.is_raced():
                self.claiming.wait(within(10))
            split = super().try_split_at_position(position)
            self.cut.set()
            return split

    class Source(Lines):
        tracker = Hesitating

    with pytest.raises(SplitsBroken, match=r"split at \d+ while record \d+ was read"):
        check_every_split(Source(b"a\nb\nc\nd\n"))
