"""Kills drivers at chosen steps of chosen windows, and workers at chosen records."""

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from dagkit.engine.program.points import Point
from tests.patience import join, within

POINTS = [point for point in Point if point is not Point.HALF_FINISHED]
"""The steps of windows that put no files in place."""


@dataclass(frozen=True)
class KillAfter:
    """A probe that kills its own process after this step of this window, or so many seconds later."""

    point: Point
    window_id: int
    seconds: float = 0

    def __call__(self, point: Point, window_id: int) -> None:
        if (point, window_id) != (self.point, self.window_id):
            return
        if not self.seconds:
            os.kill(os.getpid(), signal.SIGKILL)
        kill = threading.Timer(self.seconds, os.kill, (os.getpid(), signal.SIGKILL))
        kill.daemon = True  # a run may end before
        kill.start()


def kill_once(marker: Path) -> None:
    """Kill this process, unless the marker exists: a file that the first call creates."""
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class SendSteps:
    """A probe that sends each step to the process that started this one, before the next step begins."""

    steps: Connection

    def __call__(self, point: Point, window_id: int) -> None:
        self.steps.send(f"{window_id} {point}")


def steps_of(steps: Connection) -> Iterator[str]:
    """The steps that a process sends, until it ends."""
    with contextlib.suppress(EOFError):
        while True:
            assert steps.poll(within(120)), "the driver neither takes a step nor ends"
            yield steps.recv()


def forked(*preload: str) -> Callable[..., int | None]:
    """Return a function that runs another in a process that begins with these modules, and returns its exit code."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(preload))

    def run(target: Callable[..., object], *args: object) -> int | None:
        process = context.Process(target=target, args=args)
        process.start()
        join(process, seconds=600)
        return process.exitcode

    return run
