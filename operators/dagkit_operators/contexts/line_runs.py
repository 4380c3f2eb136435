"""Lines that end with a run of carriage returns and newlines, however long, as those of Malhar's readers do."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dagkit_operators.contexts.chunk import Chunk
from dagkit_operators.contexts.lines import LineTooLong, filled
from dagkit_operators.contexts.reader_context import binary_array
from dagkit_operators.filesystem.access import Seekable
from dagkit_operators.native.bytewise import offsets_of, places_in

if TYPE_CHECKING:
    import pyarrow as pa

_RUN = re.compile(rb"[\r\n]+")


def run_chunks(
    stream: Seekable, start: int, end: int | None, *, size: int, longest: int, at_line: bool = False
) -> Iterator[Chunk]:
    """The lines that start in `[start, end)`; if `end` is None, all that start at or after `start`.

    With `at_line`, the bytes at `start` begin a line, whatever lies before them.
    """
    import numpy as np  # noqa: PLC0415 - not loaded when only compiling

    for base, lines in _lines(stream, start, size, longest, at_line=at_line):
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


def collapsed(chunk: Chunk) -> "pa.BinaryArray | pa.LargeBinaryArray":
    """The lines of a chunk, each with one newline at its end."""
    import numpy as np  # noqa: PLC0415 - not loaded when only compiling

    lines = _RUN.sub(b"\n", chunk.data.tobytes())
    data = np.frombuffer(lines if lines.endswith(b"\n") else lines + b"\n", np.uint8)
    return binary_array(data, offsets_of(data, ord("\n")))


def _lines(stream: Seekable, start: int, size: int, longest: int, *, at_line: bool) -> Iterator[tuple[int, bytes]]:
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
            skipped, is_found = _to_first_line(pending, is_ended=is_ended)
            base, pending = base + skipped, pending[skipped:]
        whole = 0 if not is_found else len(pending) if is_ended else _last_start(pending)
        if whole:
            yield base, pending[:whole]
            base, pending = base + whole, pending[whole:]
        if len(pending) > longest:
            raise LineTooLong(base, longest)


def _to_first_line(pending: bytes, *, is_ended: bool) -> tuple[int, bool]:
    """How many bytes belong to no line that starts here, and whether the first line follows them."""
    run = _RUN.search(pending)
    if run is None:
        return len(pending), False
    if run.end() < len(pending) or is_ended:
        return run.end(), True
    return run.start(), False


def _last_start(pending: bytes) -> int:
    """The start of the last line, which may not be complete; 0 if it is the only one."""
    body = pending.rstrip(b"\r\n")
    return max(body.rfind(b"\n"), body.rfind(b"\r")) + 1
