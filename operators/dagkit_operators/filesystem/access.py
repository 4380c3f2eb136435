"""Finding, examining and opening files on any filesystem, and which errors are those of one file."""

import errno
import io
import logging
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

from dagkit.errors import InputUnreadable, RunFailure, printable
from dagkit.ground.urls import as_text, is_url, local_path, plain, resolved
from dagkit_operators.filesystem.object_store import VersionsUnknown, has_versions, versioned_at

_OF_FILES = (PermissionError, FileNotFoundError, IsADirectoryError, NotADirectoryError)
_NUMBERS_OF_FILES = (errno.EIO, errno.ELOOP, errno.ENAMETOOLONG)
"""Further errors of the system that concern one file: others, as those of connections, concern many."""


class BadFile(RunFailure):
    """The content of a file cannot be read. Each subclass has its own code."""


def is_bad_file(error: Exception) -> bool:
    """Whether a file is the cause of an error, and not its filesystem or a connection to it."""
    if isinstance(error, InputUnreadable):
        return error.__cause__ is None or is_of_file(error.__cause__)
    return isinstance(error, BadFile)


def is_of_file(error: BaseException) -> bool:
    """Whether an error of the system concerns one file or folder."""
    return isinstance(error, _OF_FILES) or (isinstance(error, OSError) and error.errno in _NUMBERS_OF_FILES)


REMOTE_READ = 8 << 20
"""Bytes requested from a remote filesystem at a time."""
NOWHERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)
"""The errors that mean that a path leads to nothing."""
DANGLING = "a link that leads to no file"

_SPECIAL = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
    stat.S_IFSOCK: "a socket",
}
"""The names of the kinds of special files."""

_log = logging.getLogger(__name__)


class Seekable(Protocol):
    """A stream of bytes that can be read from any position."""

    def seek(self, offset: int, /) -> int: ...
    def readinto(self, buffer: memoryview, /) -> int | None: ...


class Stream(Seekable, Protocol):
    """An open file; leaving the `with` closes it."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *error: object) -> None: ...


def filled(stream: Seekable, view: memoryview) -> int:
    """Fill the view and return the number of bytes read. A stream may return less at a time than it is asked for."""
    count = 0
    while count < len(view):
        got = stream.readinto(view[count:]) or 0
        if not got:
            break
        count += got
    return count


class StreamFile(io.RawIOBase):
    """A stream as a file that libraries read, from its beginning. Only seeking from its end needs `length`."""

    def __init__(self, stream: Seekable, length: int | None = None) -> None:
        self._stream = stream
        self._length = length
        self.position = stream.seek(0)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.position

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        assert whence != io.SEEK_END or self._length is not None, "the end of a stream of unknown length is unknown"
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self.position, io.SEEK_END: self._length or 0}[whence]
        self.position = self._stream.seek(base + offset)
        return self.position

    def readinto(self, buffer: Any, /) -> int:
        got = self._stream.readinto(memoryview(buffer).cast("B")) or 0
        self.position += got
        return got

    def read(self, size: int = -1, /) -> bytes:
        """Read so many bytes, fewer only at the end: Arrow takes a short answer for the end of a file."""
        if size < 0:
            assert self._length is not None, "the rest of a stream of unknown length is unknown"
            size = max(0, self._length - self.position)
        view = memoryview(bytearray(size))
        return bytes(view[: filled(self, view)])


class Found(NamedTuple):
    """A file or a directory as it was when it was found."""

    path: str
    """The path as a ledger stores it: see `dagkit.ground.urls.as_text`."""
    length: int
    modified_millis: int
    version: str = ""
    """How its object store names its content; empty on other filesystems."""
    is_directory: bool = False


@contextmanager
def reading_from(place: str, then: str = "and launch again") -> Iterator[None]:
    """Raise InputUnreadable for each OSError, with the path and with `then` as what to do."""
    try:
        yield
    except OSError as error:
        # The error may concern a folder or a file below the place: its own path says more.
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


def opened_here(path: str) -> io.FileIO:
    """A regular file of this machine, from its beginning. Raise NotRegular for anything else, without waiting."""
    # A FIFO may have taken the name since the path was looked up, and a plain open would wait for its writer.
    name = local_path(path)
    file = io.FileIO(name, opener=_without_waiting)
    kind = special_kind(os.fstat(file.fileno()).st_mode)
    if kind is not None:
        file.close()
        raise NotRegular(name, kind)
    return file


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def unreadable_kind(place: str) -> str | None:
    """The kind of a path of this machine, in words, if it exists and is neither a file nor a directory; else None."""
    if is_url(place):
        return None
    path = local_path(place)
    status = status_of(path)
    if status is None:
        return DANGLING if Path(path).is_symlink() else None
    return special_kind(status.st_mode)


def special_kind(mode: int) -> str | None:
    """The name of a kind of special file; None for regular files and directories."""
    return _SPECIAL.get(stat.S_IFMT(mode))


# Functions with a parameter `filesystem` take a path of that Arrow filesystem: a subclass of a reader may return one
# from `get_fs_instance`. Without it, the path is local or a URL.


def opened(path: str, filesystem: Any = None) -> Stream:
    """Open a file at its beginning."""
    if filesystem is None and not is_url(path):
        local: Stream = opened_here(path)  # type: ignore[assignment]
        return local
    if filesystem is None:
        filesystem, path, _ = resolved(path)
    remote: Stream = io.BufferedReader(filesystem.open_input_file(path), REMOTE_READ)  # type: ignore[assignment]
    return remote


def sampled(path: str, positions: Iterable[int], count: int, filesystem: Any = None) -> Iterator[bytes]:
    """Yield up to `count` bytes of a file from each position."""
    if filesystem is None and not is_url(path):
        with opened_here(path) as file:
            yield from (os.pread(file.fileno(), count, position) for position in positions)
        return
    if filesystem is None:
        filesystem, path, _ = resolved(path)
    with filesystem.open_input_file(path) as file:
        yield from (bytes(file.read_at(count, position)) for position in positions)


def looked_up(path: str, filesystem: Any = None) -> Found | None:
    """The regular file at a path as it is now; None if there is none."""
    if filesystem is None and not is_url(path):
        status = status_of(local_path(path))
        return None if status is None else found_of(path, status)
    inner = path
    if filesystem is None:
        filesystem, inner, _ = resolved(path)
        if has_versions(path):
            try:
                stored = versioned_at(path)
            except VersionsUnknown:
                stored = None  # the listing logs why; the object is looked up without its version
            # Only the filesystem knows whether an object without bytes is a file or marks a directory.
            if stored is not None and stored.length:
                return Found(path, *stored[1:])
    info = filesystem.get_file_info(inner)
    return Found(path, info.size or 0, millis_of(info)) if info.is_file else None


def to_read(path: str, filesystem: Any = None) -> Found | None:
    """Look up a file; raise NotRegular if the path leads to a FIFO, a device or a socket of this machine."""
    if filesystem is not None or is_url(path):
        return looked_up(path, filesystem)
    status = status_of(local_path(path))
    kind = None if status is None else special_kind(status.st_mode)
    if kind is not None:
        raise NotRegular(plain(path), kind)
    return None if status is None else found_of(path, status)


def status_of(path: str) -> os.stat_result | None:
    """The status of a path; None if it leads to nothing."""
    try:
        return os.stat(path)  # noqa: PTH116 - a Path takes three times as long, and every file is looked up
    except OSError as error:
        if leads_nowhere(error):
            return None
        raise
    except ValueError:  # it contains a NUL
        return None


def found_of(path: str, status: os.stat_result) -> Found | None:
    """A regular file; None for anything else."""
    if not stat.S_ISREG(status.st_mode):
        return None
    return Found(as_text(path), status.st_size, status.st_mtime_ns // 1_000_000)


def directory_at(path: str) -> Found | None:
    """The directory of this machine at a path; None if there is none, and for URLs."""
    status = None if is_url(path) else status_of(local_path(path))
    if status is None or not stat.S_ISDIR(status.st_mode):
        return None
    return Found(as_text(local_path(path)), 0, status.st_mtime_ns // 1_000_000, is_directory=True)


def exists(path: str) -> bool:
    """Whether a file or a folder exists at a path."""
    if not is_url(path):
        return Path(local_path(path)).exists()
    import pyarrow.fs as pa_fs  # noqa: PLC0415 - Arrow is not loaded when only compiling

    filesystem, inner, _ = resolved(path)
    return bool(filesystem.get_file_info(inner).type != pa_fs.FileType.NotFound)


def leads_nowhere(error: OSError) -> bool:
    """Whether a path leads to nothing readable, such as a dangling link. Logs a path that is too long."""
    if error.errno == errno.ENAMETOOLONG:
        _log.warning("%.200s... is too long for a path; it is skipped", printable(str(error.filename)))
    return error.errno in NOWHERE


def millis_of(info: Any) -> int:
    """The time of the file's last change; 0 if its filesystem does not report one."""
    return 0 if info.mtime_ns is None else int(info.mtime_ns) // 1_000_000
