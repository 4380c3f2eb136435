"""Drivers are killed at random, and every row is in a Delta or Iceberg table once. `--trials` is how often."""

import multiprocessing
import random
import signal
from pathlib import Path

import pytest

from dagkit.api.running import Until
from dagkit.engine.history.history import history
from dagkit.engine.points import Point
from dagkit.launching import Machine, launch
from dagkit.testing import CrashAfter, FakeClock
from tests.engine.cast import Desk
from tests.operators.driver_kills import POINTS, KillAfter, kill_once
from tests.operators.tables.lakes import LAKES, Lake, Row, row, rows_written
from tests.patience import join

pytestmark = [pytest.mark.trial, pytest.mark.parametrize("kind", LAKES)]

LOOKS = ((4, 3), (5,), (2, 2), (7,), (1, 1, 1))
LONGEST_SECONDS = 0.05
"""Between the commit of a window and the kill: about as long as its rows take to be added."""
EXPECTED = [{"number": number, "text": f"row {number}"} for number in range(26)]


def desk_of(home: Path, lake: Lake) -> Desk:
    return Desk(home, rows_written(lake, looks=LOOKS), until=Until.IDLE, clock=FakeClock())


def run_and_be_killed(kind: str, home: Path, kill: KillAfter) -> None:
    """A driver that is killed, unless it ends before."""
    desk_of(home, LAKES[kind](home)).run(probe=kill)


def run_on_spark(kind: str, home: Path, deadly: int, kill: KillAfter | None) -> None:
    """A driver on Spark, one of whose workers is killed at a number."""

    def make(number: int) -> Row:
        if number == deadly:
            kill_once(home / "killed")
        return row(number)

    draw = rows_written(LAKES[kind](home), LOOKS, make)
    launch(draw, until="idle", machine=Machine("spark", cores=2), path=home / "app", probe=kill)


def check(desk: Desk, lake: Lake) -> None:
    """Every row is there, and every window is one version."""
    assert lake.rows() == EXPECTED
    assert len(lake.windows()) == list(history(desk.ledger()))[-1].checkpoint.window
    assert desk.faults() == []


@pytest.fixture(scope="module")
def processes():
    """Processes that begin with everything imported."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.operators.tables.lakes", "pyarrow.ipc"])
    return context


@pytest.mark.gate(1)
def test_a_driver_that_crashes_after_any_step_adds_every_row_once(tmp_path, kind, trial):
    drawn, lake = random.Random(trial), LAKES[kind](tmp_path)
    desk = desk_of(tmp_path, lake)
    steps = [POINTS[trial % len(POINTS)], *drawn.choices(POINTS, k=drawn.randint(0, 3))]
    assert desk.crash(*(CrashAfter(step, drawn.randint(1, 5)) for step in steps)) > 0
    desk.run()
    check(desk, lake)
    assert desk.leftovers() == []


@pytest.mark.trial
def test_a_driver_whose_process_is_killed_adds_every_row_once(tmp_path, kind, processes, trial):
    drawn, exits = random.Random(trial), []
    during = KillAfter(Point.APPENDED, drawn.randint(1, 5), drawn.uniform(0, LONGEST_SECONDS))
    after = KillAfter(drawn.choice(POINTS), drawn.randint(1, 5))
    for kill in (KillAfter(Point.DELIVERED, 1), during, after):
        process = processes.Process(target=run_and_be_killed, args=(kind, tmp_path, kill))
        process.start()
        join(process, seconds=600)
        exits.append(process.exitcode)
    assert exits[0] == -signal.SIGKILL
    assert set(exits) <= {0, -signal.SIGKILL}
    lake = LAKES[kind](tmp_path)
    desk = desk_of(tmp_path, lake)
    desk.run()
    check(desk, lake)  # a kill while staged rows are removed leaves some until the next commit


@pytest.mark.spark
def test_a_worker_and_the_driver_on_spark_are_killed_and_every_row_is_added_once(
    tmp_path, kind, processes, spark_trial
):
    drawn = random.Random(spark_trial)
    deadly, kill = drawn.randrange(len(EXPECTED)), KillAfter(drawn.choice(POINTS), drawn.randint(1, 5))
    for probe, code in ((kill, -signal.SIGKILL), (None, 0)):
        process = processes.Process(target=run_on_spark, args=(kind, tmp_path, deadly, probe))
        process.start()
        join(process, seconds=600)
        assert process.exitcode == code
    assert (tmp_path / "killed").exists()
    lake = LAKES[kind](tmp_path)
    check(desk_of(tmp_path, lake), lake)
