"""What a file is known again by when it grew or was renamed, and told from another that took its name.

That is its number on its device, which may be given to another file when it is gone, together with how it begins. The
number of the device may be another when the machine starts again: it tells files of different names apart. Files of
other machines, which nobody appends to, have nothing but their names.
"""

import hashlib
import os
from collections.abc import Iterable

from dagkit.urls import is_url, local_path
from dagkit_operators.places import exists

HEAD = 256
"""Bytes that a file is known by at most."""


def identity_of(path: str) -> str | None:
    """What the file at a path will be known by; none where it holds nothing yet, or is gone."""
    if is_url(path):
        return path
    number, head = _number_and_head(path, HEAD)
    return f"{number}-{len(head)}-{_digest(head)}-{_digest(os.fsencode(path))}" if head else None


def has_identity(path: str, identity: str) -> bool:
    """Whether the file at a path is the one of this identity; where none was taken, any file is."""
    if not identity or is_url(path):
        return exists(path)
    number, length, digest, *name = identity.split("-")
    now, head = _number_and_head(path, int(length))
    # older ledgers know neither devices nor names; and under its name a file is known on a device that has a new number
    is_there = now == number if name not in ([], [_digest(os.fsencode(path))]) else _inode(now) == _inode(number)
    return is_there and _digest(head) == digest


class Identities:
    """Identities of files that are known."""

    def __init__(self, identities: Iterable[str]) -> None:
        self._by_inode: dict[str, list[str]] = {}
        for identity in identities:
            inode = identity if is_url(identity) else _inode(identity.partition("-")[0])
            self._by_inode.setdefault(inode, []).append(identity)

    def of(self, path: str) -> str | None:
        """That of the file at a path; none where it is not known."""
        inode = path if is_url(path) else _inode(_number_and_head(path, 0)[0])
        return next((each for each in self._by_inode.get(inode, ()) if has_identity(path, each)), None)


def _number_and_head(path: str, length: int) -> tuple[str, bytes]:
    """Both of one file, whatever takes its name meanwhile; nothing where there is none."""
    try:
        with open(local_path(path), "rb", buffering=0) as file:  # noqa: PTH123 - without a buffer
            status = os.fstat(file.fileno())
            return f"{status.st_dev:x}.{status.st_ino:x}", file.read(length)
    except FileNotFoundError:
        return "", b""


def _inode(number: str) -> str:
    """The number on a disk, without that of the disk."""
    return number.rpartition(".")[2]


def _digest(head: bytes) -> str:
    return hashlib.blake2b(head, digest_size=8).hexdigest()
