"""Drivers, workers and the database are killed at random, and every row is in the table once. Each trial has a seed."""

import multiprocessing
import os
import random
import signal
from dataclasses import dataclass
from multiprocessing.context import ForkServerContext
from pathlib import Path

import pytest

from dagkit.api.running import Until
from dagkit.engine.points import Point
from dagkit.testing import Crash, CrashAfter, FakeClock
from tests.engine.cast import Desk
from tests.operators.sql.sql_cast import TestDatabase, rows_written, starting
from tests.services.postgres import PASSWORD, PostgresServer

pytestmark = pytest.mark.slow

LOOKS = ((4, 3), (5,), (2, 2), (7,), (1, 1, 1))
EXPECTED = [(number, f"row {number}") for number in range(26)]
NUMBERS = "SELECT number, text FROM numbers ORDER BY number"
POINTS = [point for point in Point if point is not Point.HALF_FINISHED]


@dataclass(frozen=True)
class KillAfter:
    """Kills its own process after this step of this window."""

    point: Point
    window_id: int

    def __call__(self, point: Point, window_id: int) -> None:
        if (point, window_id) == (self.point, self.window_id):
            os.kill(os.getpid(), signal.SIGKILL)


def run_and_be_killed(home: Path, url: str, point: str, window_id: int) -> None:
    """A driver that is killed, unless it ends before."""
    Desk(home, rows_written(TestDatabase(url), looks=LOOKS), until=Until.IDLE, clock=FakeClock()).run(
        probe=KillAfter(Point(point), window_id)
    )


@pytest.fixture(scope="module")
def processes() -> ForkServerContext:
    """Processes that begin with everything imported."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.operators.sql.sql_cast", "adbc_driver_sqlite.dbapi", "pyarrow.ipc"])
    return context


@pytest.mark.parametrize("seed", range(50))
def test_drivers_are_killed(tmp_path: Path, sqlite: TestDatabase, processes: ForkServerContext, seed: int) -> None:
    drawn, kills = random.Random(seed), 0
    for _ in range(drawn.randint(1, 4)):
        given = (tmp_path, sqlite.url, drawn.choice(POINTS).value, drawn.randint(1, 5))
        process = processes.Process(target=run_and_be_killed, args=given)
        process.start()
        process.join()
        assert process.exitcode in (0, -signal.SIGKILL)
        kills += process.exitcode != 0
    desk = Desk(tmp_path, rows_written(sqlite, looks=LOOKS), until=Until.IDLE, clock=FakeClock())
    desk.run()
    assert sqlite.rows(NUMBERS) == EXPECTED
    assert (desk.faults(), desk.leftovers()) == ([], [])


@pytest.mark.parametrize("seed", range(10))
def test_the_server_and_the_driver_are_killed(tmp_path: Path, postgres: PostgresServer, seed: int) -> None:
    drawn = random.Random(seed)
    deaths = {(drawn.choice(POINTS), drawn.randint(1, 5)) for _ in range(2)}
    crash = CrashAfter(drawn.choice(POINTS), drawn.randint(1, 5))

    def probe(point: Point, window_id: int) -> None:
        if (point, window_id) in deaths and postgres.is_running:
            deaths.remove((point, window_id))
            postgres.kill()
        crash(point, window_id)

    database = TestDatabase(postgres.new_database(), PASSWORD)
    desk = Desk(tmp_path, rows_written(database, looks=LOOKS), until=Until.IDLE, clock=starting(postgres))
    try:
        desk.run(probe=probe)
    except Crash:
        desk.run()
    if not postgres.is_running:  # killed after the last delivery
        postgres.start()
    assert database.rows(NUMBERS) == EXPECTED
