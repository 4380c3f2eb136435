"""Codecs of compressed files: how they are recognised, by name or by the first bytes."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, cast, get_args

from dagkit import Block
from dagkit.errors import RunFailure
from dagkit.ground.urls import shown
from dagkit_operators.filesystem.access import BadFile, reading_from, sampled

Compression = Literal["auto", "none", "gzip", "deflate", "bzip2", "xz", "zstd", "lz4"]
Codec = Literal["gzip", "deflate", "bzip2", "xz", "zstd", "lz4"]
Unread = Literal["zip", "tar", "7z", "rar", "compress", "lzip", "brotli", "snappy"]
"""A format that is recognised and not read: an archive, or a file compressed otherwise."""

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
UNREAD_ENDINGS: dict[str, Unread] = {".br": "brotli"}
"""The format that is not read for each file name extension, where files have no beginning of their own."""
_BY_ENDING: Mapping[str, Codec | Unread] = {**ENDINGS, **UNREAD_ENDINGS}
MAGIC: Mapping[bytes, Codec] = {
    b"\x1f\x8b\x08": "gzip",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
    **{b"BZh%d\x31\x41\x59\x26\x53\x59" % level: "bzip2" for level in range(1, 10)},
}
"""The codec for each beginning of a file. Deflate streams and `.lzma` files have no beginning of their own."""
UNREAD_MAGIC: Mapping[bytes, Unread] = {
    b"PK\x03\x04": "zip",
    b"PK\x05\x06": "zip",
    b"7z\xbc\xaf\x27\x1c": "7z",
    b"Rar!\x1a\x07": "rar",
    b"\x1f\x9d": "compress",
    b"LZIP\x01": "lzip",
    b"\xff\x06\x00\x00sNaPpY": "snappy",
}
"""The format that is not read for each beginning of a file."""
_BY_MAGIC: Mapping[bytes, Codec | Unread] = {**MAGIC, **UNREAD_MAGIC}
_ANY_MAGIC = tuple(_BY_MAGIC)
_TAR, _TAR_PLACE = b"ustar", 257
"""The bytes that each tar archive has within its first header, and their position."""
_LONGEST = _TAR_PLACE + len(_TAR)
REMEMBERED = 4096
"""The number of files whose codec a process remembers."""


class CompressionBroken(BadFile):
    """A file is not valid for its codec, or is truncated."""

    code = "compression-broken"
    usual_help = "set the property compression to how the file is compressed, or replace the file"

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


class FormatUnread(CompressionBroken):
    """A file is an archive, or compressed in a way that is not supported: its bytes are no records."""

    usual_help = (
        "unpack it, or compress it with gzip, bzip2, xz, zstd or lz4; to read its bytes as they are, set the property "
        "compression to none"
    )

    def __init__(self, path: str, unread: Unread) -> None:
        self.path = path
        self.codec = unread
        super(CompressionBroken, self).__init__(
            f"{shown(path)} is a {unread} file, and files of that format are not read"
        )


def compressed_block(block: Block, why: str) -> RunFailure:
    """A block is a part of a compressed file, and decompression cannot start there."""
    return RunFailure(
        f"block {block.block_id} of {shown(block.path)} cannot be read: {why}",
        "set the property compression of the splitter and of the reader to the same value; with none, files are read "
        "as they are",
        code="compressed-block",
    )


def codec_of(path: str, compression: Compression) -> Codec | Unread | None:
    """The codec of a file by its name, or its format that is not read.

    None if it has none of the endings, or if `compression` is `none`.
    """
    if compression == "auto":
        return _BY_ENDING.get(path[path.rfind(".") :].lower())
    return None if compression == "none" else compression


def codec_at(
    path: str, length: int, modified_millis: int | None, compression: Compression, filesystem: Any = None
) -> Codec | Unread | None:
    """The codec of a file, or its format that is not read, by its name, else by its first bytes.

    None if it is not compressed, or is gone.

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
def _remembered(path: str, length: int, modified_millis: int) -> Codec | Unread | None:  # noqa: ARG001 - they distinguish versions
    return _codec_by_beginning(path)


def _codec_by_beginning(path: str, filesystem: Any = None) -> Codec | Unread | None:
    return codec_of_content(next(sampled(path, [0], _LONGEST, filesystem)))


def codec_of_content(beginning: bytes | bytearray) -> Codec | Unread | None:
    """The codec by the first bytes, or the format that is not read; None if they begin like neither."""
    if beginning.startswith(_ANY_MAGIC):
        return next(codec for magic, codec in _BY_MAGIC.items() if beginning.startswith(magic))
    return "tar" if beginning.startswith(_TAR, _TAR_PLACE) else None


def readable(path: str, codec: Codec | Unread | None) -> Codec | None:
    """The codec by which a file is read. Raise FormatUnread if there is none."""
    if codec in get_args(Unread):
        raise FormatUnread(path, cast("Unread", codec))
    return cast("Codec | None", codec)
