"""Event time across crashes: late records, sessions that merge, idle sources; on the reference and on Spark."""

import random
import subprocess
import sys

import pytest

from dagkit import Until
from dagkit.engine.program.points import Point
from dagkit.launching import Machine, launch
from dagkit.ledger import Ledger
from dagkit.ledger.audit.verify import verify
from dagkit.testing import Crash, CrashAfter
from tests.engine.cast import Desk
from tests.operators.event_time.trials import PHASES, add, timed, written
from tests.processes import limited, run_program

pytestmark = pytest.mark.slow

POINTS = [point for point in Point if point is not Point.HALF_FINISHED]
IN_EACH_WINDOW = [Point.PLANNED, Point.RUNNING, Point.STAGED, Point.APPENDED]
LATE = ["2024-01-01T00:00:01+00:00 a 1", "2024-01-01T00:00:03+00:00 a 3"]
EXPECTED = {
    "sessions-out": [
        *("a 0 8 4 0", "a 12 17 12 0", "a 12 21 28 1", "b 17 29 61 0", "b 41 46 41 0", "b 9 14 9 0"),
        *("c 20 27 42 0", "c 20 35 98 1", "c 41 46 41 0", "c 60 65 60 0"),
    ],
    "sessions-late-out": LATE,
    "tens-out": [
        *("a 0 10 4 0", "a 10 20 28 0", "b 0 10 9 0", "b 10 20 17 0", "b 20 30 44 0", "b 40 50 41 0"),
        *("c 20 30 68 0", "c 30 40 30 0", "c 40 50 41 0", "c 60 70 60 0"),
    ],
    "tens-late-out": LATE,
}


@pytest.mark.trial
def test_the_results_of_a_run_without_crashes(tmp_path):
    desk = Desk(tmp_path, timed(tmp_path), until=Until.IDLE)
    for phase in range(len(PHASES)):
        add(tmp_path, phase)
        desk.run()
    assert written(tmp_path) == EXPECTED


@pytest.mark.trial
def test_crashes_of_each_launch_change_no_result(tmp_path, trial):
    drawn = random.Random(trial)
    desk = Desk(tmp_path, timed(tmp_path, partitions=drawn.randint(1, 3)), until=Until.IDLE)
    crashes = 0
    for phase in range(len(PHASES)):
        add(tmp_path, phase)
        last = desk.loop().run_state.checkpoint.window
        first = CrashAfter(drawn.choice(IN_EACH_WINDOW), last + 1)
        crashes += desk.crash(first, CrashAfter(drawn.choice(POINTS)))
        desk.run()
    assert crashes >= len(PHASES)
    assert written(tmp_path) == EXPECTED
    assert desk.faults() == []


@pytest.mark.trial
def test_workers_and_the_driver_on_spark_crash(tmp_path, spark, spark_trial):
    drawn, path = random.Random(spark_trial), tmp_path / "app"
    at = drawn.choice([second for phase in PHASES for folder in phase for _, second in folder])
    for phase in range(len(PHASES)):
        add(tmp_path, phase)
        draw, crash = timed(tmp_path, at=at), CrashAfter(drawn.choice(POINTS))
        try:
            launch(draw, until="idle", machine=Machine(spark=spark), path=path, probe=crash)
        except Crash:
            launch(draw, until="idle", machine=Machine(spark=spark), path=path)
    assert (tmp_path / "killed").exists()
    assert written(tmp_path) == EXPECTED
    assert list(verify(Ledger.open(tmp_path / "app")).faults) == []


@pytest.mark.trial
@pytest.mark.spark
def test_a_driver_on_spark_is_killed(tmp_path, spark_trial):
    drawn = random.Random(spark_trial)
    command = [sys.executable, "-m", "tests.operators.event_time.trials", str(tmp_path)]
    killed_in = drawn.randrange(len(PHASES))
    for phase in range(len(PHASES)):
        add(tmp_path, phase)
        if phase == killed_in:
            at = drawn.choice(POINTS)
            with limited(subprocess.Popen(command, stdout=subprocess.PIPE, text=True), 120) as process:  # noqa: S603 - our own
                assert any(line.endswith(f" {at}\n") for line in process.stdout), f"unreported {at}"
                process.kill()
            run_program(command, seconds=120)
        else:
            Desk(tmp_path, timed(tmp_path), until=Until.IDLE).run()
    assert written(tmp_path) == EXPECTED
    assert list(verify(Ledger.open(tmp_path / "app")).faults) == []
