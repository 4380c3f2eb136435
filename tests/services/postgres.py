"""A real PostgreSQL server for tests: `postgres.sh` runs it, and it ends with the process that started it."""

import itertools
import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.processes import await_end
from tests.services.scripted import ScriptedServer

PASSWORD = "secret"  # noqa: S105 - of a server on the loopback


class PostgresServer(ScriptedServer):
    """A server with an empty database, and further ones for tests."""

    script = Path(__file__).with_name("postgres.sh")

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._numbers = itertools.count(1)

    @property
    def url(self) -> str:
        """The database `postgres`, without the password."""
        return f"postgresql://dagkit@{self.address}/postgres"

    def kill(self) -> None:
        """Kill the processes of the server, as `kill -9` does, and wait until they have ended.

        A server does not start while a process of an earlier one holds its shared memory.
        """
        os.kill(self._server, signal.SIGSTOP)  # it starts no further process
        children = Path(f"/proc/{self._server}/task/{self._server}/children").read_text().split()
        for process in map(int, [self._server, *children]):
            with suppress(ProcessLookupError):  # a child may have ended
                os.kill(process, signal.SIGKILL)
            await_end(process)
        self.stop()

    def new_database(self) -> str:
        """Create an empty database, and return its url without the password."""
        name = f"test_{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name}")
        return f"{self.url.rpartition('/')[0]}/{name}"

    def execute(self, statement: str) -> None:
        """Execute a statement outside of transactions."""
        import adbc_driver_postgresql.dbapi as driver  # noqa: PLC0415 - only tests with this server need it

        url = self.url.replace("dagkit@", f"dagkit:{PASSWORD}@")
        with driver.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute(statement)


@contextmanager
def running() -> Iterator[PostgresServer]:
    """A server that runs as long as the block. Skip the test if PostgreSQL is not installed."""
    # its user may not enter the folders of pytest
    with tempfile.TemporaryDirectory(prefix="postgres-") as folder, PostgresServer(Path(folder)) as server:
        yield server
