"""The parts of a file that were written, with their checksums, joined as they meet."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

_POLYNOMIAL = 0xEDB88320
"""Of CRC-32, with its bits reversed."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """The bytes from `start` to `end` of a file."""

    key: str
    """The file, as `FileSlice.key` names it."""
    start: int
    end: int
    checksum: int | None = None
    """Their CRC-32; None if it was not computed."""


def joined_with(stretches: Sequence[Stretch], more: Stretch) -> tuple[Stretch, ...]:
    """Return sorted stretches of one file with another one; those that touch are joined. None of them overlap."""
    place = bisect_left(stretches, more.start, key=lambda stretch: stretch.start)
    before, after = list(stretches[:place]), list(stretches[place:])
    if before and before[-1].end == more.start:
        more = _joined(before.pop(), more)
    if after and after[0].start == more.end:
        more = _joined(more, after.pop(0))
    return (*before, more, *after)


def _joined(first: Stretch, second: Stretch) -> Stretch:
    checksum = None
    if first.checksum is not None and second.checksum is not None:
        checksum = crc32_of_both(first.checksum, second.checksum, second.end - second.start)
    return Stretch(first.key, first.start, second.end, checksum)


def crc32_of_both(first: int, second: int, length: int) -> int:
    """Return the CRC-32 of two texts in succession from theirs, and the length of the second.

    Zero bytes after a text multiply its checksum with a power of x, modulo the polynomial.
    """
    power = _power_of_x(8 * length)
    return _product(power, first) ^ second


def _power_of_x(exponent: int) -> int:
    power, square = 1 << 31, 1 << 30  # 1 and x: the highest bit is the lowest power
    while exponent:
        if exponent & 1:
            power = _product(square, power)
        square = _product(square, square)
        exponent >>= 1
    return power


def _product(one: int, other: int) -> int:
    product = 0
    for bit in range(31, -1, -1):
        if one >> bit & 1:
            product ^= other
        other = (other >> 1) ^ (_POLYNOMIAL if other & 1 else 0)
    return product
