"""A run is an ordered list of parts. The loop and the committer know the protocol of a part, and no feature.

`RunState` lists the parts. A step of the run calls all of them in the order of the list. Two steps call them in the
opposite order: parts begin after those that they feed, and an answer passes back through the parts that made its task.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dagkit.engine.parts.in_flight import InFlightWindow
from dagkit.engine.parts.wants import Action, Want, Wants
from dagkit.engine.program.failures import OperatorFailed, WindowLost
from dagkit.engine.program.program import Program
from dagkit.engine.record.checkpoint import Checkpoint
from dagkit.engine.work.item import WorkItem
from dagkit.engine.worker.protocol import Answer, WindowTask

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
    def given(self) -> Sequence[WorkItem]:
        """The work that its discoveries added to the queue."""
        return self.window.arrived.work


class RunPart:
    """A part of a run; it overrides the steps that concern it."""

    def begin(self) -> None:
        """Prepare for the first window. Called in the opposite order, so that outputs are there before inputs."""

    # ---- deciding

    def read_requests(self) -> None:
        """Read what users request."""

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
