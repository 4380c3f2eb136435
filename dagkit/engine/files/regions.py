"""Files that several slots write together, each at its own offsets, before one operator names them.

APPLICATION_PATH/staging/together-<digest of the key>/whole/file
"""

import errno
import hashlib
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from dagkit.engine.files.folders import LocalFolder, folder_at
from dagkit.engine.files.pieces import MOST_OPEN, Syncing, staging_failed
from dagkit.ground.urls import local_path

TOGETHER = "together-"
"""Begins the name of each folder with such a file."""
CHUNK = 64 << 10
"""Bytes that are copied at a time if the kernel does not copy them."""
_CANNOT = (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM)
_NAME = "file"


def region_name(key: str) -> str:
    """The name of the folder in which a file is staged."""
    return f"{TOGETHER}{hashlib.blake2b(key.encode(errors='surrogateescape'), digest_size=16).hexdigest()}"


def region_folder(key: str) -> str:
    """The folder of a file below the application's folder; it contains nothing else."""
    return f"staging/{region_name(key)}/whole"


def region_path(key: str) -> str:
    """The path of a file below the application's folder."""
    return f"{region_folder(key)}/{_NAME}"


def is_region_path(path: str) -> bool:
    """Whether a path below the application's folder is that of such a file, or of its folder."""
    return path.startswith(f"staging/{TOGETHER}")


class Regions:
    """The files of this kind that one slot has open."""

    def __init__(self, application_path: str, syncing: Syncing, *, durable: bool) -> None:
        self._application_path = application_path
        self._syncing = syncing
        self._durable = durable
        self._open: dict[str, BinaryIO] = {}
        self._copies_itself = False
        """Whether the kernel was unable to copy."""

    def write_at(self, key: str, offset: int, content: Any) -> None:
        """Write bytes at an offset. A repeated window writes the same bytes again, which changes nothing."""
        place = offset
        try:
            handle = (self._open.get(key) or self._opened(key)).fileno()
            view = memoryview(content).cast("B")
            while len(view):
                written = os.pwrite(handle, view, place)
                place, view = place + written, view[written:]
        except OSError as error:
            raise staging_failed(key, error, place) from error

    def copy_at(self, key: str, offset: int, path: str, length: int) -> int:
        """Copy bytes of a local file to the same offset. Return how many there were."""
        with Path(local_path(path)).open("rb", buffering=0) as source:
            place = offset
            try:
                target = (self._open.get(key) or self._opened(key)).fileno()
                while place < offset + length:
                    copied = self._copied(source.fileno(), target, place, offset + length - place)
                    if not copied:
                        break
                    place += copied
            except OSError as error:
                raise staging_failed(key, error, place) from error
        return place - offset

    def _copied(self, source: int, target: int, offset: int, length: int) -> int:
        """Copy some bytes; by way of this process if the kernel cannot copy between the two files."""
        if not self._copies_itself:
            try:
                return os.copy_file_range(source, target, length, offset, offset)
            except OSError as error:
                if error.errno not in _CANNOT:
                    raise
                self._copies_itself = True
        return os.pwrite(target, os.pread(source, min(length, CHUNK), offset), offset)

    def _opened(self, key: str) -> BinaryIO:
        if len(self._open) >= MOST_OPEN:
            self._close(next(iter(self._open)))
        folder = folder_at(self._application_path).below(region_folder(key))
        if not isinstance(folder, LocalFolder):
            raise OSError(errno.ENOTSUP, "a file of slices needs an APPLICATION_PATH that is a mounted folder")
        folder.make()
        # never cut: other slots write to the same file meanwhile
        handle = os.open(folder.path / _NAME, os.O_RDWR | os.O_CREAT, 0o666)
        self._open[key] = stream = os.fdopen(handle, "r+b", buffering=0)
        return stream

    def close(self) -> None:
        """Close all files; they are synced when the given `Syncing` has waited."""
        for key in list(self._open):
            self._close(key)

    def _close(self, key: str) -> None:
        stream = self._open.pop(key)
        if not self._durable:
            stream.close()
            return
        self._syncing.add(stream, lambda error: staging_failed(key, error, 0))
        folder_at(self._application_path).below(region_folder(key)).sync(levels=4)

    def abandon(self) -> None:
        """Close all files after a failed attempt. What was written stays: another attempt writes the same."""
        for stream in self._open.values():
            with suppress(OSError):
                stream.close()
        self._open.clear()
