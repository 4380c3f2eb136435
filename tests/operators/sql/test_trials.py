"""Drivers and servers are killed at random, and every row is in the table once. `--trials` is how often."""

import multiprocessing
import random
import signal
import time
from itertools import islice
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Literal

import pytest

from dagkit.api.running import Until
from dagkit.launching import Machine, launch
from dagkit.ledger import Ledger
from dagkit.ledger.audit.verify import verify
from dagkit.testing import Crash, CrashAfter, FakeClock
from dagkit_operators import SqlReader, SqlSplitter, SqlWriter
from tests.engine.cast import Desk, Draw, chain
from tests.operators.driver_kills import POINTS, KillAfter, SendSteps, forked, steps_of
from tests.operators.sql.sql_cast import Row, TestDatabase, rows_written, starting
from tests.patience import join
from tests.services.postgres import PASSWORD, PostgresServer

pytestmark = pytest.mark.slow

LOOKS = ((4, 3), (5,), (2, 2), (7,), (1, 1, 1))
EXPECTED = [(number, f"row {number}") for number in range(26)]
NUMBERS = "SELECT number, text FROM numbers ORDER BY number"


def desk_of(home, database, clock=None):
    return Desk(home, rows_written(database, looks=LOOKS), until=Until.IDLE, clock=clock or FakeClock())


def run_and_be_killed(home, database, kill):
    desk_of(home, database).run(probe=kill)


@pytest.fixture(scope="module")
def run():
    return forked("tests.operators.sql.sql_cast", "adbc_driver_sqlite.dbapi", "pyarrow.ipc")


@pytest.mark.trial
def test_drivers_are_killed(tmp_path, sqlite, run, trial):
    drawn = random.Random(trial)
    kills = [KillAfter(drawn.choice(POINTS), drawn.randint(1, 5)) for _ in range(drawn.randint(1, 4))]
    codes = {run(run_and_be_killed, tmp_path, sqlite, kill) for kill in kills}
    assert -signal.SIGKILL in codes <= {0, -signal.SIGKILL}
    desk = desk_of(tmp_path, sqlite)
    desk.run()
    assert sqlite.rows(NUMBERS) == EXPECTED
    assert (desk.faults(), desk.leftovers()) == ([], [])


@pytest.mark.gate(1)
def test_the_server_and_the_driver_are_killed(tmp_path, postgres, on_postgres, trial):
    kill_both(tmp_path, postgres, on_postgres, trial)


@pytest.mark.trial
@pytest.mark.service("mariadb")
def test_a_server_that_a_module_connects_to_and_the_driver_are_killed(tmp_path, maria, mariadb, trial):
    mariadb.rows("CREATE TABLE numbers (number BIGINT, text VARCHAR(99))")
    kill_both(tmp_path, maria, mariadb, trial)


def kill_both(home, server, database, trial):
    drawn = random.Random(trial)
    crash = CrashAfter(drawn.choice(POINTS), drawn.randint(1, 5))
    left = {(drawn.choice(POINTS), drawn.randint(1, 5)) for _ in range(2)}
    kills = 0

    def kill_server(point, window_id):
        nonlocal kills
        if (point, window_id) in left and server.is_running:
            left.remove((point, window_id))
            server.kill()
            kills += 1

    def kill_at(point, window_id):
        kill_server(point, window_id)
        crash(point, window_id)

    desk = desk_of(home, database, starting(server))
    with pytest.raises(Crash):
        desk.run(probe=kill_at)
    desk.run(probe=kill_server)
    if not server.is_running:  # killed after the last delivery
        server.start()
    assert kills > 0
    assert database.rows(NUMBERS) == EXPECTED
    assert (desk.faults(), desk.leftovers()) == ([], [])


STEPS = 5
"""A window with rows has more steps."""
LONGEST_SECONDS = 0.05
"""Between a step and the kill: about as long as a step takes."""
PROCESSES = multiprocessing.get_context("forkserver")
"""Processes that begin with everything imported."""
PROCESSES.set_forkserver_preload(["tests.operators.sql.test_trials", "adbc_driver_postgresql.dbapi", "pyarrow.ipc"])


def rows_copied(database: TestDatabase) -> Draw:
    """The rows of the table `numbers`, read by two, are written to the table `copies`."""
    return chain(
        split=SqlSplitter(table="numbers", key="number", range_size=6, **database.settings),
        read=(SqlReader(record_type=Row, page_rows=2, **database.settings), 2),
        write=SqlWriter(table="copies", record_type=Row, **database.settings),
    )


def copy(home: Path, database: TestDatabase, backend: Literal["reference", "spark"], steps: Connection) -> None:
    launch(
        rows_copied(database),
        {"dt.attr.STREAMING_WINDOW_SIZE_MILLIS": 50},
        until="idle",
        machine=Machine(backend, cores=2),
        path=home / "app",
        probe=SendSteps(steps),
    )


class Trial:
    def __init__(self, server: PostgresServer, home: Path, backend: str, seed: int) -> None:
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
        time.sleep(self.random.uniform(0, LONGEST_SECONDS))  # sleeps: the kill comes at any moment

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


@pytest.mark.trial
@pytest.mark.spark
def test_the_driver_on_spark_and_the_server_are_killed_at_random_moments(postgres, tmp_path, spark_trial):
    copied = Trial(postgres, tmp_path, "spark", spark_trial)
    copied.kill_both()
    copied.kill_server()
    copied.check()
