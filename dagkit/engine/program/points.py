"""The points of a window at which a run may be killed."""

from collections.abc import Callable
from enum import StrEnum


class Point(StrEnum):
    """The steps of a window, in order: after each of them a run may be killed, and nothing is lost or doubled."""

    PLANNED = "planned"
    """The window is planned and has not run. It is promised if no older window is in flight."""
    RUNNING = "running"
    """The backend has its task."""
    STAGED = "staged"
    """All its pieces are staged, and none is committed."""
    APPENDED = "appended"
    """The window is committed, and its files are not in place."""
    HALF_FINISHED = "half-finished"
    """Some of its files are in place."""
    DELIVERED = "delivered"
    """Its files are in place and external systems have its entries; neither is noted."""
    RECEIPTED = "receipted"
    """The receipts that are due are written, too, which is not noted."""
    FINISHED = "finished"
    """All this is noted, and its staged pieces are removed."""


Probe = Callable[[Point, int], None]
"""Called at each point of each window; an exception that it raises ends the run there, as a crash would."""
