"""What is done once in a worker's process."""

import gc
import platform
import sys
from subprocess import CompletedProcess
from typing import Any

import pyarrow as pa
import pytest

from dagkit.backends.spark.shipping.shipping import shipped
from dagkit.backends.spark.window import worker
from dagkit.backends.spark.window.task import LevelTask
from dagkit.engine.program.lower import program_of
from dagkit.engine.worker.protocol import WindowTask
from tests.backends.cast import Collect, Words, chain
from tests.processes import run_program

FAULTS_AT_WORK = """
import resource
import numpy as np
from dagkit.backends.spark.window.worker import hold_memory

if {held}:
    hold_memory()
for _ in range(3):
    np.ones(1 << 20, np.uint8) == 1
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(100):
    np.ones(1 << 20, np.uint8) == 1
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""

FEW, MANY = 100, 10_000
"""Times that a page is given: none for most chunks, or one for each page of each chunk."""


def ran(program: str, **environment: str) -> CompletedProcess[str]:
    paths = {"PYTHONPATH": ":".join(filter(None, sys.path))}
    return run_program([sys.executable, "-c", program], env=paths | environment, seconds=120)


def faults_at_work(*, held: bool, **environment: str) -> int:
    """How often a process that works on a hundred chunks is given a page by the system."""
    return int(ran(FAULTS_AT_WORK.format(held=held), **environment).stdout)


HEARD = """
import sys
from dagkit.backends.spark.window.worker import at_work

for task in 1, 2:
    with at_work():
        print("task", task, file=sys.stderr)
    print("the pipe is broken", file=sys.stderr)
"""


def test_a_worker_is_heard_while_it_works_and_not_while_it_waits():
    assert ran(HEARD).stderr.splitlines() == ["task 1", "task 2"]


@pytest.mark.trial
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="memory is held where the C library is glibc")
def test_what_one_chunk_freed_serves_the_next_one_and_what_a_user_set_for_the_c_library_stays():
    assert faults_at_work(held=True) < FEW
    assert faults_at_work(held=False) > MANY
    assert faults_at_work(held=True, MALLOC_TRIM_THRESHOLD_="131072") > MANY


@pytest.fixture
def unsettled(monkeypatch):
    """A worker that has run no program yet, and leaves the process as it was."""
    monkeypatch.setattr(worker, "_settled_for", "")
    yield
    gc.unfreeze()


def is_looked_at(thing: Any) -> bool:
    """Whether a collection comes by it."""
    return any(each is thing for each in gc.get_objects())


@pytest.mark.usefixtures("unsettled")
def test_a_collection_looks_no_more_at_what_was_loaded_for_a_program_and_at_all_that_came_after_it():
    loaded: list[int] = []
    assert is_looked_at(loaded)
    worker.settle("a program")
    assert not is_looked_at(loaded)
    later: list[int] = []
    worker.settle("a program")
    assert is_looked_at(later)
    worker.settle("another program")
    assert not is_looked_at(later)


@pytest.mark.slow
@pytest.mark.usefixtures("unsettled")
def test_a_worker_settles_with_its_first_task():
    packed, _ = shipped(program_of(chain(words=Words(), collect=Collect())), [])
    loaded: list[int] = []
    slots = [pa.record_batch([pa.array([0])], names=["id"])]
    assert list(LevelTask(packed, 0, WindowTask(1), {})(slots))
    assert not is_looked_at(loaded)
