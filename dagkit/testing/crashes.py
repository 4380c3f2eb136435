"""Simulated crashes, as if a process had been killed at a chosen step of a chosen window; and simulated time."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from dagkit.engine.program.points import Point, Probe

T = TypeVar("T")


class Crash(BaseException):
    """Ends the run. dagkit never catches it, as it cannot catch a kill."""


@dataclass(frozen=True, slots=True)
class CrashAfter:
    """A `probe` for a launch: ends the run after this step of this window, or of the first that reaches it."""

    point: Point
    window_id: int | None = None

    def __call__(self, point: Point, window_id: int) -> None:
        if point is self.point and self.window_id in (None, window_id):
            raise Crash(f"after {point} of window {window_id}")


class Crashes:
    """Ends a run after one step of each of its windows, and launches it again each time.

    The pytest fixture `crashes` runs a test once for each step, with one of these.
    """

    def __init__(self, point: Point) -> None:
        self.point = point
        self.windows: list[int] = []
        """The windows in which the run was ended."""

    def __call__(self, launch: Callable[[Probe], T]) -> T:
        """Call `launch` with a probe until it returns; each call resumes what the previous one left."""
        while True:
            try:
                return launch(self._probe)
            except Crash:
                pass

    def _probe(self, point: Point, window_id: int) -> None:
        if point is self.point and window_id not in self.windows:
            self.windows.append(window_id)
            CrashAfter(point)(point, window_id)

    def __repr__(self) -> str:
        return f"Crashes({self.point})"


class FakeClock:
    """Returns the same time until `advance` or `set_to` changes it."""

    def __init__(self, start: datetime = datetime(2024, 1, 1, tzinfo=UTC)) -> None:
        assert start.tzinfo is not None, "a clock returns aware instants"
        self._now = start.astimezone(UTC)

    def now(self) -> datetime:
        return self._now

    def advance(self, *, seconds: float = 0.0, millis: int = 0) -> datetime:
        """Move the time forward, and return it."""
        self._now += timedelta(seconds=seconds, milliseconds=millis)
        return self._now

    def wait(self, woken: threading.Event, until: datetime) -> None:
        """Move the clock forward by this time, and return at once."""
        if not woken.is_set() and until > self._now:
            self._now = until

    def set_to(self, instant: datetime) -> None:
        """Set the time, also backwards, as the clock of a machine may do."""
        assert instant.tzinfo is not None, "a clock returns aware instants"
        self._now = instant.astimezone(UTC)
