"""Compressed files: how to recognise them, and how to read their content as a stream.

Decompression can start only at the beginning of a file, so one reader reads the whole file, and it is never split.
Concatenated compressed streams are read as one.
"""

import io
from collections.abc import Callable
from typing import Any, ClassVar, Literal

from dagkit.errors import RunFailure
from dagkit.urls import shown
from dagkit_operators.filesystem.access import Seekable
from dagkit_operators.filesystem.snapshot import FileChanged

Compression = Literal["auto", "none", "gzip", "deflate", "bzip2", "xz", "zstd", "lz4"]
Codec = Literal["gzip", "deflate", "bzip2", "xz", "zstd", "lz4"]

ENDINGS: dict[str, Codec] = {
    ".gz": "gzip",
    ".deflate": "deflate",
    ".bz2": "bzip2",
    ".xz": "xz",
    ".lzma": "xz",
    ".zst": "zstd",
    ".lz4": "lz4",
}
"""The codec for each file name extension."""
_OF_ARROW = {"gzip": "gzip", "deflate": "gzip", "zstd": "zstd", "lz4": "lz4"}
READ = 1 << 16
"""Compressed bytes read at a time."""
SKIPPED = 1 << 20
"""Decompressed bytes discarded at a time when seeking forwards."""


class CompressionBroken(RunFailure):
    """A file is not valid for its codec, or is truncated."""

    code = "compression-broken"
    usual_help: ClassVar[str] = "set the property compression to how the file is compressed, or replace the file"

    def __init__(self, path: str, codec: str, reason: str) -> None:
        self.path = path
        self.codec = codec
        self.reason = reason
        super().__init__(f"{shown(path)} cannot be read as {codec}: {reason}")


def codec_of(path: str, compression: Compression) -> Codec | None:
    """The codec of a file; None if it is not compressed."""
    if compression == "auto":
        return next((codec for ending, codec in ENDINGS.items() if path.lower().endswith(ending)), None)
    return None if compression == "none" else compression


class Decompressed:
    """Decompresses a stream while it is read.

    Seeking backwards restarts at the beginning; seeking forwards decompresses and discards what lies between.
    """

    def __init__(self, stream: Seekable, codec: Codec, path: str) -> None:
        self._stream = stream
        self._codec = codec
        self._path = path
        self._begin()

    def _begin(self) -> None:
        self._stream.seek(0)
        self._content = _opened(_Readable(self._stream), self._codec)
        self._place = 0

    def seek(self, offset: int, /) -> int:
        if offset < self._place:
            self._begin()
        skipped = memoryview(bytearray(min(SKIPPED, offset - self._place)))
        while self._place < offset and self.readinto(skipped[: offset - self._place]):
            pass
        return self._place

    def readinto(self, buffer: memoryview, /) -> int:
        if not len(buffer):
            return 0
        try:
            got: int = self._content.readinto(buffer)
        except FileChanged:
            raise
        except Exception as fault:  # each codec raises errors of its own
            raise CompressionBroken(self._path, self._codec, str(fault) or type(fault).__name__) from fault
        self._place += got
        return got


def _opened(source: "_Readable", codec: Codec) -> Any:
    if codec == "xz":
        import lzma  # noqa: PLC0415 - loaded only when such files are read

        return _Streams(source, lzma.LZMADecompressor, padded_by=4)
    if codec == "bzip2":
        import bz2  # noqa: PLC0415 - loaded only when such files are read

        return _Streams(source, bz2.BZ2Decompressor)
    import pyarrow as pa  # noqa: PLC0415 - Arrow is not loaded when only compiling

    return pa.CompressedInputStream(pa.PythonFile(source, "r"), _OF_ARROW[codec])


class _Streams:
    """The content of concatenated compressed streams, with nothing but padding between them.

    Python's own `BZ2File` and `LZMAFile` ignore trailing bytes that begin no stream, so damage would go unnoticed.
    Arrow refuses an empty bzip2 stream.
    """

    def __init__(self, source: "_Readable", begin: Callable[[], Any], padded_by: int = 0) -> None:
        self._source = source
        self._begin = begin
        self._padded_by = padded_by
        """The unit of the zero padding that may follow a stream, in bytes; 0: no padding is allowed."""
        self._stream = begin()

    def readinto(self, buffer: memoryview, /) -> int:
        made = b""
        while not made:
            if self._stream.eof:
                after = self._next()
                if not after:
                    return 0
                self._stream = self._begin()
            else:
                after = self._source.read(READ) if self._stream.needs_input else b""
                if self._stream.needs_input and not after:
                    raise EOFError("it ends within a stream")
            made = self._stream.decompress(after, len(buffer))
        buffer[: len(made)] = made
        return len(made)

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


class _Readable(io.RawIOBase):
    """Adapts a stream to the decompressors."""

    def __init__(self, stream: Seekable) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        return self._stream.readinto(memoryview(buffer).cast("B")) or 0
