"""A driver in a process of its own, to be killed: `python -m tests.engine.driver HOME` runs on Spark."""

import sys
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Semaphore
from pathlib import Path

from dagkit.engine.record.run_events import Observer, RunEvent
from dagkit.launching import launch
from tests.engine.cast import Desk, Draw, Hurried, files_given, lines_through_filter, some_lines
from tests.engine.work_cast import numbers_of_names

KILLED = {"block_size": 150, "readers": 3, "threshold": 4}


def fill(home: Path) -> None:
    files_given(home, *(some_lines(40, seed=number) for number in range(6)))


def publisher(told: Connection, leave: Semaphore) -> Observer:
    """Prints every event, and waits for permission to continue."""

    def tell(happening: RunEvent) -> None:
        told.send(str(happening))
        leave.acquire()

    return tell


def run_lines(home: Path, told: Connection, leave: Semaphore) -> None:
    Desk(home, lines_through_filter(home, **KILLED)).run(observers=[publisher(told, leave)])


NAMES = ((("x", 40), ("y", 5), ("tail", -1)), (("z", 60), ("v", 9)))
BY_NOW = 30


def run_names(home: Path, told: Connection, leave: Semaphore) -> None:
    """Numbers of names that come from workers, one of them without an end, on the reference."""
    desk = Desk(home, numbers_of_names(NAMES, by_now=BY_NOW, senders=2), backend=Hurried)
    desk.run(observers=[publisher(told, leave)])


def lines_on_spark(home: Path) -> Draw:
    return lines_through_filter(home, block_size=800, readers=2, threshold=4)


def on_spark(home: Path, observer: Observer) -> None:
    launch(lines_on_spark(home), until="once", path=home / "app", observers=[observer], durable=False)


if __name__ == "__main__":
    on_spark(Path(sys.argv[1]), lambda happening: print(happening, flush=True))  # noqa: T201
