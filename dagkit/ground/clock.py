"""Clocks: values that return the time, so that a test can set it. Limits: how long dagkit waits for an answer."""

import math
import os
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol

PATIENCE = "DAGKIT_PATIENCE"
"""The environment variable with the factor of all limits that only end a hang: a loaded machine needs more than 1."""


def patient(seconds: float) -> float:
    """Multiply a limit that only ends a hang by DAGKIT_PATIENCE, or by 1 unless that is a positive number.

    Do not use it for a time that has a meaning, such as the length of a window.
    """
    try:
        factor = float(os.environ.get(PATIENCE, "1"))
    except ValueError:
        return seconds
    return seconds * factor if math.isfinite(factor) and factor > 0 else seconds


class Clock(Protocol):
    """A source of the current time. Instants are aware and in UTC."""

    def now(self) -> datetime: ...


class Timer(Clock, Protocol):
    """A clock on which a thread can wait."""

    def wait(self, woken: threading.Event, until: datetime) -> None:
        """Block until the instant, or until the event is set."""


class SystemClock:
    """The machine's clock, except that it never runs backwards. If its time is set back, the monotonic time counts."""

    def __init__(
        self, wall: Callable[[], datetime] = lambda: datetime.now(UTC), elapsed: Callable[[], float] = time.monotonic
    ) -> None:
        self._wall = wall
        self._elapsed = elapsed
        self._latest = wall(), elapsed()
        """The latest instant returned, and the monotonic time at it."""

    def now(self) -> datetime:
        instant, then = self._latest
        wall, elapsed = self._wall(), self._elapsed()
        now = max(wall, instant + timedelta(seconds=elapsed - then))
        # In one assignment: another thread must not combine an instant with the elapsed time of another one.
        self._latest = now, elapsed
        return now

    def wait(self, woken: threading.Event, until: datetime) -> None:
        woken.wait(max(0.0, (until - self.now()).total_seconds()))
