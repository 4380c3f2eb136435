"""Reading text in tests: what the lines of a file are, said a second time, and how stretches of one are read."""

import io
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from dagkit import Block
from dagkit_operators import LineReader
from dagkit_operators.contexts.lines import chunks

SIZES = (1, 2, 3, 5, 8192)
"""Bytes read at a time."""


class Line(NamedTuple):
    """A line as it stands in its file, and as a record."""

    whole: bytes
    value: bytes


def plainly(content: bytes, delimiter: bytes = b"\n", escape: bytes = b"", *, returns: bool = True) -> list[Line]:
    """The lines of a file, found byte by byte: too slow to be used, and too plain to be wrong."""
    lines = []
    start = place = 0
    is_escaped = is_return = False
    while place < len(content):
        if content.startswith(delimiter, place) and not is_escaped:
            value = content[start : place - 1] if is_return else content[start:place]
            lines.append(Line(content[start : place + len(delimiter)], value))
            start = place = place + len(delimiter)
            is_escaped = is_return = False
        else:
            byte = content[place : place + 1]
            is_return = byte == b"\r" and not (returns or is_escaped)
            is_escaped = byte == escape and not is_escaped
            place += 1
    return [*lines, Line(content[start:], content[start:])] if start < place else lines


def lines(
    content: bytes, stretch: tuple[int, int | None], delimiter: bytes = b"\n", escape: bytes = b"", size: int = 8192
) -> list[bytes]:
    """The lines of a stretch, delimiters included."""
    found = []
    for chunk in chunks(io.BytesIO(content), *stretch, delimiter, escape=escape, size=size):
        data, ends = chunk.data.tobytes(), [0, *chunk.ends.tolist()]
        found += [data[a:b] for a, b in pairwise(ends)]
    return found


def records(reader: LineReader, content: bytes, edges: Sequence[int]) -> list[bytes]:
    """What a reader makes of the stretches between edges, each with a tracker of its own."""
    return [value for start, end in pairwise(edges) for value in _records(reader, content, start, end)]


def _records(reader: LineReader, content: bytes, start: int, end: int) -> Iterator[bytes]:
    block = Block(0, "", start, end)
    tracker = reader.tracker(block, reader.initial_restriction(block))
    for batch in reader.reader_context.batches(io.BytesIO(content), block, tracker):
        for value in batch.column("value").values():
            yield value.encode("utf-8", "surrogateescape")
    tracker.check_done()


def edges_of(content: bytes, width: int) -> list[int]:
    """Where a file is cut into blocks of a width."""
    return [*range(0, len(content), width), len(content)]
