"""Ranges of byte strings in the order of their bytes, as key-value stores keep their rows."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from dagkit.ranges.base256 import DIGITS_OF_A_FLOAT, fraction_between, number, numbers, share
from dagkit.ranges.range_errors import FractionInvalid, PositionOutside, PositionUnmeasured, RangeInvalid
from dagkit.ranges.tracker import CursorRangeTracker


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
        """What part of the range lies before a key of it, keys being spread evenly; the stop is 1."""
        if key and key == self.stop:
            return 1.0
        if not key or key not in self:
            raise PositionOutside(key, self.start, self.stop)
        return fraction_between(key, self.start, self.stop or None)

    def interpolate_key(self, fraction: float) -> bytes:
        """A key of the range with about so much of it before; never the stop, never empty."""
        if not 0.0 <= fraction < 1.0:
            raise FractionInvalid(fraction)
        length = max(len(self.start), len(self.stop))
        low, high = numbers(self.start, self.stop or None)
        if low == high:
            raise PositionUnmeasured(self.start, "its bounds differ by trailing NULs only")
        # Digits are added until every float finds a key of its own.
        length += max(0, -(-(DIGITS_OF_A_FLOAT - (high - low).bit_length()) // 8))
        low, high = number(self.start, length), number(self.stop or None, length)
        return (low + share(high - low, fraction)).to_bytes(length, "big")

    def split(self, count: int) -> Iterator["ByteKeyRange"]:
        """About so many pieces of like width; one piece where no key lies between the bounds."""
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
