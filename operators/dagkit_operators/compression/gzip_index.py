"""The index of a gzip file: positions at which decompression can start.

The first reader of a file makes the index while it reads. With it, several readers share the content of the file.
"""

import struct
import zlib
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

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
            window = zlib.decompressobj().decompress(packed, WINDOW) if length else None
            points.append(Point(bit, content, point_checksum, window))
            place += length
        return cls(tuple(points), content_length, checksum)
