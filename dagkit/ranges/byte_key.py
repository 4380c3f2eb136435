"""Ranges of byte strings, such as the row keys of a key-value store, and of other keys that have an order."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from typing import Final

from dagkit.ranges.cursor import Cursor, P
from dagkit.ranges.progress import Progress
from dagkit.ranges.range_errors import (
    ClaimBackwards,
    FractionInvalid,
    PositionOutside,
    PositionUnmeasured,
    RangeInvalid,
    SplitPointMissing,
    WorkUnclaimed,
)
from dagkit.ranges.restriction import RestrictionTracker, SplitRestriction
from dagkit.ranges.tracker import CursorRangeTracker

# Byte strings are numbers between 0 and 1: each byte is a digit to the base 256 after the point.
# Therefore trailing NULs do not change the number, and the end of all strings, None here, is 1. The arithmetic uses
# integers, so it is exact at any length.


DIGITS_OF_A_FLOAT = 53
"""The number of binary digits in the mantissa of a float."""


def number(key: bytes | None, length: int) -> int:
    """The key as an integer of `length` digits; further bytes are cut off."""
    return 1 << 8 * length if key is None else int.from_bytes(key[:length].ljust(length, b"\0"), "big")


def numbers(*keys: bytes | None) -> tuple[int, ...]:
    """The keys as integers with the number of digits of the longest key."""
    length = max(len(key or b"") for key in keys)
    return tuple(number(key, length) for key in keys)


def share(whole: int, fraction: float) -> int:
    """A fraction of a whole, rounded down. Exact for integers that no float can hold."""
    numerator, denominator = fraction.as_integer_ratio()
    return whole * numerator // denominator


def fraction_between(key: bytes, start: bytes, stop: bytes | None) -> float:
    """The fraction of the distance from start to stop that lies before the key; 0 if there is no distance."""
    low, at, high = numbers(start, key, stop)
    return 0.0 if low == high else (at - low) / (high - low)


@dataclass(frozen=True, slots=True)
class ByteKeyRange:
    """The keys from `start` up to, not including, `stop`; an empty stop is the end of all keys."""

    start: bytes = b""
    stop: bytes = b""

    def __post_init__(self) -> None:
        _refuse_unless_keys(self.start, self.stop)

    def __contains__(self, key: bytes) -> bool:
        return self.start <= key and (not self.stop or key < self.stop)

    def estimate_fraction_for_key(self, key: bytes) -> float:
        """The fraction of the range before a key in it, assuming that keys are spread evenly; 1 for the stop."""
        if key and key == self.stop:
            return 1.0
        if not key or key not in self:
            raise PositionOutside(key, self.start, self.stop)
        return fraction_between(key, self.start, self.stop or None)

    def interpolate_key(self, fraction: float) -> bytes:
        """A key with about this fraction of the range before it; never the stop, never empty."""
        if not 0.0 <= fraction < 1.0:
            raise FractionInvalid(fraction)
        length = max(len(self.start), len(self.stop))
        low, high = numbers(self.start, self.stop or None)
        if low == high:
            raise PositionUnmeasured(self.start, "its bounds differ by trailing NULs only")
        # Digits are added until each float between 0 and 1 maps to a different key.
        length += max(0, -(-(DIGITS_OF_A_FLOAT - (high - low).bit_length()) // 8))
        low, high = number(self.start, length), number(self.stop or None, length)
        return (low + share(high - low, fraction)).to_bytes(length, "big")

    def split(self, count: int) -> Iterator["ByteKeyRange"]:
        """Divide the range into about `count` pieces of similar width; one piece if no key lies between the bounds."""
        if count < 1:
            raise RangeInvalid(self.start, self.stop, f"{count!r} pieces cannot be cut")
        try:
            inner = [self.interpolate_key(i / count) for i in range(1, count)]
        except PositionUnmeasured:
            inner = []
        for start, stop in pairwise([self.start, *inner, self.stop]):
            yield ByteKeyRange(start, stop)


def _refuse_unless_keys(start: object, stop: object) -> None:
    if not (isinstance(start, bytes) and isinstance(stop, bytes)):
        raise RangeInvalid(start, stop, "keys are bytes")
    if stop and start >= stop:
        raise RangeInvalid(start, stop, "it holds no key; an empty stop is the end of all keys")


class ByteKeyRangeTracker(CursorRangeTracker[bytes]):
    """Tracks a range of byte keys; rows that share a key stay together, and may each claim it."""

    positions_repeat = True

    def __init__(self, keys: ByteKeyRange) -> None:
        super().__init__(keys.start, keys.stop or None)

    def start_position(self) -> bytes:
        return self._start or b""

    def stop_position(self) -> bytes:
        return self._stop or b""

    @classmethod
    def position_to_fraction(cls, position: bytes, start: bytes | None, stop: bytes | None) -> float:
        return ByteKeyRange(start or b"", stop or b"").estimate_fraction_for_key(position) if position else 0.0

    @classmethod
    def fraction_to_position(cls, fraction: float, start: bytes | None, stop: bytes | None) -> bytes:
        keys = ByteKeyRange(start or b"", stop or b"")
        return keys.stop if fraction == 1.0 else keys.interpolate_key(fraction)

    def fraction_consumed(self) -> float:
        fraction = super().fraction_consumed()
        assert fraction is not None, "byte keys have distances"
        return fraction


NO_KEYS: Final = ByteKeyRange(b"", b"\0")
"""An empty range. The empty string is not a key, and the first of all keys is a single NUL."""


class ByteKeyRestrictionTracker(Cursor[bytes], RestrictionTracker[ByteKeyRange, bytes]):
    """Tracks work on a range of byte keys, such as the rows of a sorted table; rows that share a key stay together.

        for key, row in table.rows(tracker.current_restriction().start):
            if not tracker.try_claim(key):
                return
            yield row
        tracker.try_claim(b"")

    The empty string is not a key. Claim it to report that there are no more keys: the claim is refused, as any claim at
    the end of a range, and the whole range counts as done.
    """

    positions_repeat = True

    def __init__(self, restriction: ByteKeyRange) -> None:
        super().__init__(restriction.start, restriction.stop or None)

    def current_restriction(self) -> ByteKeyRange:
        start, stop = self._bounds()
        return NO_KEYS if start == stop else ByteKeyRange(start, stop or b"")

    def is_bounded(self) -> bool:
        return True

    def try_claim(self, position: bytes) -> bool:
        if position:
            return super().try_claim(position)
        with self._lock:
            self._done = True
        return False

    def try_split(self, fraction_of_remainder: float) -> SplitRestriction[ByteKeyRange] | None:
        if not 0.0 <= fraction_of_remainder <= 1.0:
            raise FractionInvalid(fraction_of_remainder)
        with self._lock:
            start, stop = self._bounds()
            if fraction_of_remainder == 0.0:
                return self._split_there(start if self._last is None else _after(self._last))
            reached = start if self._last is None else self._last
            if self._done or start == stop or fraction_of_remainder == 1.0:
                return None
            try:
                key = ByteKeyRange(reached, stop or b"").interpolate_key(fraction_of_remainder)
            except PositionUnmeasured:
                key = reached
            return self._split_inside(key if self._last is None or key > self._last else _after(self._last))

    def try_split_at(self, position: bytes) -> SplitRestriction[ByteKeyRange] | None:
        with self._lock:
            return self._split_inside(position)

    def _split_inside(self, key: bytes) -> SplitRestriction[ByteKeyRange] | None:
        """Split at a key if there is work on both sides. The caller holds the lock."""
        # Without work before the key, the residual would be the whole: slots could pass it on for ever. Only a split
        # for a checkpoint, at a fraction of 0, may keep no work.
        return self._split_there(key) if key > self._bounds()[0] else None

    def _split_there(self, key: bytes) -> SplitRestriction[ByteKeyRange] | None:
        """Make the range stop at a key that is not claimed. The caller holds the lock."""
        start, stop = self._bounds()
        is_free = not self._done and (self._last is None or self._last < key)
        if not is_free or start == stop or (stop is not None and key >= stop):
            return None
        residual = ByteKeyRange(key, stop or b"")
        self._stop = key
        return SplitRestriction(NO_KEYS if key == start else ByteKeyRange(start, key), residual)

    def current_progress(self) -> Progress:
        """Progress in fractions of the whole key space, so that the parts of a range add up to the range."""
        with self._lock:
            start, stop = self._bounds()
            last, done = self._last, self._done
        if done or start == stop:
            return Progress(_width(start, stop), 0.0)
        at = start if last is None else last
        return Progress(_width(start, at), _width(at, stop))

    def check_done(self) -> None:
        with self._lock:
            start, stop = self._bounds()
            next_key = start if self._last is None else _after(self._last)
            is_done = self._done or (stop is not None and next_key >= stop)
        if not is_done:
            raise WorkUnclaimed(next_key, stop or b"")

    def _bounds(self) -> tuple[bytes, bytes | None]:
        """The start and the current stop of the range; None is the end of all keys."""
        return self._start or b"", self._stop


def _after(key: bytes) -> bytes:
    """The smallest key after a key."""
    return key + b"\0"


def _width(start: bytes, stop: bytes | None) -> float:
    """The fraction of the key space between two keys, assuming that keys are spread evenly."""
    low, high, whole = numbers(start, stop, None)
    return (high - low) / whole


class OrderedPositionRangeTracker(CursorRangeTracker[P]):
    """Tracks positions of any ordered type. A subclass maps them to fractions. None stands for no bound.

    Records may share a position, and a split never separates them.
    """

    positions_repeat = True

    def __init__(self, start: P | None = None, stop: P | None = None) -> None:
        if start is not None and stop is not None and start > stop:
            raise RangeInvalid(start, stop, "it stops before it starts")
        super().__init__(start, stop)

    @classmethod
    @abstractmethod
    def position_to_fraction(cls, position: P, start: P | None, stop: P | None) -> float: ...


class LexicographicKeyRangeTracker(OrderedPositionRangeTracker[bytes]):
    """Tracks byte strings in lexicographic order, interpreted as fractions to the base 256.

    Computed keys are as short as the fraction's precision allows, and end in no NUL.
    """

    @classmethod
    def position_to_fraction(cls, position: bytes, start: bytes | None = None, stop: bytes | None = None) -> float:
        return fraction_between(position, start or b"", stop)

    @classmethod
    def fraction_to_position(
        cls, fraction: float, start: bytes | None = None, stop: bytes | None = None
    ) -> bytes | None:
        """The key at a fraction: strictly between the bounds, except at 0 and 1, where it is the bound."""
        start = start or b""
        if fraction in (0.0, 1.0):
            return start if fraction == 0.0 else stop
        if stop is not None and start.rstrip(b"\0") == stop.rstrip(b"\0"):
            return start
        # Seven digits after the common ones hold the precision of a float; a small fraction has leading zeros.
        length = _shared_digits(start, stop) + _leading_zeros(fraction) + 7
        while True:
            low, high = number(start, length), number(stop, length)
            key = low + share(high - low, fraction)
            if low < key < high:
                return key.to_bytes(length, "big").rstrip(b"\0")
            length += 1


def _shared_digits(start: bytes, stop: bytes | None) -> int:
    """The number of leading digits that the bounds share. The end of all keys counts as endless 0xff."""
    digits = zip_longest(start, stop, fillvalue=0) if stop is not None else ((digit, 0xFF) for digit in start)
    count = 0
    for low, high in digits:
        if low != high:
            break
        count += 1
    return count


def _leading_zeros(fraction: float) -> int:
    """The number of leading zero digits of a fraction."""
    count = 0
    while fraction * 256 <= 1.0:
        fraction *= 256
        count += 1
    return count


class GroupedShuffleRangeTracker(CursorRangeTracker[bytes]):
    """Tracks groups of a shuffle: the first record of a group is its split point, the others have the same position.

    None, or an empty position, stands for no bound. The consumed fraction is unknown.
    """

    def __init__(self, start: bytes | None = None, stop: bytes | None = None) -> None:
        start, stop = start or None, stop or None
        if start is not None and stop is not None and start > stop:
            raise RangeInvalid(start, stop, "it stops before it starts")
        super().__init__(start, stop)

    def _follow(self, record_start: bytes, last: bytes) -> None:
        if record_start < last:
            raise ClaimBackwards(record_start, last)
        if record_start != last:
            raise SplitPointMissing(record_start, last)

    @classmethod
    def position_to_fraction(cls, position: bytes, start: bytes | None, stop: bytes | None) -> None:  # noqa: ARG003 - the same for all
        return None

    @classmethod
    def fraction_to_position(cls, fraction: float, start: bytes | None, stop: bytes | None) -> bytes | None:  # noqa: ARG003 - the same for all
        raise PositionUnmeasured(start, "positions of a shuffle have no distances")
