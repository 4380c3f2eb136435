"""Messages between `dagkit launch` and a warm driver: JSON documents on a Unix socket, with open files."""

import json
import os
import socket
import struct
from collections.abc import Mapping, Sequence
from typing import Any

_LENGTH = struct.Struct("!I")
_PEER = struct.Struct("3i")
"""The process, user and group of the other end of a socket."""
_MOST_FILES = 253
"""The system passes no more at once."""


def is_of_this_user(connection: socket.socket) -> bool:
    """Whether the process at the other end runs as this user. Systems that do not say rely on the folder's mode."""
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
