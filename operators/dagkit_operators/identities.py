"""What a file is known again by when it grew or was renamed, and told from another that took its name.

That is its number on its device, which may be given to another file when it is gone, together with how that begins and
ends which it held. The number of the device may be another when the machine starts again: it tells files of different
names apart. Files of other machines, which nobody appends to, have nothing but their names.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import FileIO

from dagkit.urls import is_url
from dagkit_operators.places import NotRegular, exists, opened_here

EDGE = 256
"""Bytes at its beginning, and before its end as it was, that a file is known by at most."""


def has_identity(path: str, identity: str) -> bool:
    """Whether the file at a path is the one of this identity; where none was taken, any file is."""
    if not identity or is_url(path):
        return exists(path)
    with _opened(path) as file:
        return _is_of(file, path, identity)


class Identities:
    """Identities of files that are known."""

    def __init__(self, identities: Iterable[str]) -> None:
        self._by_inode: dict[str, list[str]] = {}
        self._met: set[str] = set()
        for identity in identities:
            self._add(identity)

    def meet(self, path: str) -> tuple[str | None, bool]:
        """What the file at a path is known by from now on, none where it is empty or gone; and whether it was known."""
        now: str | None = path
        if is_url(path):
            same = self._by_inode.get(path, [])
        else:
            with _opened(path) as file:
                now = _identity(file, path)
                same = [each for each in self._by_inode.get(_inode(now or ""), []) if _is_of(file, path, each)]
        self._met.update(same)
        if now is not None:
            self._add(now)
        return now, bool(same)

    def has_met(self, identity: str) -> bool:
        """Whether a file of this identity was met since."""
        return identity in self._met

    def _add(self, identity: str) -> None:
        self._by_inode.setdefault(identity if is_url(identity) else _inode(identity), []).append(identity)


@contextmanager
def _opened(path: str) -> Iterator[FileIO | None]:
    """The file that has a name now, whatever takes that meanwhile; none where there is none."""
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
    # older ledgers know neither devices nor names; and under its name a file is known on a device that has a new number
    is_there = name in ([], [_digest(os.fsencode(path))]) or number == f"{status.st_dev:x}.{status.st_ino:x}"
    return is_there and _inode(identity) == f"{status.st_ino:x}" and _witness(file, int(length)) == witness


def _inode(identity: str) -> str:
    """The number on its device."""
    return identity.partition("-")[0].rpartition(".")[2]


def _witness(file: FileIO, length: int) -> str:
    """A digest of how a file begins, and of its last bytes when it had this length; a shorter one has another.

    Of a file of no more than both edges it is that of all bytes.
    """
    end = max(EDGE, length - EDGE)
    return _digest(os.pread(file.fileno(), min(EDGE, length), 0) + os.pread(file.fileno(), max(0, length - end), end))


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()
