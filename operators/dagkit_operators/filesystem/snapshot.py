"""A file as the splitter saw it: bytes appended later are not part of the blocks described before."""

import logging
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dagkit import Block
from dagkit.ground.urls import is_url, local_path, shown
from dagkit.ranges import OFFSET_INFINITY
from dagkit_operators.filesystem.access import (
    BadFile,
    Found,
    Seekable,
    looked_up,
    opened,
    opened_here,
    reading_from,
    to_read,
)
from dagkit_operators.filesystem.identities import witness_of

WITNESS = "witness"
"""The fact of a block: a digest of the first and last bytes of its file."""

_log = logging.getLogger(__name__)


class FileChanged(BadFile):
    """The file is not as the splitter saw it, and its blocks cannot be read."""

    code = "file-changed"


class FileReplaced(FileChanged):
    """Another file has taken the name of the one that the splitter saw."""


@contextmanager
def open_snapshot(block: Block, filesystem: Any = None) -> Iterator[Seekable]:
    """Open the file of a block. Raise FileChanged if it is gone, FileReplaced if another one has its name.

    Log a warning if it may have been changed.
    """
    facts = block.facts or {}
    with reading_from(block.path):
        now = to_read(block.path, filesystem)
    if now is None:
        raise FileChanged(
            f"{shown(block.path)} is gone, and {_of(block)} is still to be read",
            "bring it back with its old time (cp -p), else all of it is read once more; files must stay until they are "
            "read",
        )
    seen = _file_length(block), facts.get("modified_millis", now.modified_millis)
    is_other = bool(now.version) and now.version != facts.get("version", now.version)
    # While its time stays, a local file is the one that was split, and is not opened for its first and last bytes.
    is_later = now.modified_millis != seen[1]
    if is_other or (is_later and filesystem is None and _is_another(block)):
        raise FileReplaced(
            f"{shown(block.path)} is another file than the one that was split, and {_of(block)} is still to be read",
            "bring the old one back with its old time (cp -p), or give up its rest with `dagkit work give-up`; the new "
            "one is read as a whole when it is found",
        )
    # With its old length and ends and a new time, the file may have been rewritten between its ends, or merely touched.
    # The splitter finds it again and reads its new content as a whole, so reading does not stop here.
    if now.length == seen[0] and is_later:
        _log.warning("%s was changed after it was split; %s is read as it is now", shown(block.path), _of(block))
    with reading_from(block.path):
        opening = opened(block.path, filesystem)
    with opening as stream:
        yield _Snapshot(stream, block)


def whole_content(block: Block) -> bytearray | None:
    """The content of a small local file, if the block is all of it and it is as the splitter saw it; else None.

    It costs four calls of the system. `open_snapshot` finds out and reports what is different.
    """
    facts = block.facts or {}
    if block.start or not block.last or facts.get("length") != block.end or is_url(block.path):
        return None
    content = bytearray(block.end)
    try:
        file = os.open(local_path(block.path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        status = os.fstat(file)
        is_same = status.st_mtime_ns // 1_000_000 == facts.get("modified_millis") and status.st_size == block.end
        return content if is_same and stat.S_ISREG(status.st_mode) and os.readv(file, [content]) == block.end else None
    except OSError:
        return None
    finally:
        os.close(file)


def refuse_changed(block: Block, filesystem: Any = None) -> None:
    """Raise FileChanged if the file of a block that was set aside has another length, time or version now.

    It is found again as a whole then. A file that is gone is left to its reader.
    """
    facts = block.facts or {}
    with reading_from(block.path):
        now = looked_up(block.path, filesystem)
    if now is None:
        return
    was = _file_length(block), facts.get("modified_millis"), facts.get("version", now.version)
    if (now.length, now.modified_millis, now.version) != was:
        raise FileChanged(
            f"{shown(block.path)} has changed since it was found, and is read as a whole when it is found again",
            "give up what is set aside of it with `dagkit work give-up`",
        )


def grown(block: Block, filesystem: Any = None) -> Found | None:
    """The file of a block if it has grown since it was split, else None; None for objects with versions."""
    before = _file_length(block)
    if before is None or "version" in (block.facts or {}):
        return None
    with reading_from(block.path):
        now = looked_up(block.path, filesystem)
    return None if now is None or now.version or now.length <= before else now


class _Snapshot:
    """A stream that ends where the file ended when it was split, so that a window that runs again reads the same bytes.

    If the file has become shorter, reading raises FileChanged instead of ending early.
    """

    def __init__(self, stream: Seekable, block: Block) -> None:
        self._stream = stream
        self._block = block
        self._place = 0
        self._length = _file_length(block)
        self._least = 0 if block.end == OFFSET_INFINITY else block.end if self._length is None else self._length

    def seek(self, offset: int, /) -> int:
        self._place = self._stream.seek(offset)
        return self._place

    def readinto(self, buffer: memoryview, /) -> int:
        if self._length is not None:
            buffer = buffer[: max(0, self._length - self._place)]
        if not len(buffer):
            return 0
        got = self._stream.readinto(buffer) or 0
        self._place += got
        if not got and self._place < self._least:
            raise FileChanged(
                f"{shown(self._block.path)} ends at byte {self._place}, and had {self._least} bytes when it was split; "
                "the rest is still to be read",  # by this block or by one that uses the same stream
                "bring its content back, and do not cut files before they are read",
            )
        return got


def _file_length(block: Block) -> int | None:
    """The length of the file when it was split; for a block of its content, `length` is that of the content."""
    facts = block.facts or {}
    length = facts.get("file_length", facts.get("length"))
    return None if length is None else int(length)


def _is_another(block: Block) -> bool:
    """Whether a file of this machine has at least the length that the splitter saw, and other first or last bytes."""
    length, witness = _file_length(block), (block.facts or {}).get(WITNESS)
    if witness is None or length is None:
        return False
    with reading_from(block.path), opened_here(block.path) as file:
        return os.fstat(file.fileno()).st_size >= length and witness_of(file, length) != witness


def _of(block: Block) -> str:
    return f"its block {block.block_id}"
