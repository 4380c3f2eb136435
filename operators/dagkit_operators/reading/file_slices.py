"""Reading files in slices. Those of `FileSliceReader` have their file and their position in it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self, cast

from pydantic import field_validator

from dagkit import Batch, Block, Context, Listed, OutputPort
from dagkit.ground.urls import is_url
from dagkit_operators.compression.codec import Compression
from dagkit_operators.contexts.fixed_bytes import FixedBytesReaderContext
from dagkit_operators.contexts.reader_context import Tracker, records_of
from dagkit_operators.filesystem.access import Seekable, filled
from dagkit_operators.payloads import FileSlice, Record, key_of_copy
from dagkit_operators.reading.block_reader import BlockReader


@dataclass(frozen=True, slots=True)
class Slice:
    """`length` bytes of a buffer, from `offset` on."""

    buffer: bytes
    offset: int
    length: int

    @classmethod
    def of(cls, content: bytes) -> Self:
        """A slice of all of these bytes."""
        return cls(content, 0, len(content))

    def to_bytes(self) -> bytes:
        """The bytes of the slice."""
        return self.buffer[self.offset : self.offset + self.length]


class FSSliceReader(BlockReader[Slice]):
    """Reads blocks, and sends their bytes in slices of `reader_context.length`.

    Slices are counted from the start of each block. By default, a slice is as long as a block of the filesystem.
    """

    kind = "files.slice-reader/1"
    messages = OutputPort[Record[Slice]](main=True)

    reader_context: FixedBytesReaderContext = FixedBytesReaderContext()
    """How long slices are."""
    compression: Compression = "none"
    """How files are compressed; by default their bytes are sent as they are: see `Reader`."""

    def convert_to_record(self, content: bytes) -> Slice:
        return Slice.of(content)


SLICE = 64 << 10
"""Bytes of a slice by default: the allocator reuses memory for objects of this size, and fetches it for larger ones."""

FREED = 8 << 20
"""More than the bytes of all slices that are alive at a time."""


class FileSliceReader(BlockReader[FileSlice]):
    """Reads blocks, and sends their bytes in slices with the file and the position of each."""

    kind = "files.file-slice-reader/1"
    messages = OutputPort[Record[FileSlice]](main=True)

    reader_context: FixedBytesReaderContext = FixedBytesReaderContext(length=SLICE)
    """How long slices are."""
    compression: Compression = "none"
    """Slices have the bytes of files as they are, so this is always `none`."""
    by_place: bool = False
    """Whether slices of local files only name their bytes, `chunk_size` at a time: the writer copies them, which is
    fastest, and no other operator sees their content."""

    @property
    def converts(self) -> bool:
        """Whether it makes other records than its reader context: it always makes them itself."""
        return True

    @field_validator("compression")
    @classmethod
    def _reads_bytes(cls, compression: Compression) -> Compression:
        if compression != "none":
            raise ValueError("slices have the bytes of files as they are; leave it at none")
        return compression

    def setup(self, context: Context) -> None:
        super().setup(context)
        # glibc returns freed memory to the system above a threshold, and raises the threshold when an object of that
        # size is freed. Without this, the system would have to provide the memory of each chunk again, which takes
        # longer than to copy the chunk.
        bytes(FREED)

    def read(self, block: Block, tracker: Tracker) -> Iterator[Batch[Record[FileSlice]]]:
        """Yield the slices of the range that the tracker grants."""

        def is_done() -> bool:
            return tracker.current_restriction().stop == block.end

        context = cast("FixedBytesReaderContext", self.context_for(block.path))
        with self._stream.of(block, self.setup_stream, context.model_copy, is_done) as opened:
            for slices in self._slices(opened.stream, block, context.stride, tracker):
                yield records_of(block, Listed(slices))

    def _slices(self, stream: Seekable, block: Block, stride: int, tracker: Tracker) -> Iterator[list[FileSlice]]:
        """Yield about `chunk_size` bytes at a time."""
        import numpy as np  # noqa: PLC0415 - not loaded when only compiling

        facts = block.facts or {}
        key = key_of_copy(block.path, facts.get("length", -1), facts.get("modified_millis", 0))
        position = tracker.current_restriction().start
        starts = np.arange(max(1, self.chunk_size // stride)) * stride
        view, names = memoryview(bytearray(stride)), self.by_place and not is_url(block.path)
        stream.seek(position)
        while position < block.end:
            wanted = starts[: -(-(block.end - position) // stride)]
            granted = tracker.claim_many(position + wanted)
            slices = []
            if names and granted:
                length = min(granted * stride, block.end - position)
                slices.append(FileSlice(key, position, path=block.path, length=length))
                position += length
            # Not by way of Arrow and its columns, which would copy the bytes once more.
            for _ in range(0 if names else granted):
                got = filled(stream, view[: min(stride, block.end - position)])
                slices.append(FileSlice(key, position, bytes(view[:got])))
                position += got
            yield slices
            if granted < len(wanted):
                return
        tracker.try_claim(block.end)
