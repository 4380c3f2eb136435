"""A Spark Connect server for tests, in a process of its own."""

import queue
import subprocess
import threading
from typing import Self

from tests.java import connect_server
from tests.patience import within

STARTS_WITHIN_SECONDS = within(120)
ENDS_WITHIN_SECONDS = within(30)


class ConnectServer:
    """A server that ends with its `with` statement, or with the process of the tests."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            connect_server(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._printed: list[str] = []
        self._port = queue.Queue[str]()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        """Read all that it prints, so that it never waits for a reader. It prints its port when it is ready."""
        assert self._process.stdout is not None
        with self._process.stdout as output:
            for line in output:
                self._printed.append(line)
                if line.startswith("PORT "):
                    self._port.put(line.split()[1])
        self._port.put("")

    def __enter__(self) -> Self:
        """Wait until the server answers. Show what it printed if it does not."""
        try:
            port = self._port.get(timeout=STARTS_WITHIN_SECONDS)
            problem = "ended"
        except queue.Empty:
            port, problem = "", f"did not start within {STARTS_WITHIN_SECONDS:.0f} s"
        if not port:
            self._process.kill()
            self.__exit__()
            raise AssertionError(f"the Spark Connect server {problem}; it printed:\n{''.join(self._printed)}")
        self.url = f"sc://127.0.0.1:{port}"
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()  # it stops when its standard input ends
        try:
            self._process.wait(ENDS_WITHIN_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(within(30))
        self._reader.join(ENDS_WITHIN_SECONDS)
