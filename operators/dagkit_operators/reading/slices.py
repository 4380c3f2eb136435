"""Reading files in slices of bytes, whatever they hold."""

from dataclasses import dataclass
from typing import Self

from dagkit import OutputPort
from dagkit_operators.compression.codec import Compression
from dagkit_operators.contexts.fixed_bytes import FixedBytesReaderContext
from dagkit_operators.payloads import Record
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
