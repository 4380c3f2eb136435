"""A proxy before PostgreSQL that loses the answers to commits: the server commits, and the client does not know."""

import socket
import threading
from typing import Self
from urllib.parse import urlsplit

_COMMIT = b"COMMIT"


class LosingAnswers:
    """Passes all bytes on, except the answers to the commits that it is asked to lose: it closes the connection."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.port is not None
        self._server = ("127.0.0.1", parts.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = url.replace(str(parts.port), str(self._listener.getsockname()[1]))
        """The database behind the proxy."""
        self.lost = 0
        """How many answers it has lost."""
        self._to_lose = 0

    def lose(self, count: int) -> None:
        """Lose the answers to the next commits."""
        self._to_lose = count

    def __enter__(self) -> Self:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._server) as server:
            threading.Thread(target=_copy, args=(server, client), daemon=True).start()
            while content := _received(client):
                if self._to_lose and _COMMIT in content:
                    self._to_lose -= 1
                    client.shutdown(socket.SHUT_RDWR)
                    server.sendall(content)  # the server commits, although its answer reaches no client
                    server.shutdown(socket.SHUT_WR)
                    while _received(server):
                        pass
                    self.lost += 1
                    return
                server.sendall(content)


def _copy(source: socket.socket, sink: socket.socket) -> None:
    while content := _received(source):
        try:
            sink.sendall(content)
        except OSError:
            return


def _received(source: socket.socket) -> bytes:
    try:
        return source.recv(1 << 16)
    except OSError:
        return b""
