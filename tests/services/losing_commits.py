"""A proxy before Kafka that loses answers to ends of transactions: the cluster ends them, and no client knows it."""

import socket
import threading
from contextlib import suppress

from tests.patience import join
from tests.services.losing_proxy import LosingProxy

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
