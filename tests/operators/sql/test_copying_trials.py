"""The process of a driver and PostgreSQL are killed at random moments, and every row is copied once."""

import multiprocessing
import random
import time
from itertools import islice
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from dagkit.ledger import Ledger
from dagkit.ledger.audit.verify import verify
from tests.operators.driver_kills import steps_of
from tests.operators.sql.copying import Backend, copy
from tests.operators.sql.sql_cast import TestDatabase
from tests.patience import join
from tests.services.postgres import PASSWORD, PostgresServer

pytestmark = pytest.mark.trial

STEPS = 5
"""A window with rows has more steps."""
LONGEST_SECONDS = 0.05
"""Between a step and the kill: about as long as a step takes."""
PROCESSES = multiprocessing.get_context("forkserver")
"""Processes that begin with everything imported."""
PROCESSES.set_forkserver_preload(["tests.operators.sql.copying", "adbc_driver_postgresql.dbapi", "pyarrow.ipc"])


class Trial:
    """Rows that are copied while something is killed."""

    def __init__(self, server: PostgresServer, home: Path, backend: Backend, seed: int) -> None:
        self.server, self.home, self.backend = server, home, backend
        self.random = random.Random(seed)
        self.database = TestDatabase(server.new_database(), PASSWORD)
        self.database.rows("CREATE TABLE numbers (number BIGINT, text TEXT)")
        self.count = 0

    def add_rows(self) -> None:
        end = self.count + self.random.randint(5, 30)
        numbers = f"generate_series({self.count}, {end - 1}) AS number"
        self.database.rows(f"INSERT INTO numbers SELECT number, 'row ' || number FROM {numbers}")
        self.count = end

    def begin(self) -> tuple[BaseProcess, Connection]:
        """Start a driver, and wait for a random moment."""
        self.add_rows()
        steps, sender = PROCESSES.Pipe(duplex=False)
        process = PROCESSES.Process(target=copy, args=(self.home, self.database, self.backend, sender))
        process.start()
        sender.close()
        after = self.random.randint(1, STEPS)
        assert len(list(islice(steps_of(steps), after))) == after
        self.moment()
        return process, steps

    def moment(self) -> None:
        time.sleep(self.random.uniform(0, LONGEST_SECONDS))

    def kill_driver(self) -> None:
        process, _ = self.begin()
        process.kill()
        join(process, seconds=600)

    def kill_server(self) -> None:
        """The driver waits for the server, and copies all rows."""
        process, steps = self.begin()
        self.server.kill()
        self.moment()
        self.server.start()
        list(steps_of(steps))
        join(process, seconds=600)
        assert process.exitcode == 0

    def kill_both(self) -> None:
        process, _ = self.begin()
        self.server.kill()
        self.moment()
        process.kill()
        join(process, seconds=600)
        self.server.start()

    def check(self) -> None:
        """Every row is in both tables once."""
        expected = [(number, f"row {number}") for number in range(self.count)]
        for table in ("numbers", "copies"):
            assert self.database.rows(f"SELECT number, text FROM {table} ORDER BY number") == expected
        assert list(verify(Ledger.open(self.home / "app")).faults) == []
        assert [path for path in (self.home / "app" / "staging").rglob("*") if path.is_file()] == []


@pytest.mark.trial
def test_the_driver_and_the_server_are_killed_at_random_moments(postgres, tmp_path, trial):
    copied = Trial(postgres, tmp_path, "reference", trial)
    for kill in copied.random.sample([copied.kill_driver, copied.kill_both], 2):
        kill()
    copied.kill_server()
    copied.check()


@pytest.mark.spark
def test_the_driver_on_spark_and_the_server_are_killed_at_random_moments(postgres, tmp_path, spark_trial):
    copied = Trial(postgres, tmp_path, "spark", spark_trial)
    copied.kill_both()
    copied.kill_server()
    copied.check()
