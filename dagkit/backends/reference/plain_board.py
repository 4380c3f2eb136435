"""Handovers in the reference. Its partitions run one after the other: one gives work to those that run later."""

from collections.abc import Callable
from dataclasses import dataclass, field

from dagkit.engine.work.handover import Handover


@dataclass
class PlainBoard:
    """The work that the partitions of one window hand over. A test decides when, and what is lost on its way."""

    asks: Callable[[], bool]
    """Whether a partition is to give work away; called after each item that it sends."""
    loses: Callable[[], bool]
    """Whether the board loses a handover; called for each."""
    offered: list[Handover] = field(default_factory=list)
    """The handovers that no partition has taken."""

    def offer(self, handover: Handover) -> None:
        """Keep work for a later partition, unless it is lost."""
        if not self.loses():
            self.offered.append(handover)

    def taken(self, into: str) -> Handover | None:
        """Return and remove the oldest work for an input; None if there is none."""
        found = next((each for each in self.offered if each.into == into), None)
        if found is not None:
            self.offered.remove(found)
        return found
