"""Where the indexes of gzip files are kept: in a folder beside the application's ledger.

An index is named after the length of its file and a sample of its bytes, so that it is also found for a file that was
renamed, copied or sent again. If it is lost or damaged, the file is decompressed from its beginning, which takes longer
and gives the same content. So the folder keeps a limited number of bytes: those of the indexes that were used last.
"""

import hashlib
import logging
import os
import secrets
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from dagkit.ground.urls import below, is_url, local_path, resolved, shown
from dagkit_operators.compression.gzip_index import SPACING, GzipIndex
from dagkit_operators.filesystem.access import reading_from, sampled

FOLDER = "gzip-indexes"
"""The folder for indexes in the application's folder."""
SHORTEST = 1 << 20
"""A file of fewer bytes gets no index: to read it takes a moment."""
SAMPLE = 4 << 10
"""Bytes at the beginning, in the middle and at the end of a file that distinguish it from others."""
# Which indexes are still needed cannot be known: one is found by content, under any name, even a year later. A command
# that deletes them would have to guess.
MOST_BYTES = 256 << 20
"""Bytes of all indexes: enough for 500 GiB of content. Beyond them, those that were not used longest are deleted."""
REMEMBERED = 16
"""The number of indexes that a process keeps in memory."""
_log = logging.getLogger(__name__)


class IndexFolder:
    """The indexes of the gzip files that an application has read."""

    def __init__(
        self,
        application_path: str,
        *,
        spacing: int = SPACING,
        shortest: int = SHORTEST,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        """Keep indexes with points `spacing` bytes of content apart, of files of at least `shortest` bytes."""
        self.spacing = spacing
        self._shortest = shortest
        self._most_bytes = most_bytes
        self._folder = _in(application_path, FOLDER) if application_path else ""

    def place_of(self, path: str, length: int, filesystem: Any = None) -> str | None:
        """Where the index of a file is kept; None if it gets none, or if the file is gone."""
        if not self._folder or length < self._shortest:
            return None
        content = hashlib.blake2b(b"%d " % length, digest_size=16)
        with reading_from(path):
            try:
                for part in sampled(path, [0, length // 2, max(0, length - SAMPLE)], SAMPLE, filesystem):
                    content.update(part)
            except FileNotFoundError:
                return None  # the reader of the file reports that it is gone
        return _in(self._folder, content.hexdigest())

    def load(self, place: str) -> GzipIndex | None:
        """The index that is kept at a place; None if there is none."""
        try:
            return _load(place)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as fault:
            _log.warning("the gzip index %s cannot be read, and is not used: %s", shown(place), fault)
            return None

    def save(self, place: str, index: GzipIndex) -> None:
        """Keep an index at a place, if it has any points. If that fails, log it: only speed is lost."""
        if not index.points:
            return
        try:
            _write(place, index.to_bytes())
            self._delete_unused()
        except OSError as fault:
            _log.warning("the gzip index %s cannot be kept: %s", shown(place), fault)

    def _delete_unused(self) -> None:
        """Delete the indexes that were not used longest, until the others have no more than `most_bytes`."""
        total = 0
        for _, length, file in sorted(_files_in(self._folder), reverse=True):
            total += length
            if total > self._most_bytes:
                with suppress(FileNotFoundError):  # another reader deleted it
                    _delete(file)


@lru_cache(REMEMBERED)
def _load(place: str) -> GzipIndex:
    index = GzipIndex.from_bytes(_read(place))
    # Its time of change is its last use: those that were not used longest are deleted. On other filesystems, which set
    # no times, those that were written first are deleted.
    if not is_url(place):
        with suppress(OSError):  # a folder that cannot be written to is read all the same
            os.utime(local_path(place))
    return index


def _files_in(folder: str) -> Iterator[tuple[int, int, str]]:
    """The time of the last use of each file in the folder, its length, and its path."""
    if not is_url(folder):
        with os.scandir(local_path(folder)) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # another reader deleted it
                    status = entry.stat()
                    yield status.st_mtime_ns, status.st_size, entry.path
        return
    import pyarrow.fs as pa_fs  # noqa: PLC0415 - Arrow is not loaded when only compiling

    filesystem, inner, _ = resolved(folder)
    for info in filesystem.get_file_info(pa_fs.FileSelector(inner)):
        yield info.mtime_ns or 0, info.size or 0, _in(folder, info.base_name)


def _delete(file: str) -> None:
    if is_url(file):
        filesystem, inner, _ = resolved(file)
        filesystem.delete_file(inner)
    else:
        Path(local_path(file)).unlink()


def _read(place: str) -> bytes:
    if not is_url(place):
        return Path(local_path(place)).read_bytes()
    filesystem, inner, _ = resolved(place)
    with filesystem.open_input_stream(inner) as stream:
        return bytes(stream.read())


def _write(place: str, content: bytes) -> None:
    """Write a file so that readers see all of it, or nothing."""
    # Another process may write the same index at this time.
    ending = f".{secrets.token_hex(4)}.tmp"
    if not is_url(place):
        file = Path(local_path(place))
        passing = file.with_name(file.name + ending)
        passing.parent.mkdir(parents=True, exist_ok=True)
        try:
            passing.write_bytes(content)
            passing.replace(file)
        except OSError:
            # On a full disk, each reading of the file would leave another part of an index.
            passing.unlink(missing_ok=True)
            raise
        return
    filesystem, inner, _ = resolved(place)
    filesystem.create_dir(inner.rpartition("/")[0], recursive=True)
    with filesystem.open_output_stream(inner + ending) as stream:
        stream.write(content)
    filesystem.move(inner + ending, inner)


def _in(folder: str, name: str) -> str:
    return below(folder, name) if is_url(folder) else f"{folder.rstrip('/')}/{name}"
