"""File identities: recognise a file after it grew or was renamed, and distinguish it from a later file of its name.

An identity combines the inode, which the system may reuse, with digests of the first and last bytes known. The device
number may change when the machine restarts; it only distinguishes files with different names. A remote file is
identified by its name, and in an object store also by the version of its content: an object can only be overwritten.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import FileIO

from dagkit.urls import is_url
from dagkit_operators.filesystem.access import NotRegular, exists, opened_here

EDGE = 256
"""The most bytes digested at the beginning of a file, and before its known end."""
_VERSION = " version="
"""Separates the URL of an object from the version of its content."""


def has_identity(path: str, identity: str) -> bool:
    """Whether the file at a path has this identity. An empty identity matches any file that exists."""
    if not identity or is_url(path):
        return exists(path)
    with _opened(path) as file:
        return _is_of(file, path, identity)


class Identities:
    """The identities of known files."""

    def __init__(self, identities: Iterable[str]) -> None:
        self._by_inode: dict[str, list[str]] = {}
        self._identified: set[str] = set()
        for identity in identities:
            self._add(identity)

    def identify(self, path: str, version: str = "") -> tuple[str | None, bool]:
        """Return the current identity of the file at a path, and whether the file was known.

        The identity is None if the file is empty or gone; otherwise the file is known from now on. An object that was
        recorded without a version, or has none now, is known whatever its content.
        """
        now: str | None = path
        if is_url(path):
            now = f"{path}{_VERSION}{version}" if version else path
            known = self._by_inode.get(path, [])
            # An overwritten object may get its old content and version back, so replaced versions are not kept.
            self._identified.update(known)
            same = [identity for identity in known if not version or identity in (path, now)]
            self._by_inode.pop(path, None)
        else:
            with _opened(path) as file:
                now = _identity(file, path)
                candidates = self._by_inode.get(_inode(now or ""), [])
                same = [identity for identity in candidates if _is_of(file, path, identity)]
        self._identified.update(same)
        if now is not None:
            self._add(now)
        return now, bool(same)

    def was_identified(self, identity: str) -> bool:
        """Whether `identify` has found a file of this identity."""
        return identity in self._identified

    def _add(self, identity: str) -> None:
        key = identity.partition(_VERSION)[0] if is_url(identity) else _inode(identity)
        self._by_inode.setdefault(key, []).append(identity)


@contextmanager
def _opened(path: str) -> Iterator[FileIO | None]:
    """Open the regular file at a path; None if there is none. It stays the same file if its name is reused."""
    try:
        file = opened_here(path)
    except (FileNotFoundError, NotRegular):
        yield None
        return
    with file:
        yield file


def _identity(file: FileIO | None, path: str) -> str | None:
    status = None if file is None else os.fstat(file.fileno())
    if file is None or status is None or not status.st_size:
        return None
    number = f"{status.st_dev:x}.{status.st_ino:x}"
    return f"{number}-{status.st_size}-{_witness(file, status.st_size)}-{_digest(os.fsencode(path))}"


def _is_of(file: FileIO | None, path: str, identity: str) -> bool:
    if file is None:
        return False
    number, length, witness, *name = identity.split("-")
    status = os.fstat(file.fileno())
    # older ledgers hold neither devices nor names; a file with its old name matches even if the device number changed
    is_there = name in ([], [_digest(os.fsencode(path))]) or number == f"{status.st_dev:x}.{status.st_ino:x}"
    return is_there and _inode(identity) == f"{status.st_ino:x}" and _witness(file, int(length)) == witness


def _inode(identity: str) -> str:
    """The inode number of an identity, without the device."""
    return identity.partition("-")[0].rpartition(".")[2]


def _witness(file: FileIO, length: int) -> str:
    """A digest of a file's first bytes, and of the last bytes before `length`.

    If the file has become shorter, the digest differs. For a file of at most two edges it covers all bytes.
    """
    end = max(EDGE, length - EDGE)
    return _digest(os.pread(file.fileno(), min(EDGE, length), 0) + os.pread(file.fileno(), max(0, length - end), end))


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()
