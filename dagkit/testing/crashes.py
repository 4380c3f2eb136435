"""Simulated crashes: end a run at a chosen step of a chosen window, as if its process had been killed there."""

from collections.abc import Callable
from dataclasses import dataclass
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
