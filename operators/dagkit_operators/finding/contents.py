"""The content of files while they are found: hashes for receipts, and digests by which known content is skipped."""

import base64
import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from dagkit import Operator
from dagkit.errors import InputUnreadable
from dagkit.ground.urls import absolute
from dagkit_operators.compression.codec import CompressionBroken, codec_at, readable
from dagkit_operators.compression.decompressed import Decompressed
from dagkit_operators.filesystem.access import Found, Seekable, looked_up, opened, reading_from
from dagkit_operators.filesystem.identities import settles_in_millis
from dagkit_operators.finding.seen_files import BYTES, digest

_READ = 1 << 20


class Examined:
    """Digests of the new files that the current scan has read."""

    def __init__(self, read: Callable[[Found], str | None]) -> None:
        """`read` returns the digest of a file; None if the file has no content."""
        self._read = read
        self._known: dict[bytes, str] = {}

    def begin_scan(self) -> None:
        """Begin another scan, which has read nothing yet."""
        self._known.clear()

    def examine(self, new: Iterable[Found]) -> Iterator[Found]:
        """Yield the new files, after reading them, without those that are gone."""
        for found in new:
            try:
                read = None if found.is_directory else self._read(found)
            except InputUnreadable as error:
                if not is_gone(error):
                    raise
            else:
                if read is not None:
                    self._known[digest(found)] = read
                yield found

    def of(self, status: Found) -> str | None:
        """The digest of a file; None if the current scan did not read the file as it is now."""
        return self._known.get(digest(status))


def hash_of(found: Found, algorithm: str = "sha256") -> str:
    """The hash of a file up to the length with which it was found, as hexadecimal digits."""
    # Without `usedforsecurity=False`, systems that allow only algorithms of FIPS refuse MD5.
    content, rest = hashlib.new(algorithm, usedforsecurity=False), found.length
    for chunk in bytes_of_file(found):
        content.update(chunk[:rest])
        rest -= min(rest, len(chunk))
    return content.hexdigest()


class StillChanging(Exception):
    """A file was changed, or may still be changed unnoticed, while it was read for its receipt."""


class AsksForReceipts(Operator):
    """An operator that can ask for a receipt for each file that it finds."""

    receipts: str | None = None
    """The folder or URL for receipts: one file for each input file, after all of it is committed and its output is
    visible. The finder reads each new file to compute its hash."""

    def receipts_folder(self) -> str | None:
        """Where the engine writes receipts; None if none are wanted."""
        return self.receipts


def receipt_of(found: Found, sha256: str, folder: str, home: str) -> dict[str, Any]:
    """The facts about a file that are known before it is read, for its receipt in this folder.

    A relative folder begins at `home`, where the application was launched: a worker may run elsewhere.
    """
    return {
        "folder": absolute(folder, home),
        "sha256": sha256,
        "bytes": found.length,
        "modified_millis": found.modified_millis,
    }


def settled_hash(found: Found, length: int, now_millis: int) -> str:
    """The SHA-256 hash of the first bytes of a file. Raise StillChanging unless it is as it was found, and settled."""
    try:
        hashed = hash_of(found._replace(length=length))
        with reading_from(found.path):
            # After reading, so that a change while it was read is noticed, too.
            is_same = looked_up(found.path) == found
    except InputUnreadable as error:
        if not is_gone(error):
            raise
        is_same = False
    if not is_same or settles_in_millis(found, now_millis):
        raise StillChanging(found.path)
    return hashed


def content_digest(found: Found) -> str | None:
    """A digest of the decompressed content; None for an empty file and a directory.

    A file that cannot be decompressed has a digest like no other, so that its reader reports it.
    """
    if found.is_directory or not found.length:
        return None
    content = hashlib.blake2b(digest_size=BYTES)
    try:
        for chunk in content_of_file(found):
            content.update(chunk)
    except CompressionBroken:
        return base64.b64encode(digest(found)).decode()
    return base64.b64encode(content.digest()).decode()


def is_gone(error: InputUnreadable) -> bool:
    """Whether a file could not be read because it does not exist any more."""
    return isinstance(error.__cause__, FileNotFoundError)


def bytes_of_file(found: Found) -> Iterator[bytes]:
    """The bytes of a file, also of a compressed one."""
    with reading_from(found.path), opened(found.path) as stream:
        yield from _chunks(stream)


def content_of_file(found: Found) -> Iterator[bytes]:
    """The content of a file, decompressed. Raise CompressionBroken if that is impossible."""
    with reading_from(found.path):
        codec = readable(found.path, codec_at(found.path, found.length, found.modified_millis, "auto"))
    with reading_from(found.path), opened(found.path) as stream:
        yield from _chunks(stream if codec is None else Decompressed(stream, codec, found.path))


def _chunks(stream: Seekable) -> Iterator[bytes]:
    buffer = memoryview(bytearray(_READ))
    while got := stream.readinto(buffer):
        yield bytes(buffer[:got])
