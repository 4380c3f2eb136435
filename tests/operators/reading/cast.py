"""Files and their blocks, what readers make of them, and what the lines of a file are, found a second time."""

import io
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from dagkit import Block
from dagkit.testing import Alone
from dagkit_operators import FileInfo, LineReader, MatchFiles
from tests.old_files import old_file

SIZES = (1, 2, 3, 5, 8192)
"""Bytes read at a time."""


def written(folder: Path, content: bytes | str, name: str = "file") -> Path:
    return old_file(folder / name, content)


def blocks_of(path: Path, size: int | None = None) -> list[Block]:
    """A file in blocks of a size, or as one block, as a splitter describes them."""
    length, millis = path.stat().st_size, path.stat().st_mtime_ns // 10**6
    size = size or length
    return [
        Block(
            number,
            str(path),
            start,
            min(start + size, length),
            start + size >= length,
            facts={"length": length, "modified_millis": millis},
            previous_block_id=number - 1 if number else None,
        )
        for number, start in enumerate(range(0, length, size))
    ]


def block_of(folder: Path, content: bytes | str, name: str = "file") -> Block:
    """A file of this content as one block."""
    (block,) = blocks_of(written(folder, content, name))
    return block


def found(path: Path) -> FileInfo:
    """A file as `MatchFiles` describes it."""
    alone = Alone(MatchFiles())
    alone.work(str(path))
    (file,) = alone.sent()
    return file


def values(reader: Alone[Any]) -> list[Any]:
    """The values of the records that a reader sent."""
    return [record.value for record in reader.sent()]


def read(reader: Any, *blocks: Block) -> list[Any]:
    """The values of the records that a reader makes of blocks in one window."""
    alone = reader if isinstance(reader, Alone) else Alone(reader)
    with alone.window():
        for block in blocks:
            assert alone.work(block) is None
    return values(alone)


def plainly(content: bytes, delimiter: bytes = b"\n", escape: bytes = b"", *, returns: bool = True) -> list[bytes]:
    """The lines of a file, found byte by byte: too slow to be used, and too plain to be wrong."""
    lines = []
    start = place = 0
    is_escaped = is_return = False
    while place < len(content):
        if content.startswith(delimiter, place) and not is_escaped:
            lines.append(content[start : place - is_return])
            start = place = place + len(delimiter)
            is_escaped = is_return = False
        else:
            byte = content[place : place + 1]
            is_return = byte == b"\r" and not (returns or is_escaped)
            is_escaped = byte == escape and not is_escaped
            place += 1
    return [*lines, content[start:]] if start < place else lines


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
