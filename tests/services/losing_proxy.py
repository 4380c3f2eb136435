"""A proxy before a server that loses answers: the server does what it was asked for, and its client does not know."""

import socket
import threading
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Self


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
