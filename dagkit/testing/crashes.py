"""Simulated crashes: end a run at a chosen step of a chosen window, as if its process had been killed there."""

from dataclasses import dataclass

from dagkit.engine.points import Point


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
