"""The place of a warm driver, which only this user can reach, and the messages that pass there."""

import fcntl
import hashlib
import json
import os
import socket
import stat
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TextIO

from dagkit.errors import RunFailure

_LENGTH = struct.Struct("!I")
_PEER = struct.Struct("3i")
"""The process, user and group of the other end of a socket."""
_MOST_FILES = 253
"""The system passes no more at once."""


def is_of_this_user(connection: socket.socket) -> bool:
    """Whether the process at the other end runs as this user; the mode of the folder decides if no system call does."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    _, user, _ = _PEER.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    return bool(user == os.getuid())


def send(connection: socket.socket, message: Mapping[str, Any], files: Sequence[int] = ()) -> None:
    """Send a message, and these open files with it."""
    data = json.dumps(message).encode()
    socket.send_fds(connection, [_LENGTH.pack(len(data))], files)
    connection.sendall(data)


def receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """The next message, and the files that came with it. Raise EOFError if there is none, or none that can be read."""
    header, files, _, _ = socket.recv_fds(connection, _LENGTH.size, _MOST_FILES)
    try:
        return _message(header, connection), files
    except BaseException:
        for file in files:
            os.close(file)
        raise


def _message(begun: bytes, connection: socket.socket) -> dict[str, Any]:
    (length,) = _LENGTH.unpack(begun + _exactly(connection, _LENGTH.size - len(begun)))
    try:
        return dict(json.loads(_exactly(connection, length)))
    except (ValueError, TypeError, RecursionError) as error:
        raise EOFError("the other process has sent something else than a message") from error


def _exactly(connection: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            raise EOFError("the other process has closed the connection")
        data += more
    return bytes(data)


LONGEST_SOCKET_PATH = 103
"""The longest path of a Unix socket, in bytes, that every system accepts: macOS has 104, with a zero at the end."""


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
            # Under the lock: until then, another warm driver may be writing to it.
            if log_path().is_file():
                os.truncate(log_path(), 0)
            path.unlink(missing_ok=True)
            listener.bind(str(path))
            listener.listen()
        except OSError as error:
            raise _unusable(path, error) from error
        opened.callback(path.unlink, missing_ok=True)
        yield listener, lock
