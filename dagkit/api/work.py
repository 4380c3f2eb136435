"""Work: the blocks that input operators find, and the operators that read them and can be stopped at any position."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from dagkit.api.operators import Operator
from dagkit.api.ports import input_ports
from dagkit.ranges import OFFSET_INFINITY, OffsetRange, OffsetRestrictionTracker, RestrictionTracker

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of one source, half-open: the positions from `start` up to, not including, `end`."""

    block_id: int
    path: str
    """The source: a file, a topic, whatever the reader understands."""
    start: int
    end: int
    last: bool = False
    """Whether the source ends with this block."""
    version: str = ""
    """What tells a source that changed, and is read again, from what it was before; empty at the first reading."""
    facts: Mapping[str, Any] | None = None
    """What else the finder wants the reader to know, as JSON: how long the source was, when it changed."""

    @property
    def source(self) -> str:
        """Under what name the ledger knows what was read."""
        return f"{self.path}@{self.version}" if self.version else self.path


class SplittableOperator(Operator, Generic[T]):
    """Works through part of what an item stands for, claim by claim, and can be stopped between any two claims.

    An author writes `process` with a claim loop. When the window is over, the engine takes back what is not claimed
    and hands it out again, to any slot.
    """

    served_by_engine = True
    """Its `process` is given a tracker besides, which only the engine makes; another input has a method of its own."""

    def initial_restriction(self, element: T) -> OffsetRange:
        """The whole work that an item stands for; that of a Block is its stretch."""
        if isinstance(element, Block):
            return OffsetRange(element.start, element.end)
        raise NotImplementedError(f"{type(self).__name__} must say what of a {type(element).__name__} is to be read")

    def cut_near(self, element: T, position: int) -> int | None:  # noqa: ARG002 - for whoever must look at it
        """Where an element's work may be cut before anybody began it: at this position, near it, or, as here, nowhere.

        A reader that understands any stretch of its source, wherever it begins, gives the position back.
        """
        return None

    def tracker(self, restriction: OffsetRange) -> RestrictionTracker[OffsetRange, int]:
        """What guards the work on a restriction."""
        return OffsetRestrictionTracker(restriction)

    @abstractmethod
    def process(self, element: T, tracker: RestrictionTracker[OffsetRange, int]) -> Iterator[Any] | None:
        """Claim, work on what was granted, and return at the first refusal; items and batches may be yielded."""


def work_port(operator: SplittableOperator[Any]) -> str:
    """The input whose elements are worked through claim by claim: the main one, else the first."""
    ports = input_ports(type(operator))
    return next((name for name, port in ports.items() if port.main), next(iter(ports)))


__all__ = ["OFFSET_INFINITY", "Block", "SplittableOperator", "work_port"]
