"""A run is an ordered list of parts. The loop and the committer know the protocol of a part, and no feature.

`RunParts` lists the parts. A step of the run calls all of them in the order of the list. Two steps call them in the
opposite order: parts begin after those that they feed, and an answer passes back through the parts that made its task.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from typing import Any

from dagkit.engine.parts.in_flight import InFlightWindow
from dagkit.engine.program.failures import OperatorFailed, WindowLost
from dagkit.engine.program.program import Program
from dagkit.engine.record.checkpoint import Checkpoint
from dagkit.engine.work.item import WorkItem
from dagkit.engine.worker.protocol import Answer, WindowTask


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


Saved = Mapping[str, Any]
"""Fields of a checkpoint, by name."""


@dataclass(frozen=True, slots=True)
class EndedWindow:
    """One window that ended, and is to be committed."""

    window: InFlightWindow
    answer: Answer
    program: Program
    """The program that the window ran."""
    before: Checkpoint
    """The checkpoint of the window before it."""
    at: datetime
    """When the driver received the answer."""

    @property
    def window_id(self) -> int:
        return self.window.window_id

    @property
    def task(self) -> WindowTask:
        """The last attempt at it."""
        return self.window.task

    @property
    def discovered(self) -> Sequence[WorkItem]:
        """The work that its discoveries added to the queue."""
        queued = self.window.queued
        return queued.work


class RunPart:
    """A part of a run; it overrides the steps that concern it."""

    def begin(self) -> None:
        """Prepare for the first window. Called in the opposite order, so that outputs are there before inputs."""

    # ---- deciding

    def take_news(self) -> None:
        """Take in what users request, and what other threads found. Called at each step, at least once a second."""

    def wants(self, now: datetime, known: Wants) -> Iterator[tuple[Want, datetime]]:
        """Yield what the part wants of the loop, and from when on. `known` is what the parts before it want."""
        yield from ()

    def review(self, action: Action) -> bool:
        """Review the next action. Return whether the part now wants something else, so the loop must decide again."""
        return False

    def perform(self, action: Action) -> None:
        """Perform an action that is the part's: `Look`, `Change`, `Resume` or `Finish`."""

    # ---- one window

    def before(self, window: InFlightWindow) -> None:
        """Add to a window that is to start: to its task, its work and its promise."""

    def again(self, window: InFlightWindow, task: WindowTask, error: OperatorFailed | WindowLost) -> WindowTask:
        """Return the task of the next attempt at a window that failed. Raise if there is none."""
        return task

    def receive(self, window: InFlightWindow, answer: Answer) -> Answer:
        """Return the answer of an ended window as the run continues with it. Raise if it must run again.

        Called in the opposite order.
        """
        return answer

    def is_changed_by(self, window: InFlightWindow, answer: Answer) -> bool:
        """Whether a window must be committed, although it only polled."""
        return False

    def drop(self, window: InFlightWindow, answer: Answer) -> None:
        """Continue after a window that had no effect: it is not committed, and the next one takes its number."""

    def after(self, ended: EndedWindow, saved: Saved) -> Saved:
        """Return the part's fields of the next checkpoint. `saved` has the fields of the parts before it.

        Pure, but for the staged pieces that `Outputs` checks and may join: nothing is committed yet.
        """
        return {}

    def committed(self, ended: EndedWindow, checkpoint: Checkpoint) -> None:
        """Continue from a committed window. This calls no code of authors, and does not fail."""

    def announce(self, ended: EndedWindow, checkpoint: Checkpoint) -> None:
        """Notify others of a committed window: operators, users and observers."""

    # ---- the end

    def end(self) -> None:
        """End without a failure; all windows are committed, or abandoned."""

    def failed(self, error: BaseException) -> None:
        """End after a failure."""

    def overtaken(self) -> None:
        """Remove what no run will commit, after another driver has taken over. All threads of the run have ended."""

    def close(self) -> None:
        """Release what the part holds; called last, after `end` or `failed`."""
