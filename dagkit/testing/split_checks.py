"""Checks that a source can be split: at every position, after every record, and while a thread reads it."""

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from threading import Barrier
from typing import Any, Generic, Protocol, TypeVar

from dagkit.ranges.cursor import P
from dagkit.ranges.tracker import Split
from dagkit.testing.operator_checks import ContractBroken

Record = TypeVar("Record")
P_contra = TypeVar("P_contra", contravariant=True)
One = TypeVar("One")
Other = TypeVar("Other")
Record_co = TypeVar("Record_co", covariant=True)

# A source that refuses every split, or keeps all records in the primary, passes any comparison of what is read. So the
# check fails unless a split was granted and a residual held a record. It takes positions times records squared: sources
# for it are small.
PIECES = 64
"""The number of fractions tried if positions cannot be counted."""


class Splittable(Protocol):
    """The methods of a range tracker that the check uses."""

    def start_position(self) -> Any: ...
    def stop_position(self) -> Any: ...
    def position_at_fraction(self, fraction: float, /) -> Any: ...
    def try_split_at_position(self, position: Any, /) -> Split[Any] | None: ...


Tracker = TypeVar("Tracker", bound=Splittable)


class SplittableSource(Protocol[P_contra, Tracker, Record_co]):
    """A source that is read by positions. Reading it twice must give the same records."""

    def range_tracker(self, start: P_contra | None, stop: P_contra | None, /) -> Tracker:
        """A new tracker of `[start, stop)`, None: the source's own bound."""

    def read(self, tracker: Tracker, /) -> Iterator[Record_co]:
        """The records of the tracker's range, in the order of their positions, each claimed before it is returned."""


class SplitsBroken(ContractBroken):
    """Splitting the source loses, doubles or reorders records, or never happens."""


@dataclass(frozen=True, slots=True)
class SplitsProven:
    """The numbers of cuts, splits and races that the check tried."""

    records: int
    cuts: int
    granted: int
    refused: int
    races: int
    races_won: int

    def __str__(self) -> str:
        return (
            f"{self.records} records: {self.cuts} cuts beforehand, {self.granted} splits granted and "
            f"{self.refused} refused while reading, {self.races_won} of {self.races} races won by the splitter"
        )


def check_every_split(
    source: SplittableSource[P, Tracker, Record], positions: Sequence[P] | None = None, cuts: Sequence[P] | None = None
) -> SplitsProven:
    """Check that a source gives the same records however it is split. Raise SplitsBroken if it does not.

    It is cut beforehand at every position, and into pieces of every width. It is split at every position after every
    record, with the two parts read in turns. And it is split while a thread reads it, with the parts read at once.

    By default, the positions are all integers between the bounds, or fractions of the range if bounds are not
    integers, and `cuts` are all positions. The work grows with positions times records squared: a source of a few
    dozen records proves as much as a large one.
    """
    check = _Check(source, positions, cuts)
    check.cut_beforehand()
    granted, refused = check.split_after_every_record()
    races, won = check.split_while_reading()
    return SplitsProven(len(check.whole), len(check.cuts), granted, refused, races, won)


class _Check(Generic[P, Tracker, Record]):
    def __init__(
        self, source: SplittableSource[P, Tracker, Record], positions: Sequence[P] | None, cuts: Sequence[P] | None
    ) -> None:
        self.source = source
        self.whole = self.read(None, None)
        if not self.whole:
            raise SplitsBroken("the source has no records, so nothing can be proven of it")
        self.compare(self.read(None, None), "read a second time")
        self.positions = _positions_of(source.range_tracker(None, None)) if positions is None else positions
        self.cuts = self.positions if cuts is None else cuts

    def read(self, start: P | None, stop: P | None) -> list[Record]:
        return list(self.source.read(self.source.range_tracker(start, stop)))

    def compare(self, found: Sequence[Record], how: str) -> None:
        """Raise SplitsBroken unless these are the records of the whole source, in order."""
        if list(found) == self.whole:
            return
        lost, extra = _without(self.whole, found), _without(found, self.whole)
        wrong = [f"{what} {_some(records)}" for what, records in (("lost", lost), ("one too many", extra)) if records]
        raise SplitsBroken(f"{how}: {' and '.join(wrong) or 'the records come in another order'}")

    def cut_beforehand(self) -> None:
        """Check that adjacent ranges give the records of the whole, also if a range holds no record, or part of one."""
        for position in self.cuts:
            self.compare(self.read(None, position) + self.read(position, None), f"cut at {position!r}")
        for width in range(1, len(self.cuts)):
            bounds = [None, *self.cuts[::width], None]
            pieces = [self.read(start, stop) for start, stop in pairwise(bounds)]
            self.compare(list(chain(*pieces)), f"cut at every position, {width} at a time")

    def split_after_every_record(self) -> tuple[int, int]:
        """Check the two parts of each split. Return the numbers of granted and refused splits."""
        granted = refused = 0
        moved = False
        for count in range(len(self.whole) + 1):
            for position in self.positions:
                tracker = self.source.range_tracker(None, None)
                reading = self.source.read(tracker)
                head = list(islice(reading, count))
                split = tracker.try_split_at_position(position)
                how = f"split at {position!r} after {count} records"
                if split is None:
                    refused += 1
                    self.compare(head + list(reading), f"{how}, which was refused")
                    continue
                granted += 1
                tail, residual = _in_turns(reading, self.read_residual(split))
                self.compare(head + tail + residual, how)
                moved = moved or bool(residual)
        if not granted:
            raise SplitsBroken(f"the source never splits: it refused all {refused} splits")
        if not moved:
            raise SplitsBroken(f"the source never splits in earnest: {granted} splits left nothing to the residual")
        return granted, refused

    def read_residual(self, split: Split[P]) -> Iterator[Record]:
        return self.source.read(self.source.range_tracker(split.position, split.stop))

    def split_while_reading(self) -> tuple[int, int]:
        """Check the two parts after each race. Return the number of races, and how many the splitter won."""
        with ThreadPoolExecutor(2) as threads, _threads_taking_turns():
            won = [
                self.race(position, count, threads, splitter_leads=splitter_leads)
                for count in range(len(self.whole))
                for position in self.positions
                for splitter_leads in (False, True)
            ]
        return len(won), sum(won)

    def race(self, position: P, count: int, threads: ThreadPoolExecutor, *, splitter_leads: bool) -> bool:
        """Request a split while the record after the first `count` is read. Return whether the split was granted."""
        tracker = self.source.range_tracker(None, None)
        reading = self.source.read(tracker)
        head = list(islice(reading, count))

        def split_and_read() -> tuple[bool, list[Record]]:
            split = tracker.try_split_at_position(position)
            return split is not None, [] if split is None else list(self.read_residual(split))

        tail, (won, residual) = _at_once(threads, lambda: list(reading), split_and_read, other_leads=splitter_leads)
        self.compare(head + tail + residual, f"split at {position!r} while record {count + 1} was read")
        return won


def _positions_of(tracker: Splittable) -> Sequence[Any]:
    """All positions between the bounds if they are integers, else the positions at equal fractions."""
    start, stop = tracker.start_position(), tracker.stop_position()
    if isinstance(start, int) and isinstance(stop, int):
        tracker.position_at_fraction(0.5)  # raises a clear error for a range without an end
        return range(start + 1, stop)
    places = (tracker.position_at_fraction(i / PIECES) for i in range(1, PIECES))
    return [place for place in dict.fromkeys(places) if place is not None and place != start]


def _in_turns(one: Iterator[Record], other: Iterator[Record]) -> tuple[list[Record], list[Record]]:
    """The records of two readers that read alternately, which reveals state that they share."""
    found: tuple[list[Record], list[Record]] = ([], [])
    going = [(one, found[0]), (other, found[1])]
    while going:
        for reading, records in list(going):
            try:
                records.append(next(reading))
            except StopIteration:
                going.remove((reading, records))
    return found


def _without(records: Sequence[Record], others: Sequence[Record]) -> list[Record]:
    """The multiset difference of records and others."""
    left = list(others)
    missing = []
    for record in records:
        if record in left:
            left.remove(record)
        else:
            missing.append(record)
    return missing


def _some(records: Sequence[Record]) -> str:
    shown = ", ".join(repr(record) for record in records[:3])
    return shown if len(records) <= 3 else f"{shown} and {len(records) - 3} more"


def _at_once(
    threads: ThreadPoolExecutor, one: Callable[[], One], other: Callable[[], Other], *, other_leads: bool
) -> tuple[One, Other]:
    """The results of two functions that start together; the one that reaches the barrier last has a small lead."""
    start = Barrier(2)

    def first() -> One:
        start.wait()
        return one()

    def second() -> Other:
        start.wait()
        return other()

    if other_leads:
        result, other_result = threads.submit(first), threads.submit(second)
    else:
        other_result, result = threads.submit(second), threads.submit(first)
    return result.result(), other_result.result()


@contextmanager
def _threads_taking_turns() -> Iterator[None]:
    """Switch threads as often as possible, so that races happen in small sources too."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)
