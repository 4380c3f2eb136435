"""Rows whose quoted values may contain newlines: a newline ends a row unless an odd number of quotes precedes it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dagkit_operators.contexts.chunk import Chunk
from dagkit_operators.contexts.lines import LineTooLong, filled
from dagkit_operators.filesystem.access import Seekable

if TYPE_CHECKING:  # compiling alone does not load numpy
    from dagkit_operators.native.bytewise import Bytes, Places

SCANNED = 4 << 20
"""Bytes that are scanned for quotes at a time."""


@dataclass(frozen=True, slots=True)
class Quoted:
    """How quoted rows are found in a stream."""

    stream: Seekable
    quote: str
    size: int
    """Bytes that are read at a time."""
    longest: int
    """The most bytes of a row."""

    def begins_inside(self, start: int) -> bool | None:
        """Whether a position lies within quotes. None if a row starts there. Scans the file from its beginning."""
        buffer = memoryview(bytearray(min(SCANNED, max(1, start))))
        self.stream.seek(0)
        quotes = place = 0
        last = b"\n"
        while place < start:
            count = filled(self.stream, buffer[: start - place])
            if not count:
                break
            seen = buffer[:count].tobytes()
            quotes += seen.count(self.quote.encode())
            last = seen[-1:]
            place += count
        is_inside = quotes % 2 == 1
        return None if last == b"\n" and not is_inside else is_inside

    def chunks(self, start: int, end: int, is_inside: bool | None) -> Iterator[Chunk]:  # noqa: FBT001 - of three values
        """The rows that start in `[start, end)`; the last one is read to its end.

        `is_inside`: whether the first byte lies within quotes, so that the rest of a row is skipped; None: it starts a
        row.
        """
        import numpy as np  # noqa: PLC0415 - not loaded when only compiling

        self.stream.seek(start)
        kept, base, skips, inside = b"", start, is_inside is not None, bool(is_inside)
        while base < end:
            content, ended = self._more(kept, base)
            data = np.frombuffer(content, np.uint8)
            ends = _ends(data, self.quote, inside=inside)
            if ended and len(data) and (not len(ends) or ends[-1] != len(data)):
                ends = np.append(ends, len(data))
            if not len(ends):
                if ended:
                    return
                kept = content
                continue
            offsets = np.concatenate(([0], ends))[int(skips) :]
            starting = int(np.searchsorted(base + offsets[:-1], end))
            if starting:
                first, stop = int(offsets[0]), int(offsets[starting])
                yield Chunk(data[first:stop], base + first, b"\n", offsets[: starting + 1] - first)
            if starting < len(offsets) - 1 or ended:
                return
            kept, base, skips, inside = content[int(ends[-1]) :], base + int(ends[-1]), False, False

    def _more(self, kept: bytes, base: int) -> tuple[bytes, bool]:
        """Bytes with those that follow, twice as many if no row ended in them; and whether the stream ended."""
        if len(kept) >= self.longest:
            raise LineTooLong(base, self.longest)
        buffer = memoryview(bytearray(max(self.size, len(kept))))
        count = filled(self.stream, buffer)
        return kept + buffer[:count].tobytes(), count < len(buffer)


def _ends(data: "Bytes", quote: str, *, inside: bool) -> "Places":
    """The ends of rows, after their newlines."""
    import numpy as np  # noqa: PLC0415 - not loaded when only compiling

    quotes, newlines = np.flatnonzero(data == ord(quote)), np.flatnonzero(data == ord("\n"))
    before = np.searchsorted(quotes, newlines) + inside
    ends: Places = newlines[before % 2 == 0] + 1
    return ends
