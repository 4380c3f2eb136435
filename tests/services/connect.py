"""A Spark Connect server for tests, in a process of its own."""

from subprocess import TimeoutExpired
from typing import Self

from tests.cluster.standalone import Spoken
from tests.java import connect_server
from tests.patience import within


class ConnectServer:
    """A server that ends with its `with` statement, or with the process of the tests."""

    def __enter__(self) -> Self:
        """Wait until the server answers. Show what it printed if it does not."""
        self._server = Spoken(connect_server())
        try:
            self.url = f"sc://127.0.0.1:{self._server.until(r'^PORT ([0-9]+)$')[1]}"
        except BaseException:
            self._server.kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._server.process.stdin.close()  # it stops when its standard input ends
        try:
            self._server.process.wait(within(30))
        except TimeoutExpired:
            self._server.kill()
