"""The place of a warm driver: a folder that only this user can reach, with a socket for each working directory."""

import fcntl
import hashlib
import os
import socket
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TextIO

from dagkit.errors import RunFailure

LONGEST_SOCKET_PATH = 103
"""The longest path of a Unix socket, in bytes, that every system accepts."""


class ServeFailed(RunFailure):
    """A warm driver cannot be started here."""

    code = "serve-failed"


def socket_path(environment: Mapping[str, str] = os.environ) -> Path:
    """The socket of the warm driver for the working directory."""
    base = environment.get("XDG_RUNTIME_DIR") or environment.get("TMPDIR") or "/tmp"  # noqa: S108 - see `is_private`
    name = hashlib.sha256(os.fsencode(Path.cwd())).hexdigest()[:16]
    return Path(base) / f"dagkit-{os.getuid()}" / f"{name}.sock"


def log_path() -> Path:
    """Where a warm driver in the background writes what it prints."""
    return socket_path().with_suffix(".log")


def open_log() -> int:
    """The open log, to which a warm driver that runs may be writing. `listening` empties it for the next one."""
    private_folder()
    try:
        return os.open(log_path(), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as error:
        raise _unusable(log_path(), error) from error


def private_folder() -> Path:
    """The folder of the socket, which is made if it is not there. Raise ServeFailed if others can reach it."""
    path = socket_path()
    if len(os.fsencode(path)) > LONGEST_SOCKET_PATH:
        raise ServeFailed(
            f"the path of a socket is too long: {path}", "set XDG_RUNTIME_DIR to a folder with a short path"
        )
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ServeFailed(f"{path.parent} cannot be made: {error.strerror}", "set XDG_RUNTIME_DIR") from error
    if not is_private(path.parent):
        raise ServeFailed(f"others can reach {path.parent}", "set XDG_RUNTIME_DIR to a folder of your own")
    return path.parent


def _unusable(path: Path, error: OSError) -> ServeFailed:
    return ServeFailed(
        f"{path} cannot be made: {error.strerror}", "free some space there, or set XDG_RUNTIME_DIR to another folder"
    )


def is_private(folder: Path) -> bool:
    """Whether only this user can reach what is in the folder. Another user's driver could take over our launches."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077


@contextmanager
def listening() -> Iterator[tuple[socket.socket, TextIO]]:
    """The socket of this directory, and its locked file. Raise ServeFailed if a warm driver has them."""
    path = private_folder() / socket_path().name
    with ExitStack() as opened:
        try:
            lock = opened.enter_context(path.with_suffix(".lock").open("w", encoding="utf-8"))
        except OSError as error:
            raise _unusable(path.with_suffix(".lock"), error) from error
        listener = opened.enter_context(socket.socket(socket.AF_UNIX))
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ServeFailed("a warm driver serves this directory", "dagkit serve --stop ends it") from None
        try:
            if log_path().is_file():
                os.truncate(log_path(), 0)
            path.unlink(missing_ok=True)
            listener.bind(str(path))
            listener.listen()
        except OSError as error:
            raise _unusable(path, error) from error
        opened.callback(path.unlink, missing_ok=True)
        yield listener, lock
