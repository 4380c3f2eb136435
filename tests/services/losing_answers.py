"""A proxy before PostgreSQL that loses the answers to commits: the server commits, and the client does not know."""

import socket
import threading
from urllib.parse import urlsplit

from tests.services.losing_proxy import LosingProxy

_COMMIT = b"COMMIT"


class LosingAnswers(LosingProxy):
    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        super().__init__("127.0.0.1", parts.port)
        self.url = url.replace(str(parts.port), str(self.port))
        """The database behind the proxy."""

    def pass_on(self, client: socket.socket, server: socket.socket) -> None:
        threading.Thread(target=_copy, args=(server, client), daemon=True).start()
        while content := _received(client):
            if self.to_lose and _COMMIT in content:
                self.to_lose -= 1
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
