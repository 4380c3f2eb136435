"""Kills drivers at chosen steps of chosen windows."""

import os
import signal
import threading
from dataclasses import dataclass

from dagkit.engine.points import Point

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
