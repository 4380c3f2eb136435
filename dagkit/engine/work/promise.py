"""The promise of a window, so that after a crash the window runs again with the same work."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from dagkit.engine.address import Address
from dagkit.engine.facts import Split
from dagkit.engine.work.item import WorkItem

PromisedItem = tuple[tuple[int, ...], int, int]
"""A stretch of a work item: its number, where it starts and where it ends."""


class WindowPromise(BaseModel):
    """A planned window, as the ledger keeps it until the window is committed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    deal: Mapping[Address, tuple[tuple[PromisedItem, ...], ...]]
    """The work of each slot, by the input that it goes into."""
    lasts_millis: float
    cuts: tuple[Split, ...] = ()
    """The splits that were made to share the work."""
    last: bool = False
    """Whether this window notifies operators that no more input is expected for now."""
    divided: tuple[tuple[WorkItem, WorkItem], ...] = ()
    """The items that operators divided for it, in order: a second division might differ."""

    def as_notes(self) -> dict[str, Any]:
        """The promise as plain data, for the ledger."""
        notes: dict[str, Any] = self.model_dump(mode="json")
        return notes
