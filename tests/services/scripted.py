"""A real server for tests that a script runs, and that ends with the process that started it."""

import os
import select
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Self

import pytest

MISSING = 69
"""The exit code of a script if the server is not installed."""


class ScriptedServer:
    """A server with one node, whose data are kept when it is killed and started again.

    The script prints `READY`, the ports and the process of the server. It gets the ports again when it is run again.
    """

    script: ClassVar[Path]
    installed_by: ClassVar[str] = ""
    """What to run after the command that the script names if the server is not installed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ports: Sequence[str] = ()
        self._process: subprocess.Popen[str] | None = None
        self._server = 0

    @property
    def address(self) -> str:
        """The host and the port of its first listener."""
        return f"127.0.0.1:{self._ports[0]}"

    @property
    def is_running(self) -> bool:
        """Whether the server was started, and neither stopped nor killed since."""
        return self._process is not None

    def start(self) -> Self:
        """Run the server on its ports, and wait until it answers. Skip the test if it is not installed."""
        command = [str(self.script), "run", str(self.folder), *self._ports]
        process = subprocess.Popen(  # noqa: S603
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        ready = process.stdout.readline().split()
        if not ready:
            _, problem = process.communicate()
            if process.returncode == MISSING:
                pytest.skip(f"{problem.strip()}{self.installed_by}")
            raise AssertionError(problem)
        self._process, self._ports, self._server = process, ready[1:-1], int(ready[-1])
        return self

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def kill(self) -> None:
        """Kill the server, as `kill -9` does."""
        assert self._process is not None
        os.kill(self._server, signal.SIGKILL)
        self.stop()

    def shut_down(self) -> None:
        """End the server as its operator does, with time to write what it has in memory."""
        ended = os.pidfd_open(self._server)
        os.kill(self._server, signal.SIGTERM)
        select.select([ended], [], [])
        os.close(ended)
        self.stop()

    @contextmanager
    def paused(self) -> Iterator[Callable[[], None]]:
        """Pause the server, until the function that it returns is called, or to the end: it answers nothing."""
        server = self._server
        os.kill(server, signal.SIGSTOP)
        try:
            yield lambda: os.kill(server, signal.SIGCONT)
        finally:
            os.kill(server, signal.SIGCONT)

    def stop(self) -> None:
        if self._process is not None:
            self._process.communicate()
            self._process = None
