"""The bytes of items and records as they are written to files, and their compression."""

import io
import os
from contextlib import suppress
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BeforeValidator, Field

from dagkit import Column, Lines
from dagkit.api.files import OutputFile
from dagkit.schema import assignable
from dagkit.schema.columns import TEXT_ERRORS
from dagkit_operators.compression.decompressed import Decompressed
from dagkit_operators.payloads import Record


def _path_as_text(given: Any) -> Any:
    """A path object as text; any other value unchanged, for pydantic to check."""
    return os.fspath(given) if isinstance(given, os.PathLike) else given


FolderPath = Annotated[str, BeforeValidator(_path_as_text), Field(min_length=1)]
"""The type of a property that names a directory: a path, also as a path object, or a URL."""


def as_bytes(value: str | bytes) -> bytes:
    """Encode text to the bytes from which it was read."""
    return value.encode("utf-8", TEXT_ERRORS) if isinstance(value, str) else bytes(value)


def joined(column: Column, separator: bytes) -> bytes | memoryview | None:
    """All values, each followed by the separator; without a copy if the column has that delimiter already.

    Return None if a value is neither text nor bytes.
    """
    if isinstance(column, Lines) and column.delimiter == separator:
        return column.content
    values = column.values()
    # Values are nearly always text: to join them tests it, and raises TypeError for any other value.
    with suppress(TypeError):
        return as_bytes(separator.decode().join([*values, ""]))
    if not all(isinstance(value, str | bytes) for value in values):
        return None
    return separator.join([*map(as_bytes, values), b""])


def may_be_text(payload: Any) -> bool:
    """Whether an item of a type may be text, bytes, or a record of them."""
    kinds: tuple[Any, ...] = (str, bytes, Record[str], Record[bytes])
    return any(assignable(one, kind) or assignable(kind, one) for one in members_of(payload) for kind in kinds)


def members_of(payload: Any) -> tuple[Any, ...]:
    """The members of a union; any other type alone."""
    return get_args(payload) if get_origin(payload) in (Union, UnionType) else (payload,)


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
