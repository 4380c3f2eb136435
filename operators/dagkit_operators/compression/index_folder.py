"""Where the indexes of gzip files are kept: in a folder beside the application's ledger.

An index is named after the length of its file and a sample of its bytes, so that it is also found for a file that was
renamed, copied or sent again. If it is lost or damaged, the file is decompressed from its beginning, which takes longer
and gives the same content.
"""

import hashlib
import logging
import secrets
from functools import lru_cache
from pathlib import Path
from typing import Any

from dagkit.urls import is_url, local_path, resolved, shown
from dagkit_operators.compression.gzip_index import SPACING, GzipIndex
from dagkit_operators.filesystem.access import reading_from, sampled

FOLDER = "gzip-indexes"
"""The folder for indexes in the application's folder."""
SHORTEST = 1 << 20
"""A file of fewer bytes gets no index: to read it takes a moment."""
SAMPLE = 4 << 10
"""Bytes at the beginning, in the middle and at the end of a file that distinguish it from others."""
REMEMBERED = 16
"""The number of indexes that a process keeps in memory."""
_log = logging.getLogger(__name__)


class IndexFolder:
    """The indexes of the gzip files that an application has read."""

    def __init__(self, application_path: str, *, spacing: int = SPACING, shortest: int = SHORTEST) -> None:
        """Keep indexes with points `spacing` bytes of content apart, of files of at least `shortest` bytes."""
        self.spacing = spacing
        self._shortest = shortest
        self._folder = f"{application_path.rstrip('/')}/{FOLDER}" if application_path else ""

    def place_of(self, path: str, length: int, filesystem: Any = None) -> str | None:
        """Where the index of a file is kept; None if it gets none, or if the file is gone.

        The path belongs to the Arrow filesystem, if one is given; otherwise it is local or a URL.
        """
        if not self._folder or length < self._shortest:
            return None
        content = hashlib.blake2b(b"%d " % length, digest_size=16)
        with reading_from(path):
            try:
                for part in sampled(path, [0, length // 2, max(0, length - SAMPLE)], SAMPLE, filesystem):
                    content.update(part)
            except FileNotFoundError:
                return None  # the reader of the file reports that it is gone
        return f"{self._folder}/{content.hexdigest()}"

    def load(self, place: str) -> GzipIndex | None:
        """The index that is kept at a place; None if there is none."""
        try:
            return _loaded(place)
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
        except OSError as fault:
            _log.warning("the gzip index %s cannot be kept: %s", shown(place), fault)


@lru_cache(REMEMBERED)
def _loaded(place: str) -> GzipIndex:
    return GzipIndex.from_bytes(_read(place))


def _read(place: str) -> bytes:
    if not is_url(place):
        return Path(local_path(place)).read_bytes()
    filesystem, inner, _ = resolved(place)
    with filesystem.open_input_stream(inner) as stream:
        return bytes(stream.read())


def _write(place: str, content: bytes) -> None:
    """Write a file so that readers see all of it, or nothing."""
    passing = f"{place}.{secrets.token_hex(4)}.tmp"
    if not is_url(place):
        file = Path(local_path(passing))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        file.replace(local_path(place))
        return
    filesystem, inner, _ = resolved(passing)
    filesystem.create_dir(inner.rpartition("/")[0], recursive=True)
    with filesystem.open_output_stream(inner) as stream:
        stream.write(content)
    filesystem.move(inner, resolved(place)[1])
