"""Compressing files while they are written."""

import io
from typing import Any, Literal

from dagkit.api.files import OutputFile
from dagkit_operators.compression.decompressed import Decompressed

Compressing = Literal["none", "gzip", "zstd"]
"""How written files may be compressed."""
ENDINGS: dict[Compressing, str] = {"none": "", "gzip": ".gz", "zstd": ".zst"}
MEMBER = 1 << 20
"""The bytes before compression from which on a member is complete."""


class Compressed:
    """Compresses what is written to a file, as members of at least a mebibyte; the last may be shorter.

    Members need nothing of each other: windows that add to one file in turn each write members of their own.
    """

    def __init__(self, file: OutputFile, compression: Compressing) -> None:
        import pyarrow as pa  # noqa: PLC0415 - Arrow is not loaded when only compiling

        self._file = file
        self._codec: Any = pa.Codec(compression)
        self._pending = bytearray()

    def write(self, content: memoryview) -> None:
        self._pending += content
        if len(self._pending) >= MEMBER:
            self._end_member()

    def close(self) -> None:
        """Write the last member."""
        if self._pending:
            self._end_member()

    def _end_member(self) -> None:
        self._file.write(self._codec.compress(bytes(self._pending), asbytes=True))
        self._pending = bytearray()


def decompressed(content: bytes, compression: Compressing) -> bytes:
    """What `Compressed` was given, from the members that it wrote."""
    if compression == "none":
        return content
    stream, found = Decompressed(io.BytesIO(content), compression, "a written file"), bytearray()
    buffer = memoryview(bytearray(MEMBER))
    while count := stream.readinto(buffer):
        found += buffer[:count]
    return bytes(found)
