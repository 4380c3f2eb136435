"""Lines that are found otherwise than by one delimiter of single bytes.

`run_chunks` finds lines that end with a run of carriage returns and newlines, however long, as those of Malhar's
readers do. `wide_chunks` finds lines of text whose units have several bytes, such as UTF-16: a delimiter starts at a
multiple of the unit.
"""

import re
from collections.abc import Iterator

from dagkit_operators.contexts.chunk import Chunk
from dagkit_operators.contexts.lines import LineTooLong
from dagkit_operators.filesystem.access import Seekable, filled
from dagkit_operators.native.bytewise import places_in

_RUN = re.compile(rb"[\r\n]+")


def run_chunks(
    stream: Seekable, start: int, end: int | None, *, size: int, longest: int, at_line: bool = False
) -> Iterator[Chunk]:
    """The lines that start in `[start, end)`; if `end` is None, all that start at or after `start`.

    With `at_line`, the bytes at `start` begin a line, whatever lies before them.
    """
    import numpy as np  # noqa: PLC0415 - not loaded when only compiling

    for base, lines in _lines_with_runs(stream, start, size, longest, at_line=at_line):
        offsets = [0, *(run.end() for run in _RUN.finditer(lines))]
        if offsets[-1] < len(lines):
            offsets.append(len(lines))
        places = np.array(offsets, places_in(len(lines)))
        chunk = Chunk(np.frombuffer(lines, np.uint8), base, b"\n", places, is_ended=lines[-1:] in (b"\r", b"\n"))
        if end is not None and base + chunk.last_start >= end:
            starting = int(np.searchsorted(chunk.starts, end - base))
            if starting:
                yield chunk.up_to(starting)
            return
        yield chunk
        if end is not None and base + len(lines) >= end:
            return


def collapsed(chunk: Chunk) -> Chunk:
    """The lines, each with one newline at its end."""
    import numpy as np  # noqa: PLC0415 - not loaded when only compiling

    lines = _RUN.sub(b"\n", chunk.data.tobytes())
    data = np.frombuffer(lines if lines.endswith(b"\n") else lines + b"\n", np.uint8)
    return Chunk(data, chunk.base, b"\n")


def _lines_with_runs(
    stream: Seekable, start: int, size: int, longest: int, *, at_line: bool
) -> Iterator[tuple[int, bytes]]:
    """Whole lines, with the position of the first, from the first line at or after `start` to the end of the stream."""
    is_found = at_line or start == 0
    base = start if is_found else start - 1  # a run that ends at `start` shows that a line starts there
    stream.seek(base)
    buffer, pending, is_ended = memoryview(bytearray(size)), b"", False
    while not is_ended:
        count = filled(stream, buffer)
        is_ended = count < size
        pending += buffer[:count]
        if not is_found:
            skipped, is_found = _to_first_run(pending, is_ended=is_ended)
            base, pending = base + skipped, pending[skipped:]
        # The last run may go on in the next bytes, so only lines before the last one are certain.
        whole = 0 if not is_found else len(pending) if is_ended else _last_start(pending)
        if whole:
            yield base, pending[:whole]
            base, pending = base + whole, pending[whole:]
        if len(pending) > longest:
            raise LineTooLong(base, longest)


def _to_first_run(pending: bytes, *, is_ended: bool) -> tuple[int, bool]:
    """How many bytes belong to no line that starts here, and whether the first line follows them."""
    run = _RUN.search(pending)
    if run is None:
        return len(pending), False
    if run.end() < len(pending) or is_ended:
        return run.end(), True
    # The run may continue in the next bytes, and the line starts after all of it.
    return run.start(), False


def _last_start(pending: bytes) -> int:
    """The start of the last line, which may not be complete; 0 if it is the only one."""
    body = pending.rstrip(b"\r\n")
    return max(body.rfind(b"\n"), body.rfind(b"\r")) + 1


def wide_chunks(
    stream: Seekable,
    start: int,
    end: int | None,
    delimiter: bytes,
    *,
    unit: int,
    size: int,
    longest: int,
    at_line: bool = False,
) -> Iterator[Chunk]:
    """The lines that start in `[start, end)`; if `end` is None, all that start at or after `start`.

    With `at_line`, a line begins with the first unit at or after `start`, whatever lies before it.
    """
    import numpy as np  # noqa: PLC0415 - not loaded when only compiling

    for base, lines, ends in _wide_lines(stream, start, delimiter, unit, size=size, longest=longest, at_line=at_line):
        # those that start before the end; the last of them may exceed it
        count = len(ends) if end is None else sum(base + end_of_line < end for end_of_line in (0, *ends[:-1]))
        if count:
            places = np.array([0, *ends[:count]], places_in(len(lines)))
            data = np.frombuffer(lines, np.uint8)[: ends[count - 1]]
            is_ended = ends[count - 1] < len(lines) or lines.endswith(delimiter)
            yield Chunk(data, base, delimiter, places, is_ended=is_ended)
        if end is not None and base + len(lines) >= end:
            return


def _wide_lines(
    stream: Seekable, start: int, delimiter: bytes, unit: int, *, size: int, longest: int, at_line: bool
) -> Iterator[tuple[int, bytes, list[int]]]:
    """Whole lines, with the position of the first, and the end of each."""
    is_found = at_line or start == 0
    # Units start at multiples of their length. A delimiter that ends at `start` begins before it.
    base = start + -start % unit if is_found else max(0, start - len(delimiter)) // unit * unit
    stream.seek(base)
    buffer, pending, is_ended = memoryview(bytearray(max(size, unit))), b"", False
    while not is_ended:
        count = filled(stream, buffer)
        is_ended = count < len(buffer)
        pending += buffer[:count]
        if not is_found:
            skipped, is_found = _to_first_line(pending, start - base, delimiter, unit)
            base, pending = base + skipped, pending[skipped:]
        ends = list(_ends(pending, delimiter, unit)) if is_found else []
        if is_found and is_ended and len(pending) > max(ends, default=0):
            ends.append(len(pending))
        if ends:
            yield base, pending[: ends[-1]], ends
            base, pending = base + ends[-1], pending[ends[-1] :]
        if len(pending) > longest:
            raise LineTooLong(base, longest)


def _to_first_line(pending: bytes, least: int, delimiter: bytes, unit: int) -> tuple[int, bool]:
    """How many bytes belong to no line that starts at or after `least`, and whether the first line follows them."""
    for end in _ends(pending, delimiter, unit):
        if end >= least:
            return end, True
    return max(0, len(pending) - len(delimiter)) // unit * unit, False  # the rest may begin a delimiter


def _ends(lines: bytes, delimiter: bytes, unit: int) -> Iterator[int]:
    """The end of each delimiter."""
    place = lines.find(delimiter)
    while place >= 0:
        if place % unit == 0:
            yield place + len(delimiter)
        place = lines.find(delimiter, place + (1 if place % unit else len(delimiter)))
