"""The index of a gzip file: positions at which decompression can start.

The first reader of a file makes the index while it reads. With it, several readers share the content of the file.
"""

import struct
import zlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    import numpy as np


# Deflate blocks begin at any bit. No decompressor that Python offers starts in the middle of a byte; but some empty
# blocks, whose total length in bits is right, can be put before the block. They produce nothing, and what follows them
# begins at the wanted bit. RFC 1951 describes the format.


_LENGTHS_ORDER = (16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1)
"""The order of the code length codes in a block header, up to the last one that is used here."""
LOOKAHEAD = 24
"""Bytes that `block_starts` needs after those that it searches."""


def aligned(data: bytes, bit: int) -> bytes:
    """A deflate stream that continues with the block which starts at a bit (0 to 7) of the first byte of `data`."""
    empty, used = _empty_blocks(bit)
    if not used:
        return empty + data
    return empty[:-1] + bytes([empty[-1] | (data[0] >> used << used)]) + data[1:]


@cache
def _empty_blocks(bit: int) -> tuple[bytes, int]:
    """Empty blocks whose last byte has `bit` bits in use, and this number."""
    bits = _empty_dynamic() if bit % 2 else []
    while len(bits) % 8 != bit:
        bits += [0, 1, 0] + [0] * 7  # not the last block, fixed codes, the code for its end: ten bits
    number = sum(value << place for place, value in enumerate(bits))
    return number.to_bytes(-(-len(bits) // 8), "little"), bit


def _empty_dynamic() -> list[int]:
    """An empty block with codes of its own: an odd number of bits.

    Its two literal codes are byte 0 and the end of the block, one bit each. The lengths of codes are written with two
    symbols of one bit each: 1 for a length of one, and 18 for a run of up to 138 zeros.
    """

    def number(value: int, width: int) -> list[int]:
        return [value >> place & 1 for place in range(width)]

    bits = [0, *number(2, 2), *number(0, 5), *number(0, 5), *number(len(_LENGTHS_ORDER) - 4, 4)]
    for symbol in _LENGTHS_ORDER:
        bits += number(1 if symbol in (1, 18) else 0, 3)
    one, zeros = [0], [1]
    bits += one + zeros + number(138 - 11, 7) + zeros + number(117 - 11, 7) + one  # bytes 0 to 255, and the end
    return [*bits, *one, 1]  # one distance code, which is not used, and the end of the block


def block_starts(data: bytes, count: int) -> Iterator[int]:
    """The bits in the first `count` bytes at which a block with codes of its own may begin, in order.

    About 30 of 10,000 bits look like such a beginning by chance: only decompression shows which are right. The last
    block of a stream is not found. `data` has LOOKAHEAD more bytes.
    """
    import numpy as np  # noqa: PLC0415 - not loaded when only compiling

    assert len(data) >= count + LOOKAHEAD, "a header may extend beyond the bytes that are searched"
    words = np.ndarray((count + 8,), "<u8", data, 0, (1,))  # eight bytes from each byte on
    sums = _kraft_sums()
    found = []
    for shift in range(8):
        first = words[:count] >> np.uint64(shift)
        head = first.astype(np.uint16)
        # not the last block, codes of its own; at most 286 literal codes and 30 distance codes
        at = np.flatnonzero(((head & 7) == 4) & ((head & 0xF8) < 0xF0) & ((head & 0x1F00) < 0x1E00))
        first, second = first[at], words[at + 7] >> np.uint64(shift)
        bits = (((first >> np.uint64(13)) & np.uint64(15)) + np.uint64(4)) * np.uint64(3)
        # 13 lengths of three bits in one word, the others in the next
        low = (first >> np.uint64(17)) & _ones(np.minimum(bits, np.uint64(39)))
        high = second & _ones(np.maximum(bits, np.uint64(39)) - np.uint64(39))
        total = sum(
            sums[(part >> np.uint64(place)) & np.uint64(4095)] for part in (low, high) for place in (0, 12, 24, 36)
        )
        found.append(at[total == 128] * 8 + shift)
    yield from np.sort(np.concatenate(found)).tolist()


def _ones(count: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    import numpy as np  # noqa: PLC0415 - see above

    return (np.uint64(1) << count) - np.uint64(1)


@cache
def _kraft_sums() -> "np.ndarray[Any, Any]":
    """How much of all codes four lengths of three bits each use, in 128ths. A complete set uses all."""
    import numpy as np  # noqa: PLC0415 - see above

    used = [0, *(128 >> length for length in range(1, 8))]
    return np.array([sum(used[four >> place & 7] for place in (0, 3, 6, 9)) for four in range(4096)], np.int32)


SPACING = 32 << 20
"""Bytes of content between two points at least."""
WINDOW = 32 << 10
"""The most bytes of content before a point to which what follows may refer."""

_FORMAT = b"dagkit gzip index 1\n"
_HEAD = struct.Struct("<QII")
_POINT = struct.Struct("<QQII")


@dataclass(frozen=True, slots=True)
class Point:
    """A position at which decompression can start."""

    bit: int
    """The position in the file, in bits."""
    content: int
    """The position in the content, in bytes."""
    checksum: int
    """The CRC-32 of the content since the point before."""
    window: bytes | None = None
    """The content before the point; None if a member of the file begins here, with its header."""


BEGINNING = Point(0, 0, 0)
"""The beginning of every gzip file."""


@dataclass(frozen=True)
class GzipIndex:
    """The points of a file in order, and the length of its content."""

    points: Sequence[Point]
    """Without the beginning of the file."""
    content_length: int
    checksum: int
    """The CRC-32 of the content since the last point."""

    def point_before(self, position: int) -> tuple[int, Point]:
        """The last point at or before a position of the content, and the number of points up to it."""
        number = bisect_right(self.points, position, key=lambda point: point.content)
        return number, self.points[number - 1] if number else BEGINNING

    def section_end(self, number: int) -> tuple[int, int]:
        """The end and the CRC-32 of the content that follows so many points, up to the next one."""
        if number == len(self.points):
            return self.content_length, self.checksum
        return self.points[number].content, self.points[number].checksum

    def to_bytes(self) -> bytes:
        """The stored form, with a checksum at its end."""
        parts = [_FORMAT, _HEAD.pack(self.content_length, self.checksum, len(self.points))]
        for point in self.points:
            window = b"" if point.window is None else zlib.compress(point.window, 1)
            parts += [_POINT.pack(point.bit, point.content, point.checksum, len(window)), window]
        stored = b"".join(parts)
        return stored + zlib.crc32(stored).to_bytes(4, "little")

    @classmethod
    def from_bytes(cls, stored: bytes) -> Self:
        """Read the stored form. Raise ValueError if it is damaged or of another version."""
        if not stored.startswith(_FORMAT) or zlib.crc32(stored[:-4]).to_bytes(4, "little") != stored[-4:]:
            raise ValueError("it is damaged, or of another version")
        try:
            return cls._of(stored)
        except (struct.error, zlib.error) as error:
            raise ValueError(f"it is damaged: {error}") from error

    @classmethod
    def _of(cls, stored: bytes) -> Self:
        content_length, checksum, count = _HEAD.unpack_from(stored, len(_FORMAT))
        place, points = len(_FORMAT) + _HEAD.size, []
        for _ in range(count):
            bit, content, point_checksum, length = _POINT.unpack_from(stored, place)
            place += _POINT.size
            packed = stored[place : place + length]
            # Limited, since damaged bytes with a right checksum may decompress to any length.
            window = zlib.decompressobj().decompress(packed, WINDOW) if length else None
            points.append(Point(bit, content, point_checksum, window))
            place += length
        return cls(tuple(points), content_length, checksum)
