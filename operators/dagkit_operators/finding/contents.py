"""The content of files: its hashes, for receipts, and which content was read before."""

import base64
import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

from dagkit import Operator
from dagkit.errors import InputUnreadable
from dagkit.ground.urls import absolute
from dagkit_operators.compression.codec import CompressionBroken, codec_at, readable
from dagkit_operators.compression.decompressed import Decompressed
from dagkit_operators.filesystem.access import Found, Seekable, looked_up, opened, reading_from
from dagkit_operators.filesystem.identities import settles_in_millis
from dagkit_operators.finding.seen_files import BYTES, CHARACTERS, digest

_READ = 1 << 20


class KnownContents:
    """The digests of the contents that were read, and those of the new files of the current scan."""

    def __init__(self, text: str = "") -> None:
        """Take the digests as `add` returned them, concatenated."""
        self._known = {text[at : at + CHARACTERS] for at in range(0, len(text), CHARACTERS)}
        self._examined: dict[bytes, str] = {}

    def begin_scan(self) -> None:
        """Begin another scan, which has examined nothing yet."""
        self._examined.clear()

    def examine(self, new: Iterable[Found]) -> Iterator[Found]:
        """Yield the new files, after reading their contents, without those that are gone.

        Empty files and directories have no content.
        """
        for found in new:
            try:
                if found.length and not found.is_directory:
                    self._examined[digest(found)] = _content_digest(found)
            except InputUnreadable as error:
                if not is_gone(error):
                    raise
            else:
                yield found

    def of(self, status: Found) -> str | None:
        """The digest of the content of a file; None if the current scan did not examine it as it is now."""
        return self._examined.get(digest(status))

    def knows(self, status: Found) -> bool:
        """Whether the content of a file was read before; the current scan has examined it."""
        return self.of(status) in self._known

    @property
    def text(self) -> str:
        """The digests of the contents that were read, for the state."""
        return "".join(sorted(self._known))

    def forget(self, status: Found) -> None:
        """Forget the content of a file."""
        self._known.discard(_content_digest(status))

    def remember(self, status: Found) -> None:
        """Remember the content of a file, as if it had been read."""
        self._known.add(_content_digest(status))

    def add(self, content: str) -> bool:
        """Add a digest. Return whether it is new."""
        is_new = content not in self._known
        self._known.add(content)
        return is_new


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
        hashed = _hash_of(found, length)
        with reading_from(found.path):
            is_same = looked_up(found.path) == found
    except InputUnreadable as error:
        if not is_gone(error):
            raise
        is_same = False
    if not is_same or settles_in_millis(found, now_millis):
        raise StillChanging(found.path)
    return hashed


def _hash_of(found: Found, length: int) -> str:
    content, left = hashlib.sha256(), length
    for chunk in bytes_of_file(found):
        content.update(chunk[:left])
        left -= min(left, len(chunk))
    return content.hexdigest()


class Hashes:
    """The SHA-256 hashes of the new files of the current scan."""

    def __init__(self) -> None:
        self._hashes: dict[bytes, str] = {}

    def begin_scan(self) -> None:
        """Begin another scan, which has read nothing yet."""
        self._hashes.clear()

    def examine(self, new: Iterable[Found]) -> Iterator[Found]:
        """Yield the new files, after reading them, without those that are gone. Directories are not read."""
        for found in new:
            try:
                if not found.is_directory:
                    self._hashes[digest(found)] = _hash_of(found, found.length)
            except InputUnreadable as error:
                if not is_gone(error):
                    raise
            else:
                yield found

    def of(self, status: Found) -> str | None:
        """The hash of a file; None if the current scan did not read it as it is now."""
        return self._hashes.get(digest(status))


def _content_digest(found: Found) -> str:
    """A digest of the decompressed content. A file that cannot be decompressed is like no other, and is read."""
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
    """The bytes of a file as they are."""
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
