"""Consecutive lines in memory. Their positions are computed on first use, and kept.

Nothing is decoded and no line is copied: a chunk is a view of bytes, with the positions at which its lines end.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from dagkit_operators.native.bytewise import offsets_of, places_in

if TYPE_CHECKING:
    from dagkit_operators.native.bytewise import Bytes, Places


FIRST_SEARCH = 4096
"""The first search for the start of a chunk's last line, or for the ends of its first lines, covers so many bytes."""


class Chunk:
    """Consecutive whole lines with their delimiters. Valid until the next chunk is requested.

    Line ends are computed on first use, so callers that need only the bytes or the text do not pay for them. A chunk is
    also a sequence of the file positions at which its lines start; the first and the last are known before the others.
    """

    __slots__ = ("_count", "_is_ended", "_last_start", "_offsets", "_wanted", "base", "data", "delimiter", "escape")

    def __init__(
        self,
        data: "Bytes",
        base: int,
        delimiter: bytes,
        offsets: "Places | None" = None,
        escape: bytes = b"",
        *,
        wanted: bool = False,
        last_start: int | None = None,
        is_ended: bool | None = None,
        count: int | None = None,
    ) -> None:
        self.data = data
        self.base = base
        """The position of `data` in the file."""
        self.delimiter = delimiter
        self.escape = escape
        self._offsets = offsets
        self._wanted = wanted
        """Whether a caller will probably need the line ends: then `len` computes them instead of counting bytes."""
        self._count = count
        self._last_start = last_start
        self._is_ended = is_ended

    def __len__(self) -> int:
        """The number of lines."""
        if self._count is None:
            self._count = self._counted()
        return self._count

    def __getitem__(self, index: int, /) -> int:
        """The file position at which a line starts."""
        if index == 0:
            return self.base
        if index == -1:
            return self.base + self.last_start
        return self.base + int(self.starts[index])

    def _counted(self) -> int:
        # Only a plain delimiter of one byte can be counted without finding the ends.
        if self.knows_ends or self._wanted or len(self.delimiter) > 1 or self.escape:
            return len(self.offsets) - 1
        import numpy as np  # noqa: PLC0415

        return int(np.count_nonzero(self.data == self.delimiter[0])) + (not self.is_ended)

    @property
    def knows_ends(self) -> bool:
        """Whether the line ends were computed already."""
        return self._offsets is not None

    @property
    def is_ended(self) -> bool:
        """Whether the last line ends with a delimiter, as all others do."""
        if self._is_ended is None:
            self._is_ended = self._ends_with_delimiter()
        return self._is_ended

    def _ends_with_delimiter(self) -> bool:
        place = len(self.data) - len(self.delimiter)
        if self.data[-len(self.delimiter) :].tobytes() != self.delimiter:
            return False
        return not self.escape or run_before(self.data, place, self.escape) % 2 == 0

    @property
    def offsets(self) -> "Places":
        """The start of each line in `data`, and the end of the last one.

        The integers are as narrow as possible: to avoid overflow, add them to an `int`.
        """
        if self._offsets is None:
            import numpy as np  # noqa: PLC0415

            offsets = _offsets(self.data, self.delimiter, self.escape)
            self._offsets = offsets if self.is_ended else np.append(offsets, offsets.dtype.type(len(self.data)))
        return self._offsets

    @property
    def ends(self) -> "Places":
        """The end of each line in `data`, after its delimiter."""
        return self.offsets[1:]

    @property
    def starts(self) -> "Places":
        """The start of each line in `data`."""
        return self.offsets[:-1]

    @property
    def last_start(self) -> int:
        """The start of the last line in `data`."""
        if self._last_start is None:
            self._last_start = self._found_last_start()
        return self._last_start

    def _found_last_start(self) -> int:
        if self.escape or self._offsets is not None:
            return int(self.offsets[-2]) if len(self.offsets) > 1 else 0
        place = len(self.data) - (len(self.delimiter) if self.is_ended else 0)
        width = FIRST_SEARCH
        while True:
            before = max(0, place - width)
            found = self.data[before:place].tobytes().rfind(self.delimiter)
            if found >= 0:
                return before + found + len(self.delimiter)
            if not before:
                return 0
            width *= 8

    def up_to(self, count: int) -> "Chunk":
        """A chunk of the first `count` lines."""
        offsets = self.offsets[: count + 1]
        return Chunk(self.data[: int(offsets[-1])], self.base, self.delimiter, offsets, self.escape)

    def parted(self, count: int) -> "tuple[Chunk, Chunk]":
        """The first `count` lines, and the others. The others are not scanned."""
        offsets = self._first_offsets(count)[: count + 1]
        stop = int(offsets[-1])
        first = Chunk(self.data[:stop], self.base, self.delimiter, offsets, self.escape)
        known = None if self._offsets is None else self._offsets[count:] - stop
        others = Chunk(
            self.data[stop:],
            self.base + stop,
            self.delimiter,
            known,
            self.escape,
            last_start=None if self._last_start is None else self._last_start - stop,
            is_ended=self._is_ended,
            count=len(self) - count,
        )
        return first, others

    def _first_offsets(self, count: int) -> "Places":
        """The starts of at least `count` lines, and of one more line or the end of the last."""
        width = max(FIRST_SEARCH, 256 * count)
        while self._offsets is None and width < len(self.data):
            offsets = _offsets(self.data[:width], self.delimiter, self.escape)
            if len(offsets) > count:
                return offsets
            width *= 8
        return self.offsets


def run_before(data: "Bytes | bytearray", place: int, byte: bytes) -> int:
    """The number of consecutive occurrences of a byte right before a position."""
    sought, before = byte[0], place
    while before and data[before - 1] == sought:
        before -= 1
    return place - before


def _offsets(data: "Bytes", delimiter: bytes, escape: bytes) -> "Places":
    """The start of each line, and the end of the last line that has a delimiter. The data begins with a line."""
    last = len(delimiter) - 1
    if last == 0 and not escape:
        return offsets_of(data, delimiter[0])
    import numpy as np  # noqa: PLC0415

    ends = offsets_of(data[last:], delimiter[last])[1:].astype(places_in(len(data))) + last
    # The last byte of the delimiter is searched for, and the bytes before it are compared only there.
    for distance in range(1, last + 1):
        ends = ends[data[ends - 1 - distance] == delimiter[last - distance]]
    if escape:
        ends = unescaped(data, ends, len(delimiter), escape)
    return np.concatenate(([0], ends), dtype=places_in(len(data)))


def unescaped(data: "Bytes", ends: "Places", length: int, escape: bytes) -> "Places":
    """The ends whose delimiter, of `length` bytes, is not escaped."""
    import numpy as np  # noqa: PLC0415

    places = ends - length
    suspects = np.flatnonzero((places > 0) & (data[places - 1] == escape[0]))
    escaped = [index for index in suspects.tolist() if run_before(data, int(places[index]), escape) % 2]
    return np.delete(ends, escaped)


FIRST_CLAIM = 16
"""Lines of the first claim of a block, when the time that a line takes is still unknown."""
ENOUGH_LINES = 64
"""With fewer lines, the cost of the claim itself would distort the time measured for each line."""
CLAIM_SECONDS = 0.005
"""Target time for the lines of one claim: if lines get a hundred times slower, a claim takes half a second."""
QUICK_SECONDS = 5e-6
"""Lines that take at most this long each are claimed by whole chunks: smaller claims would cost more than the lines."""
SHORTEST_SECONDS = 1e-9
"""A lower bound for measured times, since a coarse clock may return 0."""
GROWTH = 8
"""The maximum growth from one claim to the next."""


class ClaimPace:
    """How many records the next claim may have, by the time that the last ones took."""

    def __init__(self, first: int = FIRST_CLAIM) -> None:
        self.most: int | None = first
        """None: as many as were read at once."""

    def took(self, records: int, seconds: float) -> None:
        """Adapt the next claim to the time that the last records took."""
        if records >= ENOUGH_LINES and seconds <= records * QUICK_SECONDS:
            self.most = None
        else:
            self.most = max(1, min(GROWTH * records, int(records * CLAIM_SECONDS / max(seconds, SHORTEST_SECONDS))))


def in_portions(reading: Iterable[Chunk], now: Callable[[], float] = time.perf_counter) -> Iterator[Chunk]:
    """Divide chunks into parts that are claimed at once."""
    # A claim is not split. A mebibyte of lines that take a millisecond each would keep its slot for ten seconds, so
    # slow lines get small parts. The caller has processed a part when it requests the next one.
    pace = ClaimPace()
    for chunk in reading:
        rest: Chunk | None = chunk
        while rest is not None:
            most = pace.most
            part, rest = (rest, None) if most is None or len(rest) <= most else rest.parted(most)
            lines, began = len(part), now()
            yield part
            pace.took(lines, now() - began)
