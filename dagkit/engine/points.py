"""The points of a window at which a run may be killed."""

from collections.abc import Callable
from enum import StrEnum


class Point(StrEnum):
    """The steps of a window, in order: after each of them a run may be killed, and nothing is lost or doubled."""

    PLANNED = "planned"
    """What it is given is decided, and nothing of it has run. It is promised where no older window is in flight."""
    RUNNING = "running"
    """Its job was handed to the backend."""
    STAGED = "staged"
    """All its pieces are written, and nothing says that they count."""
    APPENDED = "appended"
    """It is committed, and its files are not in place."""
    HALF_FINISHED = "half-finished"
    """Some of its files are in place."""
    FINISHED = "finished"
    """All of them are."""


Probe = Callable[[Point, int], None]
"""Called at each point of each window; an exception that it raises ends the run there, as a crash would."""
