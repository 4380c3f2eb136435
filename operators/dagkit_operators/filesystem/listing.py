"""Listing the files in folders, on this machine and on remote filesystems."""

import logging
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from dagkit.errors import printable
from dagkit.urls import below, is_url, local_path, resolved, without_links
from dagkit_operators.filesystem.access import Found, found_of, leads_nowhere, millis_of, special_kind, status_of

_log = logging.getLogger(__name__)


def files_below(folder: str, *, recursive: bool, wanted: Callable[[str], Any] = lambda _: True) -> Iterator[Found]:
    """The files in a folder, with `recursive` also in its subfolders, whose path relative to the folder is `wanted`.

    A wanted FIFO, device or socket is logged once and skipped.
    """
    if is_url(folder):
        yield from (found for below_it, found in _remote_files(folder, recursive=recursive) if wanted(below_it))
        return
    folder = local_path(folder)
    for path in _local_entries(folder, recursive=recursive, entered=set()):
        status = status_of(path) if wanted(path[len(folder) :].lstrip("/")) else None
        if status is None:
            continue
        found, kind = found_of(path, status), special_kind(status.st_mode)
        if found is not None:
            yield found
        elif kind is not None:
            _log_skipped(path, kind)


@lru_cache(maxsize=4096)  # once in each process, however often a folder is scanned
def _log_skipped(path: str, kind: str) -> None:
    _log.warning("%s is %s, and is skipped: only regular files are read", printable(path), kind)


def paths_below(paths: Sequence[str], folder: str) -> Iterator[tuple[str, str]]:
    """The paths that lie in a folder or are its own, each with its relative path, which is empty for the folder.

    The paths have no symbolic links; those in the folder's own path are resolved.
    """
    itself = without_links(folder)
    start = f"{itself.rstrip('/')}/"
    for path in paths:
        if path == itself or path.startswith(start):
            yield path, path[len(start) :]


def _local_entries(folder: str, *, recursive: bool, entered: set[tuple[int, int]]) -> Iterator[str]:
    """The paths of everything but folders. Follows links; enters no folder twice, so that cycles of links end."""
    try:
        status = Path(folder).stat()
        if not stat.S_ISDIR(status.st_mode) or (status.st_dev, status.st_ino) in entered:
            return
        entered.add((status.st_dev, status.st_ino))
        entries = list(os.scandir(folder))
    except OSError as error:  # it may have been deleted meanwhile
        if leads_nowhere(error):
            return
        raise
    for entry in entries:
        if _is_folder(entry):
            if recursive:
                yield from _local_entries(entry.path, recursive=True, entered=entered)
        else:
            yield entry.path


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError as error:
        if leads_nowhere(error):
            return False
        raise


def _remote_files(folder: str, *, recursive: bool) -> Iterator[tuple[str, Found]]:
    import pyarrow.fs as pa_fs  # noqa: PLC0415 - Arrow is not loaded when only compiling

    filesystem, inner, _ = resolved(folder)
    root = inner.rstrip("/")
    for info in filesystem.get_file_info(pa_fs.FileSelector(inner, allow_not_found=True, recursive=recursive)):
        if info.is_file:
            name = info.path[len(root) :].lstrip("/")
            yield name, Found(below(folder, name), info.size or 0, millis_of(info))
