"""Handovers: work that a busy slot passes to an idle slot of the same window.

The giver reports each handover as given, and the taker as taken. The driver compares both reports when the window ends
(`engine/parts/handovers.py`), so a handover may be lost on its way at any time.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from dagkit.engine.program.address import Address
from dagkit.engine.work.item import WorkItem

LEAST_HANDED_MILLIS: Final = 100.0
"""A slot with less work left gives none of it away: half of it is not worth another piece of a file."""


@dataclass(frozen=True, slots=True)
class Handover:
    """Work that one slot passed to another."""

    token: str
    """Random; no two handovers have the same."""
    into: Address
    slot: int
    """The slot that gave it."""
    work: tuple[WorkItem, ...]
    cut_from: int | None = None
    """The start of the item that the work was split from; None if the slot had not begun these items."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The progress of a slot in its work on one input."""

    name: str | None = None
    """The element that it processes, by its name in the ledger."""
    fraction: float | None = None
    """The part of that element that is done."""
    millis: float = 0.0
    """The time since it began that element."""
    left_millis: float | None = None
    """An estimate of the time until it is idle; None while nothing is measured."""
    done: int = 0
    """How many positions it has processed in the window, of all elements."""


@dataclass(frozen=True, slots=True)
class SlotStanding:
    """The progress of one slot of a window."""

    window_id: int
    into: Address
    slot: int
    standing: Standing


class Giver(Protocol):
    """A slot that works on one input. Another thread than that of the work calls it."""

    def give(self) -> Handover | None:
        """Give half of the remaining work away; None if there is nothing worth it."""

    def standing(self) -> Standing:
        """The present progress."""


class BoardLink(Protocol):
    """The connection of one slot and input to the board. If it is cut, the slot works as without a board."""

    @property
    def hands_over(self) -> bool:
        """Whether the slot may get work and give it away; otherwise it only reports its progress."""

    @property
    def is_up(self) -> bool:
        """Whether the slot reaches the board, and hands over."""

    def open(self, giver: Giver) -> None:
        """Announce that the slot begins its work."""

    def more(self, until: Callable[[], bool]) -> Handover | None:
        """Wait until the slot gets work of another one. Return None if it gets none, or once `until` is true."""

    def close(self) -> None:
        """Announce that the slot has ended its work."""


class NoBoard:
    """The link of a slot without a board."""

    hands_over: Final = False
    is_up: Final = False

    def open(self, giver: Giver) -> None:
        """Do nothing."""

    def more(self, until: Callable[[], bool]) -> Handover | None:  # noqa: ARG002 - it does not wait
        """Return None: there is no other work."""
        return None

    def close(self) -> None:
        """Do nothing."""
