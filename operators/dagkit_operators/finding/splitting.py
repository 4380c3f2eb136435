"""Dividing files into blocks, for every splitter."""

import logging
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Annotated, Any, ClassVar

from pydantic import Field, PositiveInt, PrivateAttr

from dagkit import Block, Context, InputOperator, Operator, OutputPort, State, auto_metric
from dagkit.errors import InputUnreadable
from dagkit.ground.urls import absolute, name_as_text, plain, shown
from dagkit_operators.compression.codec import Compression
from dagkit_operators.compression.index_folder import IndexFolder
from dagkit_operators.compression.opening import FOUND_AGAIN, content_length_of, facts_of, found_codec
from dagkit_operators.filesystem.access import Found, directory_at, is_bad_file, looked_up
from dagkit_operators.filesystem.block_sizes import block_size_of
from dagkit_operators.payloads import FileInfo, FileMetadata

BLOCKS_THRESHOLD = 1000
"""The default number of blocks for each window."""
MOST_SMALL_BLOCKS = 10_000
"""The most blocks of small files for each window by default."""
SMALL_BYTES = 64 << 20
"""With fewer bytes, the blocks of a window are small: reading them takes less time than to begin and commit it."""

_log = logging.getLogger(__name__)


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
    content_length: Annotated[int | None, Field(exclude_if=lambda length: length is None)] = None
    """Bytes of the content of a gzip file with an index. The content is divided then, instead of the file."""
    is_whole: Annotated[bool, Field(exclude_if=lambda is_whole: not is_whole)] = False
    """Whether the file is one block because it can only be decompressed from its beginning."""

    is_found_again: Annotated[bool, Field(exclude_if=lambda is_found_again: not is_found_again)] = False
    """Whether the splitter finds the file again if its length differs."""
    receipt: Annotated[dict[str, Any] | None, Field(exclude_if=lambda receipt: receipt is None)] = None
    """The fact `receipt` of its blocks: where to write a receipt, and what the file was like when it was found."""

    witness: Annotated[str, Field(exclude_if=lambda witness: not witness)] = ""
    """A digest of its first and last bytes, by which the reader notices that another file took its name."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to read."""
        return self.first_start >= self.end

    @property
    def end(self) -> int:
        """The end of the last block."""
        return self.length if self.content_length is None else self.content_length

    @property
    def place(self) -> int:
        """The position in the file of the next block; for a block of content, in proportion to the content."""
        return self.next_start * self.length // self.end

    def count(self, size: int) -> int:
        """The number of all blocks. A file without content has a block only if a receipt is wanted for it."""
        if self.is_empty:
            return int(self.receipt is not None)
        return 1 if self.sequential or self.is_whole else -(-self.end // size) - self.first_start // size

    def blocks(self, size: int, first_id: int) -> Iterator[Block]:
        """The blocks from the next start to the end; each but the last ends at a multiple of the size."""
        facts = facts_of(self.length, self.modified_millis, self.content_length, self.witness)
        facts |= {"version": self.content} if self.content else {}
        facts |= {"receipt": self.receipt} if self.receipt is not None else {}
        facts |= {"sequential": True} if self.sequential else {}
        facts |= {FOUND_AGAIN: True} if self.is_found_again else {}
        if self.is_empty:
            yield Block(first_id, self.path, self.end, self.end, True, self.version, facts)
        start, number = self.next_start, first_id
        while start < self.end:
            is_one = self.sequential or self.is_whole
            end = self.end if is_one else min((start // size + 1) * size, self.end)
            previous = number - 1 if start > self.first_start else None
            yield Block(number, self.path, start, end, end == self.end, self.version, facts, previous)
            start, number = end, number + 1

    def after(self, end: int) -> "Cut | None":
        """The rest of the file from an end of a block; None if there is none."""
        return replace(self, next_start=end) if end < self.end else None


class SplitsFiles(Operator):
    """What all splitters have: their outputs and properties, and the division of a file into blocks.

    Override `get_file_status`, `get_default_block_size` and `get_data_offset` for files of another kind.
    """

    partitionable = False
    finds_again: ClassVar[bool] = False
    """Whether it finds a file again if its length differs, and sends it as a whole."""
    files_metadata_output = OutputPort(FileMetadata)
    blocks_metadata_output = OutputPort(Block, main=True)

    block_size: PositiveInt | None = None
    """Bytes of a block; None: what the filesystem reports for the file, 128 MiB on HDFS, else 64 MiB."""
    blocks_threshold: PositiveInt | None = None
    """The most blocks, and the most files, sent in one window.

    None: 1000. If they have less than 64 MiB together, `FileSplitterInput` sends as many as there were before, at most
    10,000: with many small files, windows get larger.
    """
    compression: Compression = "auto"
    """How files are compressed, as for the reader. A compressed file is one block.

    `auto`: by the file name extension, or by the first bytes of a file that is longer than a block. The content of a
    gzip file that the application read before is divided into blocks. `none`: all files are divided as they are.
    """
    sequential_file_read: bool = False
    """Whether each file is one block, which one reader at a time reads from its start to its end."""

    next_block_id = State(0)
    files_processed = auto_metric(0)
    """Files that were divided into blocks."""

    _context: Context | None = PrivateAttr(default=None)
    _indexes: IndexFolder = PrivateAttr(default=IndexFolder(""))

    def setup(self, context: Context) -> None:
        self._context = context
        self._indexes = IndexFolder(context.application_path)

    def get_file_status(self, path: str) -> Found | None:
        """The file or directory at a path as it is now; None if there is none.

        A relative path starts where the application was launched.
        """
        return self._status_at(absolute(path, self._launched_in))

    def _status_at(self, place: str) -> Found | None:
        """Return `get_file_status` of an absolute path."""
        return looked_up(place) or directory_at(place)

    def get_default_block_size(self, path: str) -> int:
        """The bytes of a block of this file if `block_size` is None."""
        return block_size_of(path)

    def get_data_offset(self, status: Found) -> int:  # noqa: ARG002 - for overrides
        """The byte at which the first block of a file starts, such as the end of a header."""
        return 0

    @property
    def _launched_in(self) -> str:
        return "" if self._context is None else self._context.home

    def _size_for(self, path: str) -> int:
        return self.block_size or self.get_default_block_size(path)

    def _size_of(self, cut: Cut) -> int:
        """The bytes of a block of a file or of its content."""
        # A block of content has at least the content of one byte of the file, so that blocks differ in their `place`.
        size = self._size_for(cut.path)
        return size if cut.content_length is None else max(size, -(-cut.content_length // max(1, cut.length)))

    @property
    def _most(self) -> int:
        return self.blocks_threshold or BLOCKS_THRESHOLD

    def _now(self) -> datetime:
        assert self._context is not None, "an operator is set up before it runs"
        return datetime.now(UTC) if self._context.now is None else self._context.now()

    def _begin_file(
        self,
        status: Found,
        version: str,
        relative_path: str = "",
        identity: str = "",
        receipt: dict[str, Any] | None = None,
        *,
        is_found_again: bool = False,
        witness: str = "",
    ) -> Cut | None:
        """Send the metadata of a file, and return its first `Cut`; None if it has no blocks.

        `identity` is that of the item by which the file arrived, if it has one. `receipt` has the facts for its
        receipt, if one is wanted. `is_found_again` is whether another operator finds the file again if it has grown.
        `witness` is a digest of its first and last bytes, if they are known.
        """
        offset = 0 if status.is_directory else self.get_data_offset(status)
        is_compressible = not status.is_directory and not offset  # compressed data begins at the first byte
        codec, is_readable = None, True
        if is_compressible:
            try:
                codec = found_codec(status, self.compression, self._size_for(status.path))
            except InputUnreadable as error:
                if not is_bad_file(error):
                    raise
                # One block, so that its reader decides: `on_bad_file` of the reader may set the file aside.
                is_readable = False
        content_length = content_length_of(status, codec, self._indexes)
        cut = Cut(
            status.path,
            status.length,
            status.modified_millis,
            version,
            offset,
            status.version,
            self.sequential_file_read,
            offset,
            content_length,
            is_whole=not is_readable or (codec is not None and content_length is None),
            is_found_again=self.finds_again or is_found_again,
            receipt=receipt,
            witness=witness,
        )
        count = 0 if status.is_directory else cut.count(self._size_of(cut))
        self.files_processed += 1
        if self.files_metadata_output.is_connected:
            self.files_metadata_output.emit(
                FileMetadata(
                    status.path,
                    status.length,
                    status.modified_millis,
                    count,
                    identity,
                    content_length,
                    relative_path=name_as_text(relative_path or plain(status.path).rstrip("/").rpartition("/")[2]),
                    is_directory=status.is_directory,
                    discovered_millis=int(self._now().timestamp() * 1000),
                    data_offset=offset,
                    first_block_id=self.next_block_id,
                )
            )
        return cut if count else None

    def _split_next(self, cut: Cut, most: int) -> tuple[list[Block], Cut | None]:
        """The next blocks of a file, at most so many, and the rest of the file. The blocks have taken their IDs."""
        blocks = list(islice(cut.blocks(self._size_of(cut), self.next_block_id), most))
        self.next_block_id += len(blocks)
        return blocks, cut.after(blocks[-1].end)


class AbstractFileSplitter(SplitsFiles, InputOperator):
    """Describes the blocks of files that `get_file_info` names, one file after the other.

    Blocks are numbered from 0 across all files. A file may be divided over many windows.
    """

    cut = State[Cut | None](None)
    """The file that is being split; None between files."""

    @abstractmethod
    def get_file_info(self) -> FileInfo | None:
        """The next file to split; None if there is none now. Its path is enough."""

    def emit_tuples(self) -> None:
        self.process_files()

    def process_files(self) -> None:
        """Describe as many blocks and files as a window may have."""
        blocks = files = size = 0
        sends_metadata, send = self.files_metadata_output.is_connected, self.blocks_metadata_output.emit
        # Small blocks: as many as were sent before, so that windows double while a folder of small files is read.
        many = min(max(self._most, self.next_block_id), MOST_SMALL_BLOCKS)
        while blocks < (most := many if self.blocks_threshold is None and size < SMALL_BYTES else self._most):
            if self.cut is None:
                # Files are limited as blocks are, since one without blocks sends its metadata, too.
                info = self.get_file_info() if files < most else None
                if info is None:
                    return
                # An empty file counts only if its metadata is sent: a call that meets only empty files would send
                # nothing, as if no files were left.
                files += self._begin(info) and sends_metadata
            if self.cut is not None:
                described, self.cut = self._split_next(self.cut, most - blocks)
                blocks += len(described)
                size += sum(block.end - block.start for block in described)
                for block in described:
                    send(block)

    def _begin(self, info: FileInfo) -> bool:
        """Begin a file, as it is now, and send its metadata. Return False if it is skipped."""
        status = self.get_file_status(info.path)
        if status is None:
            _log.warning("%s is gone, and was not split; it is skipped", shown(info.path))
        if status is None or not self._accepts(status):
            return False
        self.cut = self._begin_accepted(status)
        return True

    def _accepts(self, status: Found) -> bool:  # noqa: ARG002 - for the scanning splitter
        return True

    def _begin_accepted(self, status: Found) -> Cut | None:
        """Send the metadata of a file, and return its first `Cut`; None if it has no blocks."""
        return self._begin_file(status, self._version)

    @property
    def _version(self) -> str:
        """Distinguishes this reading of a path from others in the ledger: by the ID of its first block."""
        return f"{self.next_block_id:x}"
