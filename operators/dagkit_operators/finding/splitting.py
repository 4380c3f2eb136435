"""Dividing files into blocks, for every splitter."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from pydantic import PositiveInt, PrivateAttr

from dagkit import Block, Context, Operator, OutputPort, State
from dagkit.urls import plain
from dagkit_operators.filesystem.access import Found, directory_at, looked_up
from dagkit_operators.filesystem.block_sizes import block_size_of
from dagkit_operators.payloads import FileMetadata

BLOCKS_THRESHOLD = 1000
"""The default number of blocks for each window."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The file that is being split, and the start of its next block."""

    path: str
    length: int
    modified_millis: int
    version: str
    """Distinguishes this reading of the file from others, in the ledger."""
    next_start: int
    content: str = ""
    """How the file's object store names its content."""
    sequential: bool = False
    """Whether the file is one block."""
    first_start: int = 0

    def blocks(self, size: int, first_id: int) -> Iterator[Block]:
        """The blocks from the next start to the end; each but the last ends at a multiple of the size."""
        facts: dict[str, Any] = {"length": self.length, "modified_millis": self.modified_millis}
        facts |= {"version": self.content} if self.content else {}
        facts |= {"sequential": True} if self.sequential else {}
        start, number = self.next_start, first_id
        while start < self.length:
            end = self.length if self.sequential else min((start // size + 1) * size, self.length)
            previous = number - 1 if start > self.first_start else None
            yield Block(number, self.path, start, end, end == self.length, self.version, facts, previous)
            start, number = end, number + 1

    def after(self, end: int) -> "Cut | None":
        """The rest of the file from an end of a block; None if there is none."""
        return replace(self, next_start=end) if end < self.length else None


class SplitsFiles(Operator):
    """What all splitters have: their outputs and properties, and the division of a file into blocks.

    Override `get_file_status`, `get_default_block_size` and `get_data_offset` for files of another kind.
    """

    partitionable = False
    files_metadata_output = OutputPort(FileMetadata)
    blocks_metadata_output = OutputPort(Block, main=True)

    block_size: PositiveInt | None = None
    """Bytes of a block; None: 128 MiB on HDFS, else 64 MiB."""
    blocks_threshold: PositiveInt | None = None
    """The most blocks, and the most files, sent in one window; None: 1000."""
    sequential_file_read: bool = False
    """Whether each file is one block, which one reader at a time reads from its start to its end."""

    next_block_id = State(0)

    _context: Context | None = PrivateAttr(default=None)

    def setup(self, context: Context) -> None:
        self._context = context

    def get_file_status(self, path: str) -> Found | None:
        """The file or directory at a path as it is now; None if there is none."""
        return looked_up(path) or directory_at(path)

    def get_default_block_size(self, path: str) -> int:
        """The bytes of a block of this file if `block_size` is None."""
        return block_size_of(path)

    def get_data_offset(self, status: Found) -> int:  # noqa: ARG002 - for overrides
        """The byte at which the first block of a file starts, such as the end of a header."""
        return 0

    def _size_for(self, path: str) -> int:
        return self.block_size or self.get_default_block_size(path)

    @property
    def _most(self) -> int:
        return self.blocks_threshold or BLOCKS_THRESHOLD

    def _now(self) -> datetime:
        assert self._context is not None, "an operator is set up before it runs"
        return datetime.now(UTC) if self._context.now is None else self._context.now()

    def _begin_file(self, status: Found, version: str, relative_path: str) -> Cut | None:
        """Send the metadata of a file, and return the file as it is to be split; None if it has no blocks."""
        offset = 0 if status.is_directory else self.get_data_offset(status)
        cut = Cut(
            status.path,
            status.length,
            status.modified_millis,
            version,
            offset,
            status.version,
            self.sequential_file_read,
            offset,
        )
        size, length = self._size_for(status.path), status.length
        count = 0 if status.is_directory or offset >= length else -(-length // size) - offset // size
        self.files_metadata_output.emit(
            FileMetadata(
                status.path,
                length,
                status.modified_millis,
                min(count, 1) if self.sequential_file_read else count,
                relative_path=relative_path or plain(status.path).rstrip("/").rpartition("/")[2],
                is_directory=status.is_directory,
                discovered_millis=int(self._now().timestamp() * 1000),
                data_offset=offset,
                first_block_id=self.next_block_id,
            )
        )
        return cut if count else None

    def _split_next(self, cut: Cut, most: int) -> tuple[list[Block], Cut | None]:
        """The next blocks of a file, at most so many, and the rest of the file. The blocks have taken their IDs."""
        blocks = list(islice(cut.blocks(self._size_for(cut.path), self.next_block_id), most))
        self.next_block_id += len(blocks)
        return blocks, cut.after(blocks[-1].end)
