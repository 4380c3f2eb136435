"""Crashes as values: a run that ends at a chosen step of a chosen window, as if its process had been killed there."""

from dataclasses import dataclass

from dagkit.engine.points import Point


class Crash(BaseException):
    """The run ends here. Nothing in dagkit catches it, as nothing catches a kill."""


@dataclass(frozen=True, slots=True)
class CrashAfter:
    """Given to a launch as its `probe`, it ends the run after this step of this window, or of any."""

    point: Point
    window_id: int | None = None

    def __call__(self, point: Point, window_id: int) -> None:
        if point is self.point and self.window_id in (None, window_id):
            raise Crash(f"after {point} of window {window_id}")
