"""Drivers are killed at random, and every row is in a Delta or Iceberg table once. `--trials` is how often."""

import random
import signal

import pytest

from dagkit.api.running import Until
from dagkit.engine.program.points import Point
from dagkit.engine.record.history import history
from dagkit.launching import Machine, launch
from dagkit.testing import CrashAfter, FakeClock
from tests.engine.cast import Desk
from tests.operators.driver_kills import POINTS, KillAfter, forked, kill_once
from tests.operators.tables.lakes import LAKES, Row, all_rows, row, rows_written

pytestmark = [pytest.mark.trial, pytest.mark.parametrize("kind", LAKES)]

LOOKS = ((4, 3), (5,), (2, 2), (7,), (1, 1, 1))
LONGEST_SECONDS = 0.05
"""Between the commit of a window and the kill: about as long as its rows take to be added."""
EXPECTED = all_rows(26)


def desk_of(home, lake):
    return Desk(home, rows_written(lake, looks=LOOKS), until=Until.IDLE, clock=FakeClock())


def run_and_be_killed(kind, home, kill):
    """A driver that is killed, unless it ends before."""
    desk_of(home, LAKES[kind](home)).run(probe=kill)


def run_on_spark(kind, home, deadly, kill):
    """A driver on Spark, one of whose workers is killed at a number."""

    def make(number: int) -> Row:
        if number == deadly:
            kill_once(home / "killed")
        return row(number)

    draw = rows_written(LAKES[kind](home), LOOKS, make)
    launch(draw, until="idle", machine=Machine("spark", cores=2), path=home / "app", probe=kill)


def check(desk, lake):
    """Every row is there, and every window is one version."""
    assert lake.rows() == EXPECTED
    assert len(lake.windows()) == list(history(desk.ledger()))[-1].checkpoint.window
    assert desk.faults() == []


@pytest.fixture(scope="module")
def run():
    return forked("tests.operators.tables.lakes", "pyarrow.ipc")


@pytest.mark.gate(1)
def test_a_driver_that_crashes_after_any_step_adds_every_row_once(tmp_path, kind, trial):
    drawn, lake = random.Random(trial), LAKES[kind](tmp_path)
    desk = desk_of(tmp_path, lake)
    steps = [POINTS[trial % len(POINTS)], *drawn.choices(POINTS, k=drawn.randint(0, 3))]
    assert desk.crash(*(CrashAfter(step, drawn.randint(1, 5)) for step in steps)) > 0
    desk.run()
    check(desk, lake)
    assert desk.leftovers() == []


def test_a_driver_whose_process_is_killed_adds_every_row_once(tmp_path, kind, run, trial):
    drawn = random.Random(trial)
    during = KillAfter(Point.APPENDED, drawn.randint(1, 5), drawn.uniform(0, LONGEST_SECONDS))
    after = KillAfter(drawn.choice(POINTS), drawn.randint(1, 5))
    first, *others = [
        run(run_and_be_killed, kind, tmp_path, kill) for kill in (KillAfter(Point.DELIVERED, 1), during, after)
    ]
    assert first == -signal.SIGKILL
    assert set(others) <= {0, -signal.SIGKILL}
    lake = LAKES[kind](tmp_path)
    desk = desk_of(tmp_path, lake)
    desk.run()
    check(desk, lake)  # a kill while staged rows are removed leaves some until the next commit


@pytest.mark.spark
def test_a_worker_and_the_driver_on_spark_are_killed_and_every_row_is_added_once(tmp_path, kind, run, spark_trial):
    drawn = random.Random(spark_trial)
    deadly, kill = drawn.randrange(len(EXPECTED)), KillAfter(drawn.choice(POINTS), drawn.randint(1, 5))
    codes = [run(run_on_spark, kind, tmp_path, deadly, probe) for probe in (kill, None)]
    assert codes == [-signal.SIGKILL, 0]
    assert (tmp_path / "killed").exists()
    lake = LAKES[kind](tmp_path)
    check(desk_of(tmp_path, lake), lake)
