"""Compressed files: which they are, and their content as a stream.

A compressed file begins only at its beginning, so it is read from there, by one reader, and never split. Several that
were put one behind the other are read as one.
"""

import io
from collections.abc import Callable
from typing import Any, Literal, Self

from dagkit.urls import shown
from dagkit_operators.lines import Seekable
from dagkit_operators.seen import FileChanged

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
"""How files are compressed, by what their names end in."""
_OF_ARROW = {"gzip": "gzip", "deflate": "gzip", "zstd": "zstd", "lz4": "lz4"}
READ = 1 << 16
"""Bytes that are read at a time to be decompressed."""
SKIPPED = 1 << 20
"""Bytes that are read at a time to come to a place further on."""


class CompressionBroken(ValueError):
    """A file is not what its compression makes, or ends too soon."""

    def __init__(self, path: str, codec: str, reason: str) -> None:
        self.path = path
        self.codec = codec
        self.reason = reason
        super().__init__(f"{shown(path)} cannot be read as {codec}: {reason}; set compression to what it is, or none")

    def __reduce__(self) -> tuple[type[Self], tuple[str, str, str]]:
        return type(self), (self.path, self.codec, self.reason)


def codec_of(path: str, compression: Compression) -> Codec | None:
    """How a file is compressed; none where it is not."""
    if compression == "auto":
        return next((codec for ending, codec in ENDINGS.items() if path.lower().endswith(ending)), None)
    return None if compression == "none" else compression


class Decompressed:
    """What a stream holds, decompressed as it is read. Going back begins anew, and going on reads what lies between."""

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
        except Exception as fault:  # each codec has faults of its own
            raise CompressionBroken(self._path, self._codec, str(fault) or type(fault).__name__) from fault
        self._place += got
        return got


def _opened(source: "_Readable", codec: Codec) -> Any:
    if codec == "xz":
        import lzma  # noqa: PLC0415 - whoever reads none does not load it

        return _Streams(source, lzma.LZMADecompressor, padded_by=4)
    if codec == "bzip2":
        import bz2  # noqa: PLC0415 - whoever reads none does not load it

        return _Streams(source, bz2.BZ2Decompressor)
    import pyarrow as pa  # noqa: PLC0415 - whoever only compiles does not load Arrow

    return pa.CompressedInputStream(pa.PythonFile(source, "r"), _OF_ARROW[codec])


class _Streams:
    """What compressed streams hold that lie one behind the other, and nothing else between them but padding.

    Python's files take what begins no stream for rubbish, and end there. Arrow refuses a bzip2 that holds nothing.
    """

    def __init__(self, source: "_Readable", begin: Callable[[], Any], padded_by: int = 0) -> None:
        self._source = source
        self._begin = begin
        self._padded_by = padded_by
        """Zeros may follow a stream, so many or a multiple."""
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
        """How the next stream begins; nothing where none does."""
        after, padding = self._stream.unused_data or self._source.read(READ), 0
        while self._padded_by and after.startswith(b"\0"):
            begun = after.lstrip(b"\0")
            padding += len(after) - len(begun)
            after = begun or self._source.read(READ)
        if padding and padding % self._padded_by:
            raise ValueError(f"it is padded by {padding} bytes, which is no multiple of {self._padded_by}")
        return after


class _Readable(io.RawIOBase):
    """A stream as those want it who decompress."""

    def __init__(self, stream: Seekable) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        return self._stream.readinto(memoryview(buffer).cast("B")) or 0
