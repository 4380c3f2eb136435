"""Real servers for tests, each of which a script runs, and which end with the process that started them."""

import getpass
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar, Self

import pytest

from tests.patience import within
from tests.processes import await_end, next_line

MISSING = 69
"""The exit code of a script if the server is not installed."""
_STARTED_SECONDS = 120
_ATTEMPTS = 3
_TAKEN = re.compile("(?i)address already in use|eaddrinuse|port.* in use|could not create any tcp/ip sockets")
"""What servers print if another process took a port after it was found to be free."""
_LOG_BYTES = 4000
"""How much of each log is shown if the server does not start."""


class ScriptedServer:
    """A server with one node, whose data are kept when it is killed and started again.

    The script prints `READY`, the ports and the process of the server. It gets the ports again when it is run again.
    """

    script: ClassVar[Path]
    is_fetched: ClassVar[bool] = False
    """Whether the script downloads the server, after the command that it names if the server is not installed."""

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
        """Run the server on its ports, and wait until it answers. Skip the test if it is not installed.

        At its first start, another process may take one of the ports before the server does: then it gets others.
        """
        for left in reversed(range(_ATTEMPTS)):
            problem = self._start()
            if not problem:
                return self
            if self._ports or not left or not _TAKEN.search(problem):
                break
        raise AssertionError(f"{self.script.name} does not start a server: {problem}")

    def _start(self) -> str:
        """Run the script, and return why there is no server; nothing if there is one."""
        command = [str(self.script), "run", str(self.folder), *self._ports]
        process = subprocess.Popen(  # noqa: S603
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        ready = next_line(process, _STARTED_SECONDS).split()
        if not ready:
            problem = "it was not ready in time"
            with suppress(subprocess.TimeoutExpired):  # a process that it started may keep its pipes
                problem = process.communicate(timeout=within(10))[1] or problem
            if process.returncode == MISSING:
                pytest.skip(problem.strip() + (f"; then: {self.script} fetch" if self.is_fetched else ""))
            return f"{problem}\n{self._logs()}"
        self._process, self._ports, self._server = process, ready[1:-1], int(ready[-1])
        return ""

    def _logs(self) -> str:
        """The ends of the logs in its folder."""
        logs = [path for path in sorted(self.folder.rglob("*log*")) if path.is_file() and "data" not in path.parts]
        return "\n".join(f"{log}:\n{log.read_bytes()[-_LOG_BYTES:].decode(errors='replace')}" for log in logs)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def kill(self) -> None:
        """Kill the server, as `kill -9` does."""
        os.kill(self._server, signal.SIGKILL)
        self.stop()

    def shut_down(self) -> None:
        """End the server as its operator does, with time to write what it has in memory."""
        os.kill(self._server, signal.SIGTERM)
        await_end(self._server)
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
            stopped, self._process = self._process, None
            try:
                stopped.communicate(timeout=within(60))
            except subprocess.TimeoutExpired:
                stopped.kill()
                raise


ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The key of the only account, which is the same in every Azurite."""


class Azurite(ScriptedServer):
    """A server with one account, over plain HTTP."""

    script = Path(__file__).with_name("azurite.sh")
    is_fetched = True

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": KEY,
            "AZURE_STORAGE_ENDPOINT": f"http://127.0.0.1:{self._ports[0]}/{ACCOUNT}",
        }


BLOCK = 2 << 20
"""The bytes of a block."""


class Hdfs(ScriptedServer):
    """A NameNode with one DataNode."""

    script = Path(__file__).with_name("hdfs.sh")
    is_fetched = True

    @property
    def url(self) -> str:
        """The root, for the user that owns it."""
        return f"webhdfs://{getpass.getuser()}@127.0.0.1:{self._ports[0]}"


class MariaServer(ScriptedServer):
    """A server whose database `dagkit` is empty at first."""

    script = Path(__file__).with_name("mariadb.sh")

    def options(self, database: str = "dagkit") -> dict[str, Any]:
        """What `pymysql.connect` takes, without the password."""
        return {"host": "127.0.0.1", "port": int(self._ports[0]), "user": "dagkit", "database": database}
