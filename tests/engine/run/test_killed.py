"""Real processes, really killed: whatever the instant, the next run ends with the same output."""

import multiprocessing
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from multiprocessing.synchronize import Semaphore
from pathlib import Path

import pytest

from tests.engine import driver
from tests.engine.cast import Desk, lines_through_filter
from tests.engine.work_cast import numbers, numbers_expected, numbers_of_names
from tests.patience import join, within
from tests.processes import limited, run_program

KILLS = 12
"""Of each application, at most; it may come to its end before."""
LONGEST_SECONDS = 0.02
"""Between what happened and the kill, at most."""
AHEAD = 2
"""So many unread events may come; then the driver waits, however late the kill is."""
GOLDEN = 0.6180339887498949
"""Its multiples fall evenly into whatever is divided, and never twice at one place."""

Run = Callable[[Path, Connection, Semaphore], None]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def processes():
    """Processes that begin with everything imported."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.engine.driver", "dagkit.backends.reference", "dagkit_operators"])
    return context


def killed(processes: ForkServerContext, run: Run, home: Path, first: float) -> int:
    """Run until it ends, and kill it again and again soon after an event; return the number of kills.

    How far it comes before a kill is bounded by what it has leave for, so that no run ends early if the
    killing process is slow.
    """
    for kills in count():
        told, tells = processes.Pipe(duplex=False)
        leave = processes.Semaphore(AHEAD)
        process = processes.Process(target=run, args=(home, tells, leave))
        process.start()
        tells.close()
        try:
            for _ in range(2 + kills % 3 if kills < KILLS else 10_000):
                assert told.poll(within(30)), "the driver reports no event"
                told.recv()
                leave.release()
        except EOFError:
            join(process)
            assert process.exitcode == 0
            return kills
        process.join(LONGEST_SECONDS * ((kills + first) * GOLDEN % 1))
        process.kill()
        join(process)
    raise AssertionError("counting never ends")


@pytest.mark.gate(1)
@pytest.mark.parametrize("number", range(4))
def test_a_driver_that_is_killed_again_and_again_writes_each_line_once(tmp_path, processes, number):
    once, often = tmp_path / "once", tmp_path / "often"
    for home in (once, often):
        driver.fill(home)
    undisturbed, desk = (Desk(home, lines_through_filter(home, **driver.KILLED)) for home in (once, often))
    undisturbed.run()
    assert killed(processes, driver.run_lines, often, number / 4) >= 4
    assert (desk.outputs(), desk.troubles()) == (undisturbed.outputs(), [])


@pytest.mark.trial
@pytest.mark.parametrize("number", range(4))
def test_a_driver_that_is_killed_again_and_again_does_work_from_workers_once(tmp_path, processes, number):
    assert killed(processes, driver.run_names, tmp_path, number / 4) >= 4
    desk = Desk(tmp_path, numbers_of_names(driver.NAMES, by_now=driver.BY_NOW, senders=2))
    assert numbers(desk.run()) == numbers_expected(driver.NAMES, driver.BY_NOW, doubled=True)
    assert desk.faults() == []


def killed_at(command: list[str], line: str) -> None:
    """Run a program until it prints a line that begins so, and kill it."""
    with limited(subprocess.Popen(command, stdout=subprocess.PIPE, text=True), 600) as process:  # noqa: S603 - our own
        assert any(printed.startswith(line) for printed in process.stdout or ()), f"unreported {line}"
        process.kill()


@pytest.mark.trial
@pytest.mark.spark
def test_a_driver_on_spark_that_is_killed_writes_each_line_once(tmp_path):
    home, once = tmp_path / "spark", tmp_path / "once"
    driver.fill(home)
    driver.fill(once)
    command = [sys.executable, "-m", "tests.engine.driver", str(home)]
    for line in ("Committed(window_id=1", "Started(window_id=2"):
        killed_at(command, line)
    run_program(command, seconds=600)
    undisturbed, desk = (Desk(each, driver.lines_on_spark(each)) for each in (once, home))
    undisturbed.run()
    assert (desk.outputs(), desk.troubles()) == (undisturbed.outputs(), [])
