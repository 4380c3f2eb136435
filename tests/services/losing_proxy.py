"""Proxies before servers that lose answers: the server does what it was asked for, and its client does not know."""

import socket
import threading
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Self
from urllib.parse import urlsplit

from tests.patience import join


class LosingProxy(ABC):
    """Passes bytes on, except the answers that it is asked to lose: it closes the connection instead."""

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._listener = socket.create_server((host, 0))
        self.port = self._listener.getsockname()[1]
        """The port of the proxy."""
        self.lost = 0
        """How many answers it has lost."""
        self.to_lose = 0

    def lose(self, count: int) -> None:
        """Lose the answers to the next commits."""
        self.to_lose = count

    def __enter__(self) -> Self:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _serve(self) -> None:
        with suppress(OSError):  # the listener is closed
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._server) as server, suppress(OSError):
            self.pass_on(client, server)

    @abstractmethod
    def pass_on(self, client: socket.socket, server: socket.socket) -> None:
        """Serve one client. An OSError ends its connection."""


_COMMIT = b"COMMIT"


class LosingAnswers(LosingProxy):
    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        super().__init__("127.0.0.1", parts.port)
        self.url = url.replace(str(parts.port), str(self.port))
        """The database behind the proxy."""

    def pass_on(self, client: socket.socket, server: socket.socket) -> None:
        threading.Thread(target=_copy, args=(server, client), daemon=True).start()
        while content := _read(client):
            if self.to_lose and _COMMIT in content:
                self.to_lose -= 1
                client.shutdown(socket.SHUT_RDWR)
                server.sendall(content)  # the server commits, although its answer reaches no client
                server.shutdown(socket.SHUT_WR)
                while _read(server):
                    pass
                self.lost += 1
                return
            server.sendall(content)


def _copy(source: socket.socket, sink: socket.socket) -> None:
    while content := _read(source):
        try:
            sink.sendall(content)
        except OSError:
            return


def _read(source: socket.socket) -> bytes:
    try:
        return source.recv(1 << 16)
    except OSError:
        return b""


_END_TRANSACTION = 26
"""The number of the request that commits or aborts a transaction, in Kafka's protocol."""
_SIZE_BYTES = 4


class LosingCommits(LosingProxy):
    """Loses answers to ends of transactions.

    The answers of a broker name its own port. The proxy names its port instead, so clients stay behind it.
    """

    def __init__(self, address: str) -> None:
        host, _, port = address.partition(":")
        super().__init__(host, int(port))
        self.address = f"{host}:{self.port}"
        """The cluster behind the proxy."""
        self._theirs, self._ours = (host.encode() + number.to_bytes(4, "big") for number in (int(port), self.port))

    def pass_on(self, client: socket.socket, server: socket.socket) -> None:
        is_lost = threading.Event()
        answering = threading.Thread(target=self._answer, args=(server, client, is_lost), daemon=True)
        answering.start()
        while request := _frame(client):
            if self.to_lose and int.from_bytes(request[_SIZE_BYTES : _SIZE_BYTES + 2], "big") == _END_TRANSACTION:
                self.to_lose -= 1
                is_lost.set()
                server.sendall(request)
                join(answering)
                return
            server.sendall(request)
        server.shutdown(socket.SHUT_RDWR)

    def _answer(self, server: socket.socket, client: socket.socket, is_lost: threading.Event) -> None:
        with suppress(OSError):
            while answer := _frame(server):
                if is_lost.is_set():
                    self.lost += 1
                    client.shutdown(socket.SHUT_RDWR)
                    return
                client.sendall(answer.replace(self._theirs, self._ours))


def _frame(source: socket.socket) -> bytes:
    """The next request or answer with its size; empty at the end."""
    size = _received(source, _SIZE_BYTES)
    return size + _received(source, int.from_bytes(size, "big")) if size else b""


def _received(source: socket.socket, count: int) -> bytes:
    """So many bytes, or none if the connection ends before."""
    content = b""
    while len(content) < count:
        more = source.recv(count - len(content))
        if not more:
            return b""
        content += more
    return content
