"""Drivers and the database are killed at random, and every row is in the table once. `--trials` is how often."""

import multiprocessing
import random
import signal
from pathlib import Path

import pytest

from dagkit.api.running import Until
from dagkit.engine.points import Point
from dagkit.testing import Crash, CrashAfter, FakeClock
from tests.engine.cast import Desk
from tests.operators.driver_kills import POINTS, KillAfter
from tests.operators.sql.sql_cast import TestDatabase, rows_written, starting
from tests.patience import join
from tests.services.postgres import PASSWORD

pytestmark = pytest.mark.slow

LOOKS = ((4, 3), (5,), (2, 2), (7,), (1, 1, 1))
EXPECTED = [(number, f"row {number}") for number in range(26)]
NUMBERS = "SELECT number, text FROM numbers ORDER BY number"


def run_and_be_killed(home: Path, url: str, point: str, window_id: int) -> None:
    """A driver that is killed, unless it ends before."""
    Desk(home, rows_written(TestDatabase(url), looks=LOOKS), until=Until.IDLE, clock=FakeClock()).run(
        probe=KillAfter(Point(point), window_id)
    )


@pytest.fixture(scope="module")
def processes():
    """Processes that begin with everything imported."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.operators.sql.sql_cast", "adbc_driver_sqlite.dbapi", "pyarrow.ipc"])
    return context


@pytest.mark.gate(1)
def test_drivers_are_killed(tmp_path, sqlite, processes, trial):
    drawn, kills = random.Random(trial), 0
    for _ in range(drawn.randint(1, 4)):
        given = (tmp_path, sqlite.url, drawn.choice(POINTS).value, drawn.randint(1, 5))
        process = processes.Process(target=run_and_be_killed, args=given)
        process.start()
        join(process)
        assert process.exitcode in (0, -signal.SIGKILL)
        kills += process.exitcode != 0
    desk = Desk(tmp_path, rows_written(sqlite, looks=LOOKS), until=Until.IDLE, clock=FakeClock())
    desk.run()
    assert kills > 0
    assert sqlite.rows(NUMBERS) == EXPECTED
    assert (desk.faults(), desk.leftovers()) == ([], [])


@pytest.mark.gate(1)
def test_the_server_and_the_driver_are_killed(tmp_path, postgres, trial):
    drawn = random.Random(trial)
    crash = CrashAfter(drawn.choice(POINTS), drawn.randint(1, 5))
    left = {(drawn.choice(POINTS), drawn.randint(1, 5)) for _ in range(2)}
    kills = 0

    def kill_server(point: Point, window_id: int) -> None:
        nonlocal kills
        if (point, window_id) in left and postgres.is_running:
            left.remove((point, window_id))
            postgres.kill()
            kills += 1

    def kill_both(point: Point, window_id: int) -> None:
        kill_server(point, window_id)
        crash(point, window_id)

    database = TestDatabase(postgres.new_database(), PASSWORD)
    desk = Desk(tmp_path, rows_written(database, looks=LOOKS), until=Until.IDLE, clock=starting(postgres))
    with pytest.raises(Crash):
        desk.run(probe=kill_both)
    desk.run(probe=kill_server)
    if not postgres.is_running:  # killed after the last delivery
        postgres.start()
    assert kills > 0
    assert database.rows(NUMBERS) == EXPECTED
    assert (desk.faults(), desk.leftovers()) == ([], [])
