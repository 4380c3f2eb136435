"""Drivers and the database are killed at random, and every row is in the table once. `--trials` is how often."""

import random
import signal

import pytest

from dagkit.api.running import Until
from dagkit.testing import Crash, CrashAfter, FakeClock
from tests.engine.cast import Desk
from tests.operators.driver_kills import POINTS, KillAfter, forked
from tests.operators.sql.sql_cast import rows_written, starting

pytestmark = pytest.mark.slow

LOOKS = ((4, 3), (5,), (2, 2), (7,), (1, 1, 1))
EXPECTED = [(number, f"row {number}") for number in range(26)]
NUMBERS = "SELECT number, text FROM numbers ORDER BY number"


def desk_of(home, database, clock=None):
    return Desk(home, rows_written(database, looks=LOOKS), until=Until.IDLE, clock=clock or FakeClock())


def run_and_be_killed(home, database, kill):
    """A driver that is killed, unless it ends before."""
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
    """Kill the server twice and the driver once, at random steps."""
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
