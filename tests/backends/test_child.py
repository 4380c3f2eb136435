"""A window in a child process of the reference: what the driver raises for each way in which it ends."""

import gc
import os
import select
import signal
import subprocess
import sys
from typing import Any, NoReturn

import pytest

from dagkit.backends.reference.child import run_in_child
from dagkit.engine.failures import WindowLost, WorkerDied
from dagkit.engine.worker.protocol import Answer

ANSWER = Answer((), ())


def ended_by(number: int) -> NoReturn:
    os.kill(os.getpid(), number)
    raise AssertionError("the signal ends this process")


def raised(error: BaseException) -> NoReturn:
    raise error


def test_the_answer_is_that_of_the_child() -> None:
    assert run_in_child(lambda: ANSWER, 1) == ANSWER


@pytest.mark.parametrize(
    ("error", "text"),
    [(MemoryError("full"), "with status 1: MemoryError: full"), (SystemExit(3), "with status 1: SystemExit: 3")],
)
def test_a_child_that_ends_has_died(error: BaseException, text: str) -> None:
    with pytest.raises(WorkerDied, match=text):
        run_in_child(lambda: raised(error), 1)


def test_a_child_that_a_signal_ends_has_died() -> None:
    with pytest.raises(WorkerDied, match="by SIGKILL"):
        run_in_child(lambda: ended_by(signal.SIGKILL), 1)


def test_a_failure_is_raised_as_it_is() -> None:
    with pytest.raises(WindowLost, match="the machine is gone"):
        run_in_child(lambda: raised(WindowLost("the machine is gone")), 1)


@pytest.mark.parametrize("answer", [lambda: raised(AssertionError("a defect")), lambda: lambda: None])
def test_a_defect_is_no_death_for_which_records_are_searched(answer: Any) -> None:
    with pytest.raises(RuntimeError, match=r"a window failed in a child process(?s:.*)(a defect|pickle)"):
        run_in_child(answer, 1)


class Ends:
    """Garbage that ends each process but its own when it is collected."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.itself = self

    def __del__(self) -> None:
        if os.getpid() != self.process:
            os._exit(1)


def test_garbage_of_the_driver_is_not_collected_in_a_child() -> None:
    def collects() -> Answer:
        gc.collect()
        return ANSWER

    Ends()
    assert run_in_child(collects, 1) == ANSWER


_DRIVER = """
import os, time
from dagkit.backends.reference.child import run_in_child

def work():
    print(os.getpid(), flush=True)
    time.sleep(600)

run_in_child(work, 1)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
def test_a_child_ends_with_a_driver_that_is_killed() -> None:
    driver = subprocess.Popen([sys.executable, "-c", _DRIVER], stdout=subprocess.PIPE, text=True)  # noqa: S603
    assert driver.stdout is not None
    with driver, driver.stdout as output:
        assert int(output.readline()) != driver.pid
        driver.kill()
        assert select.select([output], [], [], 60)[0], "the pipe that the child inherited is closed"
        assert output.read() == ""
