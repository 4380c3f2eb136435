"""Rows whose quoted values may contain newlines.

Only a quote at the beginning of a value opens it, and only a quote that is not doubled closes it. So whether a newline
ends a row depends on all quotes before it: a file is scanned from its beginning, or from a row whose start is known.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dagkit_operators.contexts.chunk import Chunk
from dagkit_operators.contexts.encodings import Encoding
from dagkit_operators.contexts.lines import LineTooLong
from dagkit_operators.filesystem.access import Seekable, filled
from dagkit_operators.native.bytewise import offsets_of

if TYPE_CHECKING:  # compiling alone does not load numpy
    import numpy as np
    import numpy.typing as npt

    from dagkit_operators.native.bytewise import Places

    Units = npt.NDArray[np.unsignedinteger[Any]]

SCANNED = 4 << 20
"""Bytes that are scanned for quotes at a time."""
REMEMBERED = 64
"""The number of files whose row starts a process remembers."""


class RowStarts:
    """Positions of a file at which rows start, in order: one for each piece that was scanned or read."""

    def __init__(self) -> None:
        self._places = [0]

    def add(self, place: int) -> None:
        """Note that a row starts there."""
        index = bisect_left(self._places, place)
        if index == len(self._places) or self._places[index] != place:
            self._places.insert(index, place)

    def before(self, place: int) -> int:
        """The last known start of a row at or before a position."""
        return self._places[bisect_right(self._places, place) - 1]


@lru_cache(REMEMBERED)
def remembered(version: Hashable) -> RowStarts:  # noqa: ARG001 - it distinguishes files
    """Where rows of a version of a file start, as far as this process knows."""
    return RowStarts()


@dataclass(frozen=True, slots=True)
class Marks:
    """The characters that matter for where rows end, as numbers of units of the encoding."""

    separator: int
    quote: int
    row_end: int
    """The last character of a row: a newline, or a carriage return."""
    other_end: int
    """The other one of these two. A quote after it opens a value, so that a value never begins a row by itself."""

    @classmethod
    def of(cls, encoding: Encoding, separator: str, quote: str, row_end: str) -> "Marks":
        """The units of these characters in an encoding."""
        other_end = "\r" if row_end == "\n" else "\n"
        codes = [character.encode(encoding.name) for character in (separator, quote, row_end, other_end)]
        return cls(*(int.from_bytes(code, encoding.order) for code in codes))

    def quotes_in(self, units: "Units") -> "Places":
        """Where the quotes are."""
        return _places(units, self.quote)

    def are_strict(self, units: "Units", quotes: "Places", first: int) -> bool:
        """Whether each quote that opens a value begins it, and each one that closes a value ends it.

        The units start with a row, whose first value begins at `first`.
        """
        import numpy as np  # noqa: PLC0415 - not loaded when only compiling

        opening, closing = quotes[0::2], quotes[1::2]
        before = units[np.maximum(opening - 1, 0)]
        begins = self._may_begin(before) | (before == self.quote) | (opening == first)
        begins[:1] &= (before[:1] != self.quote) | (opening[:1] == first)  # no value was closed before the first quote
        after = units[np.minimum(closing + 1, len(units) - 1)]
        ends = (after == self.separator) | (after == self.row_end) | (after == self.other_end)
        ends |= (after == self.quote) | (closing == len(units) - 1)
        return bool(begins.all() and ends.all())

    def _may_begin(self, before: "Units") -> "npt.NDArray[np.bool_]":
        """Whether a value may begin after each of these units."""
        ends: npt.NDArray[np.bool_] = (before == self.row_end) | (before == self.other_end) | (before == self.separator)
        return ends

    def are_whole(self, units: "Units", quotes: "Places", offsets: "Places") -> bool:
        """Whether no row between these offsets has a newline or a carriage return before its end, outside of quotes."""
        import numpy as np  # noqa: PLC0415 - not loaded when only compiling

        for end in (self.row_end, self.other_end):
            after = _places(units, end) + 1
            after = after[offsets[np.searchsorted(offsets, after)] != after] if len(after) else after
            following = units[after]
            after = after[(following != self.row_end) & (following != self.other_end)]
            if (np.searchsorted(quotes, after) % 2 == 0).any():
                return False
        return True

    def row_ends(self, units: "Units", first: int) -> "Places":
        """The ends of rows. A quote within a value that is not quoted has no meaning."""
        import numpy as np  # noqa: PLC0415 - not loaded when only compiling

        places, quotes = _places(units, self.row_end), self.quotes_in(units)
        if not len(quotes):
            return places + 1
        # If all quotes are where they belong, a newline is outside of quotes after an even number of them: numpy finds
        # that for all newlines at once.
        if self.are_strict(units, quotes, first):
            ends_row = np.searchsorted(quotes, places) % 2 == 0
        else:
            opened, closed = self._quoted_values(units, quotes, first)
            within = np.searchsorted(opened, places) - 1
            ends_row = (within < 0) | (places > closed[np.maximum(within, 0)])
        ends: Places = places[ends_row] + 1
        return ends

    def _quoted_values(self, units: "Units", quotes: "Places", first: int) -> "tuple[Places, Places]":
        """Where the quoted values begin and end, one after the other; slow, for content with quotes elsewhere."""
        import numpy as np  # noqa: PLC0415 - not loaded when only compiling

        before = units[np.maximum(quotes - 1, 0)]
        begins = (self._may_begin(before) | (quotes == first)).tolist()
        places = [*quotes.tolist(), len(units)]
        opened, closed, index = [], [], 0
        while index < len(quotes):
            if begins[index]:
                opened.append(places[index])
                index += 1
                while index + 1 < len(quotes) and places[index + 1] == places[index] + 1:
                    index += 2  # a doubled quote
                closed.append(places[index])
            index += 1
        return np.array(opened or [len(units)]), np.array(closed or [len(units)])


@dataclass(frozen=True, slots=True)
class Quoted:
    """How quoted rows are found in a stream."""

    stream: Seekable
    encoding: Encoding
    """With the byte order of the file."""
    marks: Marks
    known: RowStarts
    size: int
    """Bytes that are read at a time."""
    longest: int
    """The most bytes of a row."""

    def row_at(self, start: int) -> int | None:
        """The start of the first row that starts at or after a position; None if there is none.

        Scans the file from the last known start of a row before it.
        """
        import numpy as np  # noqa: PLC0415 - not loaded when only compiling

        place = self.known.before(start)
        if place == start:
            return start
        for base, _, ends in self._rows(place, min(SCANNED, max(self.size, start - place))):
            if base + int(ends[-1]) >= start:
                return base + int(ends[np.searchsorted(ends, start - base)])
        return None

    def chunks(self, start: int, end: int) -> Iterator[Chunk]:
        """The rows that start in `[start, end)`; the last one is read to its end. A row starts at `start`."""
        import numpy as np  # noqa: PLC0415 - not loaded when only compiling

        for base, content, ends in self._rows(start, self.size):
            offsets = np.concatenate(([0], ends))
            starting = int(np.searchsorted(offsets[:-1], end - base))
            if starting:
                data = np.frombuffer(content, np.uint8)[: int(offsets[starting])]
                end_of_row = self.marks.row_end.to_bytes(self.encoding.unit, self.encoding.order)
                yield Chunk(data, base, end_of_row, offsets[: starting + 1])
            if base + int(ends[-1]) >= end:
                return

    def _rows(self, start: int, size: int) -> "Iterator[tuple[int, bytes, Places]]":
        """Whole rows with the position of the first one, and their ends in these bytes. A row starts at `start`."""
        import numpy as np  # noqa: PLC0415 - not loaded when only compiling

        self.stream.seek(start)
        rest, base, ended = b"", start, False
        while not ended:
            content, ended = self._more(rest, base, size)
            ends = self._ends(content, base)
            if ended and len(content) > (ends[-1] if len(ends) else 0):
                ends = np.append(ends, len(content))
            if not len(ends):
                rest = content
                continue
            last = int(ends[-1])
            self.known.add(base + last)
            yield base, content, ends
            rest, base = content[last:], base + last

    def _ends(self, content: bytes, base: int) -> "Places":
        """The ends of rows."""
        import numpy as np  # noqa: PLC0415 - not loaded when only compiling

        unit, mark = self.encoding.unit, self.encoding.mark
        kind = np.dtype(f"{'>' if self.encoding.order == 'big' else '<'}u{unit}")
        units: Units = np.frombuffer(content, kind, len(content) // unit)
        first = len(mark) // unit if base == 0 and mark and content.startswith(mark) else 0
        return self.marks.row_ends(units, first).astype(np.int64) * unit

    def _more(self, rest: bytes, base: int, size: int) -> tuple[bytes, bool]:
        """`rest` with the bytes that follow, as many again if no row ended in it; and whether the stream ended."""
        if len(rest) >= self.longest:
            raise LineTooLong(base, self.longest)
        buffer = memoryview(bytearray(max(size, len(rest))))
        count = filled(self.stream, buffer)
        return rest + buffer[:count].tobytes(), count < len(buffer)


def _places(units: "Units", unit: int) -> "Places":
    """The positions of a unit."""
    import numpy as np  # noqa: PLC0415 - not loaded when only compiling

    if units.dtype == np.uint8:
        return offsets_of(units, unit)[1:] - 1
    return np.flatnonzero(units == unit)
