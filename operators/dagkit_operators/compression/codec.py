"""Codecs of compressed files: how they are recognised, by name or by the first bytes."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar, Literal

from dagkit import Block
from dagkit.errors import RunFailure
from dagkit.urls import shown
from dagkit_operators.filesystem.access import reading_from, sampled
from dagkit_operators.filesystem.bad_files import BadFile

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
_ANY_ENDING = tuple(ENDINGS)
MAGIC: Mapping[bytes, Codec] = {
    b"\x1f\x8b\x08": "gzip",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
    **{b"BZh%d\x31\x41\x59\x26\x53\x59" % level: "bzip2" for level in range(1, 10)},
}
"""The codec for each beginning of a file. Deflate streams and `.lzma` files have no beginning of their own."""
_LONGEST = max(map(len, MAGIC))
REMEMBERED = 4096
"""The number of files of which a process remembers what they begin with."""


class CompressionBroken(BadFile):
    """A file is not valid for its codec, or is truncated."""

    code = "compression-broken"
    usual_help: ClassVar[str] = "set the property compression to how the file is compressed, or replace the file"

    def __init__(self, path: str, codec: str, reason: str, position: int = 0, content_position: int = 0) -> None:
        self.path = path
        self.codec = codec
        self.reason = reason
        self.position = position
        """The position in the file up to which bytes were decompressed."""
        self.content_position = content_position
        """The position in the content up to which it was decompressed."""
        super().__init__(
            f"{shown(path)} cannot be read as {codec}: {reason}, near byte {position} of the file and byte "
            f"{content_position} of its content"
        )


class CompressedBlock(RunFailure):
    """A block is a part of a compressed file, and decompression cannot start there."""

    code = "compressed-block"
    usual_help: ClassVar[str] = (
        "set the property compression of the splitter and of the reader to the same value; with none, files are read "
        "as they are"
    )

    def __init__(self, block: Block, why: str) -> None:
        super().__init__(f"block {block.block_id:x} of {shown(block.path)} cannot be read: {why}")


def codec_of(path: str, compression: Compression) -> Codec | None:
    """The codec of a file by its name; None if it has none of the endings, or if `compression` is `none`."""
    if compression == "auto":
        if not path.lower().endswith(_ANY_ENDING):
            return None
        return next((codec for ending, codec in ENDINGS.items() if path.lower().endswith(ending)), None)
    return None if compression == "none" else compression


def codec_at(
    path: str, length: int, modified_millis: int | None, compression: Compression, filesystem: Any = None
) -> Codec | None:
    """The codec of a file by its name, else by its first bytes; None if it is not compressed, or is gone.

    A process opens a file of the same length and time of change only once for this, unless it is one of a given Arrow
    filesystem.
    """
    named = codec_of(path, compression)
    if named is not None or compression != "auto":
        return named
    with reading_from(path):
        try:
            if filesystem is not None or modified_millis is None:
                return _codec_by_beginning(path, filesystem)
            return _remembered(path, length, modified_millis)
        except FileNotFoundError:
            return None  # the reader of the file reports that it is gone


@lru_cache(REMEMBERED)
def _remembered(path: str, length: int, modified_millis: int) -> Codec | None:  # noqa: ARG001 - they distinguish versions
    return _codec_by_beginning(path)


def _codec_by_beginning(path: str, filesystem: Any = None) -> Codec | None:
    return codec_of_content(next(sampled(path, [0], _LONGEST, filesystem)))


def codec_of_content(beginning: bytes | bytearray) -> Codec | None:
    """The codec of a file by its first bytes; None if it begins like no compressed file."""
    return next((codec for magic, codec in MAGIC.items() if beginning.startswith(magic)), None)


__all__ = [
    "ENDINGS",
    "MAGIC",
    "Codec",
    "CompressedBlock",
    "Compression",
    "CompressionBroken",
    "codec_at",
    "codec_of",
    "codec_of_content",
]
