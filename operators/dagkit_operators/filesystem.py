"""Finding, examining and opening the files that readers read, on any filesystem that `dagkit.urls` supports."""

import errno
import io
import logging
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Protocol, Self

from dagkit.errors import InputUnreadable, printable
from dagkit.patterns import is_whole
from dagkit.urls import absolute, as_text, below, is_url, local_path, plain, resolved, shown

REMOTE_READ = 8 << 20
"""Bytes requested from a remote filesystem at a time."""
NOWHERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)
"""The errors that mean that a path leads to nothing."""

_SPECIAL = (
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
    (stat.S_ISSOCK, "a socket"),
)
"""Tests for the kinds of special files, with their names."""

_log = logging.getLogger(__name__)


class Stream(Protocol):
    """A seekable stream of bytes; leaving the `with` closes it."""

    def seek(self, offset: int, /) -> int: ...
    def readinto(self, buffer: memoryview, /) -> int | None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *error: object) -> None: ...


@dataclass(frozen=True, slots=True)
class Found:
    """A file as it was when it was found."""

    path: str
    """The path as a ledger stores it: see `dagkit.urls.as_text`."""
    length: int
    modified_millis: int


def missing(place: str, then: str) -> InputUnreadable:
    """The error for a path that must exist and does not."""
    if is_pattern(place):
        then = "or ask for a pattern by file_pattern_regular_exp, or by MatchFiles: here it is a name like any other"
    return InputUnreadable(f"cannot read {shown(place)}: there is no such file or directory", f"make it, {then}")


@contextmanager
def reading_from(place: str, then: str = "and launch again") -> Iterator[None]:
    """Raise InputUnreadable for each OSError, with the path and with `then` as what to do."""
    try:
        yield
    except OSError as error:
        path = place.partition("?")[0] if is_url(place) else error.filename or plain(place)
        raise InputUnreadable(
            f"cannot read {printable(str(path))}: {error.strerror or error}", f"fix this, {then}"
        ) from error


class NotRegular(InputUnreadable):
    """A path leads to a FIFO, a device or a socket, and only regular files are read."""

    def __init__(self, path: str, kind: str) -> None:
        super().__init__(
            f"cannot read {printable(path)}: it is {kind}, and only regular files are read",
            "name a file or a directory, and write what comes through it to a file first",
        )


def refuse_special(place: str) -> None:
    """Raise NotRegular if a path of this machine leads to a FIFO, a device or a socket."""
    status = None if is_url(place) else _status(local_path(place))
    kind = None if status is None else _special(status.st_mode)
    if kind is not None:
        raise NotRegular(plain(place), kind)


def opened_here(path: str) -> io.FileIO:
    """A regular file of this machine, from its beginning. Raise NotRegular for anything else, without waiting.

    A FIFO may have taken the name since the path was looked up, and a plain open would wait for its writer.
    """
    name = local_path(path)
    file = open(name, "rb", buffering=0, opener=_without_waiting)  # noqa: SIM115 - the caller closes it
    kind = _special(os.fstat(file.fileno()).st_mode)
    if kind is not None:
        file.close()
        raise NotRegular(name, kind)
    return file


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def _special(mode: int) -> str | None:
    """The name of a kind of special file; None for regular files and directories."""
    return next((words for is_one, words in _SPECIAL if is_one(mode)), None)


def opened(path: str) -> Stream:
    """Open a file at its beginning."""
    if not is_url(path):
        local: Stream = opened_here(path)  # type: ignore[assignment]
        return local
    filesystem, inner, _ = resolved(path)
    remote: Stream = io.BufferedReader(filesystem.open_input_file(inner), REMOTE_READ)  # type: ignore[assignment]
    return remote


def looked_up(path: str) -> Found | None:
    """The regular file at a path as it is now; None if there is none."""
    if not is_url(path):
        status = _status(local_path(path))
        return None if status is None else _found(path, status)
    filesystem, inner, _ = resolved(path)
    info = filesystem.get_file_info(inner)
    return Found(path, info.size or 0, _millis(info)) if info.is_file else None


def _status(path: str) -> os.stat_result | None:
    """The status of a path; None if it leads to nothing."""
    try:
        return Path(path).stat()
    except OSError as error:
        if _leads_nowhere(error):
            return None
        raise


def _found(path: str, status: os.stat_result) -> Found | None:
    """A regular file; None for anything else."""
    if not stat.S_ISREG(status.st_mode):
        return None
    return Found(as_text(path), status.st_size, status.st_mtime_ns // 1_000_000)


def exists(path: str) -> bool:
    """Whether a file or a folder exists at a path."""
    if not is_url(path):
        return Path(local_path(path)).exists()
    import pyarrow.fs as pa_fs  # noqa: PLC0415 - Arrow is not loaded when only compiling

    filesystem, inner, _ = resolved(path)
    return bool(filesystem.get_file_info(inner).type != pa_fs.FileType.NotFound)


def files_below(folder: str, *, recursive: bool, wanted: Callable[[str], Any] = lambda _: True) -> Iterator[Found]:
    """The files in a folder, with `recursive` also in its subfolders, whose path relative to the folder is `wanted`.

    A wanted FIFO, device or socket is logged once and skipped.
    """
    if is_url(folder):
        yield from (found for below_it, found in _remote_files(folder, recursive=recursive) if wanted(below_it))
        return
    folder = local_path(folder)
    for path in _local_entries(folder, recursive=recursive, entered=set()):
        status = _status(path) if wanted(path[len(folder) :].lstrip("/")) else None
        if status is None:
            continue
        found, kind = _found(path, status), _special(status.st_mode)
        if found is not None:
            yield found
        elif kind is not None:
            _log_skipped(path, kind)


@lru_cache(maxsize=4096)  # once in each process, however often a folder is scanned
def _log_skipped(path: str, kind: str) -> None:
    _log.warning("%s is %s, and is skipped: only regular files are read", printable(path), kind)


def path_below(place: str, folder: str) -> str | None:
    """The path relative to a folder, empty for the folder itself; None if the path lies elsewhere.

    Symbolic links in both are resolved.
    """
    path, start = _real(place), _real(folder)
    if path == start:
        return ""
    start = f"{start.rstrip('/')}/"
    return path[len(start) :] if path.startswith(start) else None


def _real(place: str) -> str:
    return place.partition("?")[0].rstrip("/") if is_url(place) else os.path.realpath(local_path(place))


def would_match(pattern: str, place: str) -> bool:
    """Whether `files_like(pattern)` would yield a file at this path."""
    folder, likeness = _folder_and_likeness(absolute(pattern))
    below_it = path_below(place, folder)
    return below_it is not None and not unfinished(below_it) and bool(matching(likeness)(below_it))


def unfinished(below: str) -> bool:
    """Whether a relative path is that of a hidden or unfinished file, or lies in a hidden folder."""
    parts = below.split("/")
    return parts[-1].endswith((".tmp", "._COPYING_")) or any(part.startswith(".") for part in parts)


def files_like(pattern: str) -> Iterator[Found]:
    """The files that a pattern matches: the file of this name; all files in the folder of this name; else all matches.

    `*` and `?` match characters of one name, `**` also matches folders. In URLs `?` begins the options as usual. Below
    the part of the pattern without wildcards, hidden and unfinished files are skipped.
    """
    place = absolute(pattern)
    refuse_special(place)
    named = looked_up(place)
    if named is not None:
        yield named
        return
    folder, likeness = _folder_and_likeness(place)
    matches = matching(likeness)
    yield from files_below(
        folder,
        recursive=not likeness or "/" in likeness or "**" in likeness,
        wanted=lambda below_it: not unfinished(below_it) and matches(below_it),
    )


def is_pattern(pattern: str) -> bool:
    """Whether it contains wildcards, so that it may match any number of files."""
    return bool(_folder_and_likeness(absolute(pattern))[1])


def _folder_and_likeness(place: str) -> tuple[str, str]:
    """Divide a pattern into the folder before the first wildcard, and the pattern of the paths below it."""
    path, mark, options = place.partition("?") if is_url(place) else (place, "", "")
    first = re.search(r"[*\[]" if mark or is_url(place) else r"[*?\[]", path)
    if first is None:
        return place, ""
    folder, _, _ = path[: first.start()].rpartition("/")
    return (folder or "/") + mark + options, path[len(folder) :].lstrip("/")


_NOTHING = r"[^\x00-\x{10FFFF}]"
"""A character class of RE2 that matches nothing."""


def matching(likeness: str) -> Callable[[str], Any]:
    if not likeness:
        return lambda _: True
    from fsspec.utils import glob_translate  # noqa: PLC0415 - only patterns need it

    translated = glob_translate(likeness).removesuffix(r"\Z").replace("(?!)", _NOTHING)
    return partial(is_whole, translated)


def _local_entries(folder: str, *, recursive: bool, entered: set[tuple[int, int]]) -> Iterator[str]:
    """The paths of everything but folders. Follows links; enters no folder twice, so that cycles of links end."""
    try:
        status = Path(folder).stat()
        if not stat.S_ISDIR(status.st_mode) or (status.st_dev, status.st_ino) in entered:
            return
        entered.add((status.st_dev, status.st_ino))
        entries = list(os.scandir(folder))
    except OSError as error:  # it may have been deleted meanwhile
        if _leads_nowhere(error):
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
        if _leads_nowhere(error):
            return False
        raise


def _leads_nowhere(error: OSError) -> bool:
    """Whether a path leads to nothing readable, such as a dangling link. Logs a path that is too long."""
    if error.errno == errno.ENAMETOOLONG:
        _log.warning("%.200s... is too long for a path; it is skipped", printable(str(error.filename)))
    return error.errno in NOWHERE


def _remote_files(folder: str, *, recursive: bool) -> Iterator[tuple[str, Found]]:
    import pyarrow.fs as pa_fs  # noqa: PLC0415 - Arrow is not loaded when only compiling

    filesystem, inner, _ = resolved(folder)
    root = inner.rstrip("/")
    for info in filesystem.get_file_info(pa_fs.FileSelector(inner, allow_not_found=True, recursive=recursive)):
        if info.is_file:
            name = info.path[len(root) :].lstrip("/")
            yield name, Found(below(folder, name), info.size or 0, _millis(info))


def _millis(info: Any) -> int:
    """The time of the file's last change; 0 if its filesystem does not report one."""
    return 0 if info.mtime_ns is None else int(info.mtime_ns) // 1_000_000
