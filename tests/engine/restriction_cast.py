"""Operators whose restrictions are pairs of integers, ranges of keys, or of types of their own, for tests."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from dagkit import InputPort, OutputPort, SplittableOperator
from dagkit.ranges import ByteKeyRange, OffsetRange, Progress, RestrictionTracker, SplitRestriction, WorkUnclaimed
from dagkit.ranges.cursor import Run
from tests.engine.work_cast import Named


class Numbering(SplittableOperator[Named, Any]):
    names = InputPort[Named](main=True)
    numbers = OutputPort[tuple[str, int]](main=True)
    odd = OutputPort[tuple[str, int]]()
    by_now: int = 0
    defers_at: tuple[int, ...] = ()


class CountFn(Numbering):
    """Counts up to the number of a name, as the first example of splittable functions does."""

    def initial_restriction(self, element: Named) -> tuple[int, int]:
        return (0, element[1])

    def process(self, element: Named, tracker: RestrictionTracker[OffsetRange, int]) -> Iterator[tuple[str, int]]:
        number = tracker.current_restriction().start
        while tracker.try_claim(number):
            yield element[0], number
            number += 1


TABLE = [bytes([0xF0, number]) for number in range(256)]
"""The keys of a sorted table; none of them is text."""


class TableReader(Numbering):
    """Reads the first rows of a table, by their keys."""

    restriction_type = ByteKeyRange

    def initial_restriction(self, element: Named) -> ByteKeyRange:
        return ByteKeyRange(b"", TABLE[element[1]])

    def split(self, element: Named, restriction: ByteKeyRange) -> Iterator[ByteKeyRange]:
        middle = TABLE[element[1] // 2]
        yield ByteKeyRange(b"", middle)
        yield ByteKeyRange(middle, restriction.stop)

    def process(self, element: Named, tracker: RestrictionTracker[ByteKeyRange, bytes]) -> Iterator[tuple[str, int]]:
        keys = tracker.current_restriction()
        for key in (key for key in TABLE if key >= keys.start):
            if key[1] in self.defers_at and tracker.is_started():
                tracker.defer_remainder(timedelta(seconds=1))
                return
            if not tracker.try_claim(key):
                return
            yield element[0], key[1]
        tracker.try_claim(b"")


@dataclass(frozen=True)
class Pairs:
    """Rows of shards."""

    pairs: tuple[tuple[str, int], ...]


class PairsTracker(RestrictionTracker[Pairs, tuple[str, int]]):
    """Tracks a set of pairs, which are claimed in its order; it knows no positions between two of them."""

    def __init__(self, restriction: Pairs) -> None:
        self._pairs = restriction.pairs
        self._claimed = 0

    def current_restriction(self) -> Pairs:
        return Pairs(self._pairs)

    def is_bounded(self) -> bool:
        return True

    def is_started(self) -> bool:
        return self._claimed > 0

    def try_claim(self, position: tuple[str, int]) -> bool:
        if position not in self._pairs[self._claimed :]:
            return False
        self._claimed += 1
        return True

    def claim_many(self, positions: Run[tuple[str, int]]) -> int:
        return sum(self.try_claim(positions[index]) for index in range(len(positions)))

    def try_split(self, fraction_of_remainder: float) -> SplitRestriction[Pairs] | None:
        at = self._claimed + int((len(self._pairs) - self._claimed) * fraction_of_remainder)
        if at == len(self._pairs) or (at == 0 and fraction_of_remainder):
            return None
        split = SplitRestriction(Pairs(self._pairs[:at]), Pairs(self._pairs[at:]))
        self._pairs = split.primary.pairs
        return split

    def current_progress(self) -> Progress:
        return Progress(self._claimed, len(self._pairs) - self._claimed)

    def check_done(self) -> None:
        if self._claimed < len(self._pairs):
            raise WorkUnclaimed(self._pairs[self._claimed], None)


class ShardReader(Numbering):
    """Reads rows of two shards, which are pairs."""

    restriction_type = Pairs

    def initial_restriction(self, element: Named) -> Pairs:
        return Pairs(tuple(("even" if row % 2 == 0 else "odd", row) for row in range(element[1])))

    def tracker(self, element: Named, restriction: Pairs) -> RestrictionTracker[Pairs, Any]:
        return PairsTracker(restriction)

    def process(self, element: Named, tracker: RestrictionTracker[Pairs, Any]) -> Iterator[tuple[str, int]]:
        for index, (shard, row) in enumerate(tracker.current_restriction().pairs):
            if index and row in self.defers_at:
                tracker.defer_remainder(timedelta(seconds=1))
                return
            if not tracker.try_claim((shard, row)):
                return
            yield element[0], row


@dataclass(frozen=True)
class Since:
    """All from a number on; to a stop, if there is one."""

    first: int
    stop: int | None = None


class SinceTracker(RestrictionTracker[Since, int]):
    """Tracks work that may be without an end, and gives away what is not claimed; it has no halves."""

    def __init__(self, restriction: Since) -> None:
        self._first, self._stop, self._next = restriction.first, restriction.stop, restriction.first

    def current_restriction(self) -> Since:
        return Since(self._first, self._stop)

    def is_bounded(self) -> bool:
        return self._stop is not None

    def is_started(self) -> bool:
        return self._next > self._first

    def try_claim(self, position: int) -> bool:
        if self._stop is not None and position >= self._stop:
            return False
        self._next = position + 1
        return True

    def claim_many(self, positions: Run[int]) -> int:
        return sum(self.try_claim(positions[index]) for index in range(len(positions)))

    def try_split(self, fraction_of_remainder: float) -> SplitRestriction[Since] | None:
        if fraction_of_remainder or self._next == self._stop:
            return None
        split = SplitRestriction(Since(self._first, self._next), Since(self._next, self._stop))
        self._stop = self._next
        return split

    def current_progress(self) -> Progress:
        return Progress(self._next - self._first, float("inf") if self._stop is None else self._stop - self._next)

    def check_done(self) -> None:
        if self._next != self._stop:
            raise WorkUnclaimed(self._next, self._stop)


class Follower(Numbering):
    """Follows what has no end, as far as it has come by now."""

    restriction_type = Since

    def initial_restriction(self, element: Named) -> Since:
        return Since(0, element[1] if element[1] >= 0 else None)

    def tracker(self, element: Named, restriction: Since) -> RestrictionTracker[Since, Any]:
        return SinceTracker(restriction)

    def process(self, element: Named, tracker: RestrictionTracker[Since, Any]) -> Iterator[tuple[str, int]]:
        number = tracker.current_restriction().first
        while element[1] >= 0 or number < self.by_now:
            if not tracker.try_claim(number):
                return
            yield element[0], number
            number += 1
        tracker.defer_remainder(timedelta(seconds=1))
