"""The pieces of files: sync, inspect, read and remove them."""

import errno
import os
import shutil
import stat
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from hashlib import blake2b
from io import UnsupportedOperation
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import urlsplit

from dagkit.errors import RunFailure, printable, reason_of
from dagkit.ground.urls import is_url, local_path, resolved

LONG_NAME_BYTES = 200
"""A name with more bytes may become too long if something is appended to it."""
# A larger one costs each small file more: its memory is cleared.
BUFFER_BYTES = 256 << 10
"""The buffer for small writes; a chunk of lines is larger and bypasses it without a copy."""
MOST_OPEN = 64
"""The highest number of open files of a slot; another one closes the least recently written file."""


class PiecesLost(RunFailure):
    """The staged pieces of a committed file are gone or changed, and the file is not complete."""

    code = "pieces-lost"

    def __init__(self, file: str) -> None:
        super().__init__(
            f"staged pieces of {printable(file)} are gone or cut, and it is not complete: they, or the file, were "
            "removed or changed from outside",
            "restore either from a copy: it is committed",
        )
        self.file = file


def remedy_of(error: OSError) -> str:
    """The remedy for a refused write, in words."""
    if error.errno == errno.EFBIG:
        return "raise the limit on the length of files (ulimit -f, or that of the filesystem)"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "free some space there"
    return "let this user write there" if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM) else "fix this"


def staging_failed(file: str, error: OSError, offset: int | None = None) -> RunFailure:
    """The files of a window cannot be staged; nothing of the window was committed."""
    where = "" if offset is None else f" at byte {offset}"
    return RunFailure(
        f"a piece of {printable(file)} cannot be staged in the application's folder{where}: {reason_of(error)}; "
        "nothing of the window was committed",
        f"{remedy_of(error)}, then launch again",
        code="staging-failed",
    )


def file_unplaced(file: str, error: OSError) -> RunFailure:
    """A committed file cannot be put in place; its pieces are kept."""
    return RunFailure(
        f"{printable(file)} is committed and cannot be put in place: {reason_of(error)}; nothing of it is lost",
        f"{remedy_of(error)}, then launch again",
        code="file-unplaced",
    )


def mark_unwritten(folder: str, window: int, error: OSError) -> RunFailure:
    """A window is committed, and how far its files are in place cannot be noted; the next launch does both."""
    return RunFailure(
        f"{printable(folder)} cannot be written: {reason_of(error)}; window {window} is committed, and "
        "nothing of it is lost",
        f"{remedy_of(error)}, then launch again",
        code="file-unplaced",
    )


class Piece(NamedTuple):
    """A part of a file, with its length at the commit."""

    path: str
    length: int


class Seen(NamedTuple):
    """An existing file."""

    length: int
    changed: int | None
    """When it was last written, in nanoseconds, by the clock of its storage; None if unknown."""


def copy_name(name: str) -> str:
    """The first part of the name of a copy beside a file, which is renamed to it: no filesystem may refuse it."""
    encoded = os.fsencode(name)
    return f".{name if len(encoded) <= LONG_NAME_BYTES else blake2b(encoded, digest_size=16).hexdigest()}"


def pour(pieces: Sequence[str], sink: Any) -> None:
    """Copy the pieces into the sink in order."""
    for piece in pieces:
        try:
            source = opened(piece)
        except FileNotFoundError as error:
            if is_url(piece):
                raise PiecesLost(piece) from error
            raise  # another driver may have put the file in place
        with source:
            shutil.copyfileobj(source, sink, BUFFER_BYTES)


def opened(file: str) -> Any:
    if not is_url(file):
        return Path(local_path(file)).open("rb", buffering=0)
    return resolved(file).filesystem.open_input_file(resolved(file).path)  # a stream decompresses `….gz`


def remove(files: Sequence[str]) -> None:
    """Remove the files; ignore those that do not exist."""
    # In order: where the first pieces are gone, `still_to_place` concludes that the file was in place.
    for file in files:
        if not is_url(file):
            Path(local_path(file)).unlink(missing_ok=True)
    remote = [file for file in files if is_url(file)]
    for file, found in zip(remote, look_at(remote), strict=True):
        if found is not None:
            with suppress(FileNotFoundError):
                resolved(file).filesystem.delete_file(resolved(file).path)


def is_in_place(pieces: Sequence[Piece], file: str) -> bool:
    """Whether the file was put in place before: a piece is removed only after its file is complete.

    Raise `PiecesLost` if pieces are gone or changed and the file is not complete.
    """
    whole, *seen = look_at([file, *(piece.path for piece in pieces)])
    lengths = [there.length for there in seen if there is not None]
    if lengths == [piece.length for piece in pieces]:
        return False
    if len(lengths) == len(pieces) or whole is None or whole.length != sum(piece.length for piece in pieces):
        raise PiecesLost(file)
    return True


def look_at(files: Sequence[str]) -> list[Seen | None]:
    """Return what exists of these files; this costs one call per local file, and one call per remote store."""
    found = {file: _looked_at(file) for file in files if not is_url(file)}
    stores: dict[tuple[str, str, str], list[str]] = {}
    for file in files:
        if is_url(file):
            parts = urlsplit(file)
            stores.setdefault((parts.scheme, parts.netloc, parts.query), []).append(file)
    for remote in stores.values():
        infos = resolved(remote[0]).filesystem.get_file_info([resolved(file).path for file in remote])
        for file, info in zip(remote, infos, strict=True):
            found[file] = Seen(info.size, info.mtime_ns) if info.is_file else None
    return [found[file] for file in files]


def _looked_at(file: str) -> Seen | None:
    try:
        status = os.stat(local_path(file))  # noqa: PTH116 - there may be many
    except (FileNotFoundError, NotADirectoryError):
        return None
    return Seen(status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else None


# A commit survives a power cut, so a slot reports when all of its pieces are on the disk. If it waited after each
# block, it waited for longer than it worked: a GiB took 1.01 s, and takes 0.69 with this thread. `sync_file_range`,
# which begins before a piece has ended, is no faster and exists on Linux only.
MOST_BEHIND = 16
"""The highest number of files that wait for the disk; adding another one blocks, since each of them is open."""

Blame = Callable[[OSError], Exception]
"""Returns the error to raise if the disk fails, with the owner of the file."""


class Syncing:
    """Syncs files one after the other, in a thread that the first file starts."""

    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None
        self._behind: deque[tuple[BinaryIO, Future[None], Blame]] = deque()

    def add(self, stream: BinaryIO, blame: Blame) -> None:
        """Sync and close this file in the background. The caller must not write to it any more.

        When `wait` returns, the file survives a power cut. If that fails, this call or `wait` raises the error that
        `blame` makes, and the caller must call `abandon`.
        """
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="dagkit-sync")
        self._behind.append((stream, self._thread.submit(_sync_and_close, stream), blame))
        if len(self._behind) > MOST_BEHIND:
            self._wait_for_first()

    def wait(self) -> None:
        """Wait until all added files are safe, then stop the thread."""
        while self._behind:
            self._wait_for_first()
        self._end()

    def abandon(self) -> None:
        """Close all added files without syncing them, and stop the thread."""
        self._end()
        for stream, _, _ in self._behind:
            with suppress(Exception):  # the reason for abandoning the files is the one to report
                stream.close()
        self._behind.clear()

    def _wait_for_first(self) -> None:
        _, synced, blame = self._behind.popleft()
        try:
            synced.result()
        except OSError as error:
            raise blame(error) from error

    def _end(self) -> None:
        if self._thread is not None:
            self._thread.shutdown(cancel_futures=True)
            self._thread = None


def _sync_and_close(stream: BinaryIO) -> None:
    with stream, suppress(UnsupportedOperation, AttributeError):  # a remote file is durable once it is closed
        os.fsync(stream.fileno())
