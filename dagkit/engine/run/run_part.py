"""A run is an ordered list of parts. The loop and the committer know the protocol of a part, and no feature."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dagkit.engine.checkpoint.checkpoint import Checkpoint
from dagkit.engine.program.program import Program
from dagkit.engine.run.in_flight import InFlightWindow
from dagkit.engine.worker.protocol import Answer

Saved = Mapping[str, Any]
"""Fields of a checkpoint, by name."""


@dataclass(frozen=True, slots=True)
class EndedWindow:
    """One window that ended, and is committed."""

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


class RunPart:
    """A part of a run. The run calls each method on all parts, in order; a part overrides those that concern it."""

    def after(self, ended: EndedWindow, saved: Saved) -> Saved:  # noqa: ARG002 - for parts that override it
        """Return the part's fields of the next checkpoint. Pure. `saved` has the fields of the parts before it."""
        return {}

    def committed(self, ended: EndedWindow, checkpoint: Checkpoint) -> None:
        """Continue from a window that was committed, and its checkpoint."""
