"""Blocks of compressed files: the meaning of their positions, and their content."""

from functools import partial
from typing import Any

from dagkit import Block
from dagkit.ranges import OFFSET_INFINITY
from dagkit_operators.compression.codec import (
    Codec,
    Compression,
    Unread,
    codec_at,
    codec_of,
    compressed_block,
    readable,
)
from dagkit_operators.compression.decompressed import Decompressed
from dagkit_operators.compression.index_folder import IndexFolder
from dagkit_operators.filesystem.access import Found, Seekable
from dagkit_operators.filesystem.snapshot import WITNESS

COMPRESSION = "compression"
"""The fact of a block whose positions are those of its file's content: the codec."""

FOUND_AGAIN = "found_again"
"""The fact of a block of a file that the splitter finds again if its length differs."""


def facts_of(length: int, modified_millis: int, content_length: int | None, witness: str = "") -> dict[str, Any]:
    """The facts of the blocks of a file; with a content length, their positions are those of its content.

    `witness` is that of its first and last bytes, if they are known.
    """
    facts = {"length": length, "modified_millis": modified_millis} | ({WITNESS: witness} if witness else {})
    return (
        facts
        if content_length is None
        else facts | {"length": content_length, "file_length": length, COMPRESSION: "gzip"}
    )


def found_codec(found: Found, compression: Compression, block_size: int) -> Codec | Unread | None:
    """The codec of a file that is to be divided into blocks, or its format that is not read.

    A file that has only one block is not opened for it.
    """
    if found.length <= block_size:
        return codec_of(found.path, compression)
    return codec_at(found.path, found.length, found.modified_millis, compression)


def content_length_of(found: Found, codec: Codec | Unread | None, indexes: IndexFolder) -> int | None:
    """The length of the content of a file that has an index; None without an index."""
    place = indexes.place_of(found.path, found.length) if codec == "gzip" else None
    index = None if place is None else indexes.load(place)
    return None if index is None else index.content_length


def is_of_content(block: Block) -> bool:
    """Whether the positions of a block are those of the content of its file."""
    return COMPRESSION in (block.facts or {})


def codec_of_block(block: Block, compression: Compression, filesystem: Any = None) -> Codec | None:
    """The codec of the file of a block; None if its bytes are read as they are.

    Raise compressed-block if decompression cannot start at the block, and FormatUnread for a format that is not read.
    """
    facts = block.facts or {}
    divided_as: Codec | None = facts.get(COMPRESSION)
    if divided_as is not None:
        if compression not in ("auto", divided_as):
            raise compressed_block(
                block, f"it is a part of the content of a {divided_as} file, and compression is {compression}"
            )
        return divided_as
    length = facts.get("length", block.end if block.last or block.end == OFFSET_INFINITY else None)
    if block.start == 0 and block.end == length:
        codec = codec_at(block.path, length, facts.get("modified_millis"), compression, filesystem)
        return readable(block.path, codec)
    # By the name alone: the splitter opened a file with any other name before it divided it.
    codec = readable(block.path, codec_of(block.path, compression))
    if codec is not None:
        raise compressed_block(block, f"it is a part of a {codec} file, which can only be read from its beginning")
    return None


def content_of(
    stream: Seekable, block: Block, codec: Codec, indexes: IndexFolder, filesystem: Any = None
) -> Decompressed:
    """The content of the file of a block, given the open file. An index is used, or made while the file is read."""
    facts = block.facts or {}
    length = facts.get("file_length", facts.get("length"))
    place = indexes.place_of(block.path, length, filesystem) if codec == "gzip" and length is not None else None
    least = facts["length"] if is_of_content(block) else 0
    if place is None:
        return Decompressed(stream, codec, block.path, least=least)
    index, keep_index = indexes.load(place), partial(indexes.save, place)
    return Decompressed(stream, codec, block.path, index, keep_index, spacing=indexes.spacing, least=least)
