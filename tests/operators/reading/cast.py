"""Files and their blocks, and what readers make of them."""

from pathlib import Path
from typing import Any

from dagkit import Block
from dagkit.testing import Alone
from dagkit_operators import FileInfo, MatchFiles
from tests.old_files import aged


def written(folder: Path, content: bytes | str, name: str = "file") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return aged(path)


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
