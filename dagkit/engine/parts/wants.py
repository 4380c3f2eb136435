"""What the parts of a run want of the loop, and the actions that the loop performs."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto


class Want(Enum):
    """What a part of a run may want of the loop: a reason to start a window, to wait or to stop."""

    WAKE = auto()
    """The loop must decide again then, whatever it waits for."""
    RESUME = auto()
    """The next attempt at the oldest window begins then, and no other window before it."""
    FINISH = auto()
    """Files of the last commit are to be put in place, or an external system is to be connected or served."""
    BESIDE = auto()
    """Only a delivery is to be finished, and its systems are there: a window may run meanwhile."""
    ALONE = auto()
    """The next window needs what the previous one leaves, so that only one may be in flight."""
    REQUEST = auto()
    """A user asks to give up or to retry work; this is done when a window starts, even a promised one."""
    CHANGE = auto()
    """The application is to be changed before the next window."""
    PROMISED = auto()
    """A window was promised before a crash, and must run first."""
    WORK = auto()
    """Work of the queue is due."""
    WINDOW = auto()
    """A window is wanted without work of the queue."""
    ENOUGH = auto()
    """Inputs need not look for more now."""
    LOOK = auto()
    """An input operator looks for more then."""
    BUSY = auto()
    """Work of an input operator runs in the background; the loop is woken when it ends."""
    MORE = auto()
    """More input may come, so that the run does not end."""
    DEFERRED = auto()
    """Deferred work that the run waits for is due then."""
    EMPTY = auto()
    """A window is wanted then although no work waits, to close an application window or to complete a file."""
    CLOSE = auto()
    """A window must run before the run ends."""
    LAST = auto()
    """That window is to notify operators that no more input is expected for now."""


Wants = Mapping[Want, datetime]
"""What the parts want, and the first instant at which one of them does."""


@dataclass(frozen=True, slots=True)
class Finish:
    """Put the files of the last commit in place, and deliver what it staged to external systems."""


@dataclass(frozen=True, slots=True)
class Commit:
    """Commit the oldest window in flight, which has ended."""


@dataclass(frozen=True, slots=True)
class Resume:
    """Begin the attempt at the oldest window that was put off."""


@dataclass(frozen=True, slots=True)
class Look:
    """Let the input operators that are due look for more."""


@dataclass(frozen=True, slots=True)
class Start:
    """Start the next window."""

    last: bool = False
    """Whether no more input is expected for now."""


@dataclass(frozen=True, slots=True)
class Change:
    """Apply the requested changes: no window is in flight, and none is promised."""


@dataclass(frozen=True, slots=True)
class Await:
    """Wait until the oldest window in flight has ended, or until an instant."""

    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Sleep:
    """Wait until an instant: there is nothing to do."""

    until: datetime


@dataclass(frozen=True, slots=True)
class Stop:
    """End the run.

    Everything is committed and in place, except what an unavailable system is to take, and the windows in flight that
    a run abandons because they did not end after the request to stop.
    """


Action = Finish | Commit | Resume | Look | Start | Change | Await | Sleep | Stop
