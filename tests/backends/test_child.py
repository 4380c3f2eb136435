"""A window in a child process of the reference: what the driver raises for each way in which it ends."""

import gc
import importlib
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from typing import NoReturn

import pytest

from dagkit.backends.reference.child import run_in_child
from dagkit.engine.program.failures import WindowLost, WorkerDied
from dagkit.engine.worker.protocol import Answer
from dagkit.observers.run_log import LOG, logged
from tests.patience import join, within
from tests.processes import limited, next_line

ANSWER = Answer((), ())


def ended_by(number: int) -> NoReturn:
    os.kill(os.getpid(), number)
    raise AssertionError("the signal ends this process")


def raised(error: BaseException) -> NoReturn:
    raise error


@pytest.mark.parametrize(
    ("work", "error", "text"),
    [
        (lambda: raised(MemoryError("full")), WorkerDied, "with status 1: MemoryError: full"),
        (lambda: raised(SystemExit(3)), WorkerDied, "with status 1: SystemExit: 3"),
        (lambda: ended_by(signal.SIGKILL), WorkerDied, "by SIGKILL"),
        (lambda: ended_by(signal.SIGSEGV), WorkerDied, "by SIGSEGV: Fatal Python error: Segmentation fault"),
        (lambda: raised(WindowLost("the machine is gone")), WindowLost, "the machine is gone"),
    ],
)
def test_a_child_that_ends_or_that_a_signal_ends_has_died_and_a_failure_is_raised_as_it_is(work, error, text):
    with pytest.raises(error, match=text):
        run_in_child(work, 1)


@pytest.mark.parametrize("answer", [lambda: raised(AssertionError("a defect")), lambda: lambda: None])
def test_a_defect_is_no_death_for_which_records_are_searched(answer):
    with pytest.raises(RuntimeError, match=r"a window failed in a child process(?s:.*)(a defect|pickle)"):
        run_in_child(answer, 1)


def test_the_child_does_not_use_connections_of_the_driver():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        with pytest.raises(RuntimeError, match="Broken pipe"):
            run_in_child(lambda: ours.send(b"of the child"), 1)
        ours.send(b"of the driver")
        assert theirs.recv(100) == b"of the driver"


class Ends:
    """Garbage that ends each process but its own when it is collected."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.itself = self

    def __del__(self) -> None:
        if os.getpid() != self.process:
            os._exit(1)


@pytest.mark.parametrize("at_the_fork", [False, True])
def test_garbage_of_the_driver_is_not_collected_in_a_child_not_even_right_after_the_fork(monkeypatch, at_the_fork):
    fork = os.fork

    def forked() -> int:
        child = fork()
        if child == 0 and gc.isenabled():
            gc.collect()
        return child

    def collects() -> Answer:
        gc.collect()
        return ANSWER

    if at_the_fork:
        monkeypatch.setattr(os, "fork", forked)
    Ends()
    assert run_in_child(collects, 1) == ANSWER
    assert gc.isenabled()


@pytest.mark.slow
def test_a_child_writes_to_the_log_although_a_thread_of_the_driver_wrote_to_it_at_the_fork(tmp_path):
    log, logger = tmp_path / LOG, logging.getLogger("dagkit.test_child")
    log.parent.mkdir()
    os.mkfifo(log)
    reading = os.open(log, os.O_RDWR)

    def writes() -> Answer:
        signal.alarm(20)  # ends a child that waits for ever
        logger.warning("of the child")
        return ANSWER

    def read_all() -> None:
        while b"of the child" not in os.read(reading, 1 << 16):
            pass

    with logged(str(tmp_path), "app"):
        writer = threading.Thread(target=logger.warning, args=("x" * (1 << 17),))
        writer.start()  # the pipe is full then, and it waits in the middle of a line
        while select.select([], [reading], [], 0)[1]:
            pass
        reader = threading.Timer(0.5, read_all)
        reader.daemon = True  # if the child does not write, it waits for ever
        reader.start()
        assert run_in_child(writes, 1) == ANSWER
        join(writer, seconds=120)
        join(reader, seconds=120)
    os.close(reading)


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
def test_a_child_ends_with_a_driver_that_is_killed():
    driver = subprocess.Popen([sys.executable, "-c", _DRIVER], stdout=subprocess.PIPE, text=True)  # noqa: S603
    with limited(driver), driver.stdout as output:
        assert int(next_line(driver)) != driver.pid
        driver.kill()
        assert select.select([output], [], [], within(60))[0], "the pipe that the child inherited is closed"
        assert output.read() == ""


IMPORTED_SLOWLY = """
import threading
import tests.backends.test_child as waits
waits.BEGAN.set()
waits.CONTINUES.wait()
"""
BEGAN, CONTINUES = threading.Event(), threading.Event()


@pytest.fixture
def imported_slowly(tmp_path, monkeypatch):
    """The name of a module that a thread of this process is importing until CONTINUES is set."""
    name = "imported_slowly"
    (tmp_path / f"{name}.py").write_text(IMPORTED_SLOWLY)
    monkeypatch.syspath_prepend(tmp_path)
    importing = threading.Thread(target=importlib.import_module, args=(name,))
    importing.start()
    assert BEGAN.wait(within(30))
    yield name
    CONTINUES.set()
    join(importing, seconds=30)
    del sys.modules[name]
    BEGAN.clear()
    CONTINUES.clear()


def test_a_child_imports_a_module_although_a_thread_of_the_driver_was_importing_it(imported_slowly, monkeypatch):
    forks = []

    def forked(fork=os.fork) -> int:
        child = fork()
        if child:
            forks.append(child)
            CONTINUES.set()
        return child

    def imports() -> Answer:
        signal.alarm(20)  # ends a child that waits for ever
        importlib.import_module(imported_slowly)
        return ANSWER

    monkeypatch.setattr(os, "fork", forked)
    assert run_in_child(imports, 1) == ANSWER
    assert len(forks) > 1


@pytest.mark.usefixtures("imported_slowly")
def test_a_child_does_not_wait_for_an_import_without_an_end(monkeypatch):
    monkeypatch.setattr("dagkit.backends.reference.child._LONGEST_IMPORT_SECONDS", 0)
    monkeypatch.setattr("dagkit.backends.reference.child._LASTING", set())
    assert [run_in_child(lambda: ANSWER, window) for window in (1, 2)] == [ANSWER, ANSWER]
