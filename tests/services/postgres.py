"""A real PostgreSQL server for tests, which `postgres.sh` starts."""

import itertools
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("postgres.sh")
PASSWORD = "secret"  # noqa: S105 - of a server on the loopback


class PostgresServer:
    """A running server."""

    def __init__(self, process: "subprocess.Popen[str]", url: str) -> None:
        self._process = process
        self._numbers = itertools.count(1)
        self.is_running = True
        self.url = url
        """The database `postgres`, without the password."""

    def kill(self) -> None:
        """Kill the processes of the server."""
        self.is_running = False
        self._command("kill")

    def start(self) -> None:
        """Start the server again, with its data."""
        self._command("start")
        self.is_running = True

    def new_database(self) -> str:
        """Create an empty database, and return its url without the password."""
        import adbc_driver_postgresql.dbapi as driver  # noqa: PLC0415 - only tests with this server need it

        name = f"test_{next(self._numbers)}"
        with driver.connect(self.with_password(self.url), autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name}")
        return f"{self.url.rpartition('/')[0]}/{name}"

    def with_password(self, url: str) -> str:
        return url.replace("dagkit@", f"dagkit:{PASSWORD}@")

    def _command(self, command: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == f"{command} done\n"


@contextmanager
def running() -> Iterator[PostgresServer]:
    """A server that runs as long as the block. Skip the test if PostgreSQL is not installed."""
    with subprocess.Popen(  # noqa: S603 - our own script
        [str(SCRIPT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        url = process.stdout.readline().strip()
        if not url:
            problem = process.stderr.read()
            assert process.wait() == 127, problem
            pytest.skip(problem)
        yield PostgresServer(process, url)
        assert process.stdin is not None
        process.stdin.close()
