"""Ranges of any ordered type, and of byte strings in lexicographic order."""

from abc import abstractmethod
from itertools import zip_longest

from dagkit.ranges.base256 import fraction_between, number, share
from dagkit.ranges.cursor import P
from dagkit.ranges.range_errors import RangeInvalid
from dagkit.ranges.tracker import CursorRangeTracker


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
