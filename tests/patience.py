"""How long tests wait: one factor for every limit, since machines differ in speed and in what else they do.

A limit only ends what would hang: no test passes or fails by its length. `DAGKIT_PATIENCE` is the factor; without it,
the start of a test run measures this machine. dagkit multiplies the limits for its own processes by it, too.
"""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Final

_STEPS: Final = 800_000
_USUAL_SECONDS: Final = 0.05
"""What as many steps take on a usual machine that does nothing else."""


def _measured() -> float:
    """Twice the time that this machine takes compared with a usual one, and at least 2: tests run side by side."""
    began = time.perf_counter()
    for _ in range(_STEPS):
        pass
    return 2 * max(1.0, (time.perf_counter() - began) / _USUAL_SECONDS)


PATIENCE: Final = float(os.environ.setdefault("DAGKIT_PATIENCE", f"{_measured():.1f}"))

PATIENT: Final = {"DAGKIT_PATIENCE": str(PATIENCE)}
"""For the environment of a process that does not get the one of the tests."""

LONG_WINDOWS: Final = {"DAGKIT_ATTR__STREAMING_WINDOW_SIZE_MILLIS": "60000"}
"""The environment of a launch whose work fits into one window, however slow the machine is."""


def within(seconds: float) -> float:
    """The limit for what takes much less than these seconds on a usual machine."""
    return seconds * PATIENCE


def join(*ending: threading.Thread | BaseProcess, seconds: float = 30) -> None:
    """Wait until threads or processes have ended; fail if one does not end."""
    until = time.monotonic() + within(seconds)
    for each in ending:
        each.join(max(0.0, until - time.monotonic()))
        assert not each.is_alive(), f"{each} did not end within {within(seconds):.0f} s"


@contextmanager
def ended_within(seconds: float) -> Iterator[None]:
    """Raise TimeoutError for a hang."""

    def over(_: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"nothing ended within {seconds:.0f} s, in {frame}")

    before = signal.signal(signal.SIGALRM, over)
    left, _ = signal.setitimer(signal.ITIMER_REAL, seconds)  # of the limit of the whole test
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, left)
