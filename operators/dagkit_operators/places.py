"""The files that readers read: found, looked up and opened, wherever `dagkit.urls` leads."""

import errno
import io
import logging
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

from dagkit.errors import InputUnreadable
from dagkit.urls import absolute, below, is_url, local_path, plain, resolved

REMOTE_READ = 8 << 20
"""Bytes that are asked of another machine at a time."""
NOWHERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)
"""How the system says of a path that it leads to nothing."""

_log = logging.getLogger(__name__)


class Stream(Protocol):
    """Bytes that are read from any place on; closed when the `with` is left."""

    def seek(self, offset: int, /) -> int: ...
    def readinto(self, buffer: memoryview, /) -> int | None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *error: object) -> None: ...


@dataclass(frozen=True, slots=True)
class Found:
    """A file as it was when somebody looked."""

    path: str
    length: int
    modified_millis: int


def missing(place: str, then: str) -> InputUnreadable:
    """That a place which must be there is not."""
    if is_pattern(place):
        then = "or ask for a pattern by file_pattern_regular_exp, or by MatchFiles: here it is a name like any other"
    return InputUnreadable(f"cannot read {plain(place)}: there is no such file or directory; make it, {then}")


@contextmanager
def reading_from(place: str, then: str = "and launch again") -> Iterator[None]:
    """What the filesystem refuses is told by place, with what to do."""
    try:
        yield
    except OSError as error:
        path = place.partition("?")[0] if is_url(place) else error.filename or plain(place)
        raise InputUnreadable(f"cannot read {path}: {error.strerror or error}; mend that, {then}") from error


def opened(path: str) -> Stream:
    """The bytes of a file, from its beginning."""
    if not is_url(path):
        local: Stream = open(local_path(path), "rb", buffering=0)  # type: ignore[assignment] # noqa: PTH123, SIM115 - whoever asked closes it
        return local
    filesystem, inner, _ = resolved(path)
    remote: Stream = io.BufferedReader(filesystem.open_input_file(inner), REMOTE_READ)  # type: ignore[assignment]
    return remote


def looked_up(path: str) -> Found | None:
    """The file as it is now; none where there is none."""
    if not is_url(path):
        try:
            status = Path(local_path(path)).stat()
        except OSError as error:
            if _lies_nowhere(error):
                return None
            raise
        return Found(path, status.st_size, status.st_mtime_ns // 1_000_000) if stat.S_ISREG(status.st_mode) else None
    filesystem, inner, _ = resolved(path)
    info = filesystem.get_file_info(inner)
    return Found(path, info.size or 0, _millis(info)) if info.is_file else None


def exists(path: str) -> bool:
    """Whether there is a file or a folder."""
    if not is_url(path):
        return Path(local_path(path)).exists()
    import pyarrow.fs as pa_fs  # noqa: PLC0415 - whoever only compiles does not load Arrow

    filesystem, inner, _ = resolved(path)
    return bool(filesystem.get_file_info(inner).type != pa_fs.FileType.NotFound)


def files_below(folder: str, *, recursive: bool) -> Iterator[tuple[str, Found]]:
    """The files in a folder, and in those inside it, each with its plain path from there on."""
    if is_url(folder):
        yield from _remote_files(folder, recursive=recursive)
        return
    for found in _local_files(folder, recursive=recursive, entered=set()):
        yield found.path[len(folder) :].lstrip("/"), found


def unfinished(below: str) -> bool:
    """Whether a path below a folder is of a hidden or unfinished file, or lies in a hidden folder."""
    parts = below.split("/")
    return parts[-1].endswith((".tmp", "._COPYING_")) or any(part.startswith(".") for part in parts)


def files_like(pattern: str) -> Iterator[Found]:
    """The files that a pattern means: one of this name; all in a folder of this name; else those that match it.

    `*` and `?` stand for letters of one name, `**` for folders, too. In URLs `?` begins the options, as ever. What is
    hidden or unfinished is passed over below the part of the pattern that is plain.
    """
    place = absolute(pattern)
    named = looked_up(place)
    if named is not None:
        yield named
        return
    folder, likeness = _folder_and_likeness(place)
    matches = _matching(likeness)
    for below_it, found in files_below(folder, recursive=not likeness or "/" in likeness or "**" in likeness):
        if not unfinished(below_it) and matches(below_it):
            yield found


def is_pattern(pattern: str) -> bool:
    """Whether it may mean any number of files, and none as well."""
    return bool(_folder_and_likeness(absolute(pattern))[1])


def _folder_and_likeness(place: str) -> tuple[str, str]:
    """The folder of all that a pattern may mean, and what their paths from there on are like."""
    path, mark, options = place.partition("?") if is_url(place) else (place, "", "")
    first = re.search(r"[*\[]" if mark or is_url(place) else r"[*?\[]", path)
    if first is None:
        return place, ""
    folder, _, _ = path[: first.start()].rpartition("/")
    return (folder or "/") + mark + options, path[len(folder) :].lstrip("/")


def _matching(likeness: str) -> Callable[[str], Any]:
    if not likeness:
        return lambda _: True
    from fsspec.utils import glob_translate  # noqa: PLC0415 - only patterns need it

    return re.compile(glob_translate(likeness)).match


def _local_files(folder: str, *, recursive: bool, entered: set[tuple[int, int]]) -> Iterator[Found]:
    """Links are followed; a folder that was entered already is not entered again."""
    try:
        status = Path(folder).stat()
        if not stat.S_ISDIR(status.st_mode) or (status.st_dev, status.st_ino) in entered:
            return
        entered.add((status.st_dev, status.st_ino))
        entries = list(os.scandir(folder))
    except OSError as error:  # it went while others were looked at, for one
        if _lies_nowhere(error):
            return
        raise
    for entry in entries:
        if _is_folder(entry):
            if recursive:
                yield from _local_files(entry.path, recursive=True, entered=entered)
            continue
        found = looked_up(entry.path)
        if found is not None:
            yield found


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError as error:
        if _lies_nowhere(error):
            return False
        raise


def _lies_nowhere(error: OSError) -> bool:
    """Whether a path leads to nothing that could be read: a link into nothing or to itself, say."""
    if error.errno == errno.ENAMETOOLONG:
        _log.warning("%.200s... is a path that is too long; what lies there is passed over", error.filename)
    return error.errno in NOWHERE


def _remote_files(folder: str, *, recursive: bool) -> Iterator[tuple[str, Found]]:
    import pyarrow.fs as pa_fs  # noqa: PLC0415 - whoever only compiles does not load Arrow

    filesystem, inner, _ = resolved(folder)
    root = inner.rstrip("/")
    for info in filesystem.get_file_info(pa_fs.FileSelector(inner, allow_not_found=True, recursive=recursive)):
        if info.is_file:
            name = info.path[len(root) :].lstrip("/")
            yield name, Found(below(folder, name), info.size or 0, _millis(info))


def _millis(info: Any) -> int:
    """When a file changed; 0 where its filesystem does not tell."""
    return 0 if info.mtime_ns is None else int(info.mtime_ns) // 1_000_000
