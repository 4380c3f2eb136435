"""The content of compressed files as a stream.

Decompression starts at the beginning of a file; only that of a gzip file with an index can start at many positions.
Concatenated compressed streams are read as one.
"""

from collections.abc import Callable
from typing import Any

from dagkit_operators.compression.codec import Codec, CompressionBroken
from dagkit_operators.compression.gzip_content import GzipContent
from dagkit_operators.compression.gzip_index import SPACING, GzipIndex
from dagkit_operators.filesystem.access import Seekable, StreamFile
from dagkit_operators.filesystem.snapshot import FileChanged

_OF_ARROW = {"deflate": "gzip", "zstd": "zstd", "lz4": "lz4"}
READ = 1 << 16
"""Compressed bytes read at a time."""
SKIPPED = 1 << 20
"""Decompressed bytes discarded at a time when seeking forwards."""


class Decompressed:
    """Decompresses a stream while it is read. Its positions are those of the content.

    Seeking backwards restarts at the beginning, or at the point of the index before; seeking forwards decompresses and
    discards what lies between.
    """

    def __init__(
        self,
        stream: Seekable,
        codec: Codec,
        path: str,
        index: GzipIndex | None = None,
        keep_index: Callable[[GzipIndex], None] | None = None,
        *,
        spacing: int = SPACING,
        least: int = 0,
    ) -> None:
        """`keep_index` receives the index of a gzip file that was read from its beginning to its end without one.

        Content that ends before position `least` is broken.
        """
        self._stream = stream
        self._codec = codec
        self._path = path
        self._index = index
        self._keep_index = keep_index if index is None and codec == "gzip" else None
        self._spacing = spacing
        self._least = least
        self._place = 0
        self._content: Any = None

    def seek(self, offset: int, /) -> int:
        if self._content is None or offset < self._place or self._starts_nearer(offset):
            self._begin(offset)
        skipped = memoryview(bytearray(min(SKIPPED, max(0, offset - self._place))))
        while self._place < offset and self.readinto(skipped[: offset - self._place]):
            pass
        return self._place

    def _starts_nearer(self, offset: int) -> bool:
        """Whether a point of the index lies between the current position and another."""
        return self._index is not None and self._index.point_before(offset)[1].content > self._place

    def _begin(self, offset: int) -> None:
        """Start at the beginning, or at the last point before a position."""
        if self._codec == "gzip":
            content = GzipContent(self._stream, self._path, self._index, offset, self._keep_index and self._spacing)
            self._content, self._place = _Pieces(content, self._keep_index), content.position
        else:
            self._content, self._place = _Source(StreamFile(self._stream), self._codec), 0

    def readinto(self, buffer: memoryview, /) -> int:
        if not len(buffer):
            return 0
        if self._content is None:
            self._begin(0)
        try:
            got: int = self._content.readinto(buffer)
        except (FileChanged, CompressionBroken):
            raise
        except Exception as fault:  # each codec raises errors of its own
            raise self._broken(str(fault) or type(fault).__name__) from fault
        self._place += got
        if not got and self._place < self._least:
            raise self._broken(f"its content ends there, and had {self._least} bytes when it was split")
        return got

    def _broken(self, reason: str) -> CompressionBroken:
        return CompressionBroken(self._path, self._codec, reason, self._content.position, self._place)


class _Pieces:
    """Copies the pieces of a gzip file's content into buffers."""

    def __init__(self, content: GzipContent, keep_index: Callable[[GzipIndex], None] | None) -> None:
        self._content = content
        self._keep_index = keep_index
        self._pieces = content.pieces()
        self._piece = memoryview(b"")

    @property
    def position(self) -> int:
        """The position in the file."""
        return self._content.place

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill the buffer, unless the content ends."""
        place, length = 0, len(buffer)
        while place < length:
            if not self._piece:
                piece = next(self._pieces, None)
                if piece is None:
                    self._keep()
                    break
                self._piece = memoryview(piece)
            after = min(place + len(self._piece), length)
            buffer[place:after], self._piece = self._piece[: after - place], self._piece[after - place :]
            place = after
        return place

    def _keep(self) -> None:
        """Keep the index that was made, once."""
        index = self._content.index
        if index is not None and self._keep_index is not None:
            self._keep_index(index)
        self._keep_index = None


def _decompressor(source: StreamFile, codec: Codec) -> Any:
    if codec == "xz":
        import lzma  # noqa: PLC0415 - loaded only when such files are read

        return _Streams(source, lzma.LZMADecompressor, padded_by=4)
    if codec == "bzip2":
        import bz2  # noqa: PLC0415 - loaded only when such files are read

        return _Streams(source, bz2.BZ2Decompressor)
    import pyarrow as pa  # noqa: PLC0415 - Arrow is not loaded when only compiling

    return pa.CompressedInputStream(pa.PythonFile(source, "r"), _OF_ARROW[codec])


class _Source:
    """A decompressor, with the position in the file up to which it has read."""

    def __init__(self, source: StreamFile, codec: Codec) -> None:
        self._source = source
        self.readinto = _decompressor(source, codec).readinto

    @property
    def position(self) -> int:
        """The position in the file."""
        return self._source.position


class _Streams:
    """The content of concatenated compressed streams, with nothing but padding between them.

    Python's own `BZ2File` and `LZMAFile` ignore trailing bytes that begin no stream, so damage would go unnoticed.
    Arrow refuses an empty bzip2 stream.
    """

    def __init__(self, source: StreamFile, begin: Callable[[], Any], padded_by: int = 0) -> None:
        self._source = source
        self._begin = begin
        self._padded_by = padded_by
        """The unit of the zero padding that may follow a stream, in bytes; 0: no padding is allowed."""
        self._stream = begin()

    def readinto(self, buffer: memoryview, /) -> int:
        content = b""
        while not content:
            if self._stream.eof:
                after = self._next()
                if not after:
                    return 0
                self._stream = self._begin()
            else:
                after = self._source.read(READ) if self._stream.needs_input else b""
                if self._stream.needs_input and not after:
                    raise EOFError("it ends within a stream")
            content = self._stream.decompress(after, len(buffer))
        buffer[: len(content)] = content
        return len(content)

    def _next(self) -> bytes:
        """The first bytes of the next stream; empty at the end of the file."""
        after, padding = self._stream.unused_data or self._source.read(READ), 0
        while self._padded_by and after.startswith(b"\0"):
            begun = after.lstrip(b"\0")
            padding += len(after) - len(begun)
            after = begun or self._source.read(READ)
        if padding and padding % self._padded_by:
            raise ValueError(f"it is padded by {padding} bytes, which is no multiple of {self._padded_by}")
        return after
