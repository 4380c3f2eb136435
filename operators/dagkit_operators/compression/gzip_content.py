"""The content of gzip files, decompressed from the beginning or from a point of an index."""

from collections import deque
from collections.abc import Iterator
from typing import Any

from dagkit_operators.compression.codec import CompressionBroken
from dagkit_operators.compression.gzip_index import BEGINNING, WINDOW, GzipIndex, Point, aligned, block_starts
from dagkit_operators.filesystem.access import Seekable

try:
    from isal import isal_zlib as _zlib
except ImportError:  # workers need not have isal: zlib gives the same content in three times the time
    import zlib as _zlib  # type: ignore[no-redef]

_DAMAGED: type[Exception] = _zlib.error  # type: ignore[assignment, unused-ignore]

READ = 192 << 10
"""Compressed bytes that are in memory at most."""
FED = 48 << 10
"""Compressed bytes decompressed at a time: with their content, they fit into the processor's cache."""
SEARCHED = 16 << 10
"""Compressed bytes that one search for the beginning of a block covers."""
SEARCHES = 24
"""Searches one behind the other; most blocks are shorter. Stored and fixed blocks are not found at all."""
AHEAD = 32
"""The search begins before a multiple of the spacing: by this fraction of it."""
COMPARED = 4 << 10
"""A point is correct if so many bytes of content from there equal what was decompressed before."""
RAW, MEMBER = -15, 31
"""The forms of data for the decompressor: deflate blocks alone, or a member with header and trailer."""
TRAILER = 8
"""Bytes after the blocks of a member."""


class GzipContent:
    """Decompresses a gzip file piece by piece, from the beginning or from a point of its index.

    Members that follow one another are read as one file; zeros may pad its end. Every member is checked against its
    CRC-32 if it is read from its beginning, and every section of the content against that of the index.
    """

    def __init__(
        self, source: Seekable, path: str, index: GzipIndex | None = None, at: int = 0, spacing: int | None = None
    ) -> None:
        """Start at the last point before `at`; without `index`, at the beginning.

        With `spacing`, make an index while reading.
        """
        number, point = (0, BEGINNING) if index is None else index.point_before(at)
        self._source = source
        self._path = path
        self._buffer = memoryview(bytearray(READ))
        """Holds compressed bytes that were read."""
        self._next = self._end = 0
        """Where those are that are not yet decompressed."""
        self.place = point.bit // 8
        """The position in the file of the next byte to decompress."""
        self.position = point.content
        """The position in the content of the next piece."""
        self._inflate: Any = None
        """The decompressor; None between two members."""
        self._is_raw = False
        """Whether it began within a member, whose trailer it leaves."""
        self._check = None if index is None else _Check(index, number)
        self._points = None if spacing is None else _Points(spacing)
        source.seek(self.place)
        if point.window is not None:
            self._resume(point.bit % 8, point.window)

    @property
    def index(self) -> GzipIndex | None:
        """The index that was made while reading, once all is read; None if none was to be made."""
        return None if self._points is None else self._points.index(self.position)

    def pieces(self) -> Iterator[bytes]:
        """Yield the content up to its end. Raise CompressionBroken, with the position, where the file is damaged."""
        while self._inflate is not None or self._begin_member():
            is_wanted = self._points is not None and self._points.is_wanted(self.position)
            piece = self._piece_with_point() if is_wanted else self._decompress(self._take(FED))
            if self._check is not None and not self._check.holds(piece, self.position):
                raise self._broken("its content differs from what was read before")
            if self._points is not None:
                self._points.follow(piece)
            self.position += len(piece)
            if piece:
                yield piece
        if self._check is not None and self.position != self._check.end:
            raise self._broken(f"its content ends there, and had {self._check.end} bytes before")

    def _begin_member(self) -> bool:
        """Start the next member; return False at the end of the file."""
        first = bytes(self._peek(1))
        if not first:
            return False
        # Tapes and block devices pad files to whole blocks. A file that begins with zeros is no gzip file.
        if first == b"\0" and self.place:
            self._skip_padding()
            return False
        if self._points is not None and self._points.is_wanted(self.position):
            self._points.add(self.place * 8, self.position, None, b"")
        self._inflate = _zlib.decompressobj(MEMBER)
        return True

    def _skip_padding(self) -> None:
        while padding := self._take(FED):
            if bytes(padding).strip(b"\0"):
                raise self._broken("what follows its last member is no gzip member")

    def _resume(self, bit: int, window: bytes) -> None:
        """Start within a member: at a bit of the next byte."""
        self._inflate, self._is_raw = _zlib.decompressobj(RAW, window), True
        first = bytes(self._take(1))
        self._decompress(aligned(first, bit) if first else b"")

    def _decompress(self, data: bytes | memoryview) -> bytes:
        """Decompress bytes; those after the end of a member are put back."""
        if not data:
            raise self._broken("it ends within a member")
        try:
            content: bytes = self._inflate.decompress(data)
        except _DAMAGED as fault:
            raise self._broken(str(fault)) from fault
        if self._inflate.eof:
            unused = len(self._inflate.unused_data)
            self._next -= unused
            self.place -= unused
            # A decompressor of blocks alone ends before the trailer of the member.
            if self._is_raw and len(self._take(TRAILER)) < TRAILER:
                raise self._broken("it ends within a member")
            self._inflate, self._is_raw = None, False
        return content

    def _piece_with_point(self) -> bytes:
        """Decompress a little, and search for the beginning of a block there."""
        assert self._points is not None, "points are searched only for an index"
        searched = bytes(self._peek(SEARCHED + COMPARED))
        if len(searched) < SEARCHED + COMPARED:
            return self._decompress(self._take(FED))
        begin, content, starts = self.place, bytearray(), []
        for start in block_starts(searched, SEARCHED):
            content += self._decompress_up_to(begin - (-start // 8))
            starts.append((start, len(content)))  # every code before the start is decompressed, and none after it
        content += self._decompress_up_to(begin + len(searched))
        before = self._points.window
        for start, place in starts:
            window = (before + content[max(0, place - WINDOW) : place])[-WINDOW:]
            if _continues(searched, start, window, content[place : place + COMPARED]):
                self._points.add(begin * 8 + start, self.position + place, window, bytes(content[:place]))
                return bytes(content)
        self._points.miss(self.position)
        return bytes(content)

    def _decompress_up_to(self, position: int) -> bytes:
        """Decompress bytes up to a position in the file, or to the end of the member."""
        count = position - self.place
        return self._decompress(self._take(count)) if count > 0 and self._inflate is not None else b""

    def _peek(self, count: int) -> memoryview:
        """The next compressed bytes, fewer than `count` only at the end of the file; valid until the next call."""
        if self._end - self._next < count:
            rest = bytes(self._buffer[self._next : self._end])
            self._next, self._end = 0, len(rest)
            self._buffer[: len(rest)] = rest
            while self._end < count and (got := self._source.readinto(self._buffer[self._end :]) or 0):
                self._end += got
        return self._buffer[self._next : min(self._end, self._next + count)]

    def _take(self, count: int) -> memoryview:
        """Take up to `count` compressed bytes."""
        taken = self._peek(count)
        self._next += len(taken)
        self.place += len(taken)
        return taken

    def _broken(self, reason: str) -> CompressionBroken:
        return CompressionBroken(self._path, "gzip", reason, self.place, self.position)


def _continues(compressed: bytes, start: int, window: bytes | bytearray, content: bytes | bytearray) -> bool:
    """Whether decompression that starts at a bit of the compressed bytes gives this content."""
    try:
        beginning = _zlib.decompressobj(RAW, bytes(window)).decompress(
            aligned(compressed[start // 8 :], start % 8), COMPARED
        )
    except _DAMAGED:
        return False
    return len(beginning) == COMPARED and content.startswith(beginning)


class _Points:
    """Collects the points of an index."""

    def __init__(self, spacing: int) -> None:
        self._spacing = spacing
        self._points: list[Point] = []
        self._next = self._next_after(0)
        """Where in the content to search next."""
        self._misses = 0
        """Searches that found nothing since the last point."""
        self._checksum = 0
        """The CRC-32 of the content since the last point, as far as `follow` saw it."""
        self._counted = 0
        """Bytes of the next piece that lie before the last point."""
        self._last: deque[bytes] = deque()
        """The last pieces of the content, as many as a window needs."""
        self._kept = 0
        """Their bytes."""

    @property
    def window(self) -> bytes:
        """The last bytes of the content."""
        return b"".join(self._last)[-WINDOW:]

    def is_wanted(self, position: int) -> bool:
        """Whether to search for a point at or after this position of the content."""
        return position >= self._next

    def add(self, bit: int, content: int, window: bytes | None, before: bytes) -> None:
        """Add a point; `before` is the beginning of the next piece, up to the point."""
        self._points.append(Point(bit, content, _zlib.crc32(before, self._checksum), window))
        self._next, self._misses = self._next_after(content), 0
        self._checksum, self._counted = 0, len(before)

    def _next_after(self, position: int) -> int:
        """Where to search after a point: a little before a multiple of the spacing, at which blocks tend to start."""
        ahead = self._spacing // AHEAD
        return ((position + ahead) // self._spacing + 1) * self._spacing - ahead

    def miss(self, position: int) -> None:
        """Take note of a search that found nothing. After several in a row, search at ever greater distances."""
        self._misses += 1
        if self._misses % SEARCHES == 0:
            self._next = position + self._spacing * 2 ** (self._misses // SEARCHES)

    def follow(self, piece: bytes) -> None:
        """Take note of the next piece of the content."""
        self._checksum = _zlib.crc32(memoryview(piece)[self._counted :], self._checksum)
        self._counted = 0
        self._last.append(piece)
        self._kept += len(piece)
        while self._kept - len(self._last[0]) >= WINDOW:
            self._kept -= len(self._last.popleft())

    def index(self, content_length: int) -> GzipIndex:
        return GzipIndex(tuple(self._points), content_length, self._checksum)


class _Check:
    """Compares the content with the checksums of an index, section by section."""

    def __init__(self, index: GzipIndex, number: int) -> None:
        self._index = index
        self._number = number
        self._checksum = 0
        self.end = index.content_length

    def holds(self, piece: bytes, position: int) -> bool:
        """Whether the sections that end in a piece of the content, at a position, have the right checksums."""
        rest = memoryview(piece)
        while rest:
            end, checksum = self._index.section_end(self._number)
            part = rest[: end - position]
            if not part:
                return False
            rest, position = rest[len(part) :], position + len(part)
            self._checksum = _zlib.crc32(part, self._checksum)
            if position == end:
                if self._checksum != checksum:
                    return False
                if self._number < len(self._index.points):
                    self._number, self._checksum = self._number + 1, 0
        return True
