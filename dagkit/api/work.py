"""Work: the elements that splittable operators are given, what they say of their source, and where they are stopped."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from math import isfinite
from typing import Annotated, Any, ClassVar, Generic, Protocol, Self, cast

from pydantic import Field
from typing_extensions import TypeIs, TypeVar

from dagkit.api.operators import Operator
from dagkit.api.ports import input_ports
from dagkit.ranges import (
    OFFSET_INFINITY,
    ByteKeyRange,
    ByteKeyRestrictionTracker,
    OffsetRange,
    OffsetRestrictionTracker,
    RestrictionTracker,
    WatermarkEstimator,
)

T = TypeVar("T")
R = TypeVar("R", default=OffsetRange)
"""What part of the work on an element is: a range of offsets, of keys, or what an author makes of it."""


class Placed(Protocol):
    """A payload that has a name: messages and the ledger call it so, instead of by all that it holds."""

    @property
    def source(self) -> str:
        """The identity of what is read, under which the ledger knows it."""

    def place(self, position: int | None) -> str:
        """A position in words, such as `topic/3 @ 1200`; for None, the element as a whole."""


class Sourced(Placed, Protocol):
    """A payload that is a numbered stretch of a source.

    An input operator that emits such payloads has each of them recorded in the ledger as a stretch that is to be read
    once. Output files may be whole with one: `files.open(name, block=element.number)`. A payload that is not sourced
    is recorded from the window on that it joins the work of an operator; its name is its own JSON, or its `source` if
    it is `Placed`.
    """

    @property
    def number(self) -> int:
        """Identifies it among all elements of the same input; its output files are named by this."""

    @property
    def start(self) -> int:
        """The first position."""

    @property
    def end(self) -> int:
        """The position after the last one; OFFSET_INFINITY if there is no end."""

    @property
    def source_size(self) -> int | None:
        """How long the whole source is, if that is known and will not change."""

    def part(self, start: int, end: int) -> Self:
        """The same element, narrowed to a part of its stretch."""


_MEMBERS = ("source", "place", "number", "start", "end", "source_size", "part")
_sourced: dict[type, bool] = {}


def is_sourced(element: object) -> TypeIs[Sourced]:
    """Whether a payload is a stretch of a source; each type is looked at once, for all of its elements are alike."""
    kind = type(element)
    if kind not in _sourced:
        _sourced[kind] = all(hasattr(element, member) for member in _MEMBERS)
    return _sourced[kind]


def is_placed(element: object) -> TypeIs[Placed]:
    """Whether a payload has a name of its own."""
    return isinstance(getattr(element, "source", None), str) and hasattr(element, "place")


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of one file, or of what else the reader knows by a path, half-open: from `start` up to `end`."""

    block_id: int
    path: str
    """The file, or what else the reader understands."""
    start: int
    end: int
    last: bool = False
    """Whether the source ends with this block."""
    version: str = ""
    """Distinguishes a source that changed and is read again from its earlier version; empty at the first reading."""
    facts: Mapping[str, Any] | None = None
    """What else the finder wants the reader to know, as JSON: how long the source was, when it changed."""
    previous_block_id: Annotated[int | None, Field(exclude_if=lambda number: number is None)] = None
    """The block that ends where this one starts; None for the first of a source, and where the finder notes none.

    A reader that has just read that block may reuse its open stream. Stored blocks omit the field if it is None.
    """

    @property
    def source(self) -> str:
        """Under what name the ledger knows what was read."""
        return f"{self.path}@{self.version}" if self.version else self.path

    @property
    def number(self) -> int:
        """Its id."""
        return self.block_id

    @property
    def source_size(self) -> int | None:
        """How long the file was when it was split, if its finder noted that."""
        return (self.facts or {}).get("length")

    def place(self, position: int | None) -> str:
        """The file and the byte."""
        if position is None:
            return f"{self.path}, in block {self.block_id} [{self.start}, {self.end})"
        return f"{self.path}, byte {position} (block {self.block_id})"

    def part(self, start: int, end: int) -> "Block":
        """A part of its bytes; only one that reaches the end of the block may be the last of its file."""
        previous = self.previous_block_id if start == self.start else None
        return replace(self, start=start, end=end, last=self.last and end == self.end, previous_block_id=previous)


class SplittableOperator(Operator, Generic[T, R]):
    """Works through part of what an element stands for, claim by claim, and can be stopped between any two claims.

    It stands anywhere in a graph, and its elements are of any payload. An author says what of an element there is to
    do, a restriction, and writes `process` with a claim loop. When the window is over, the engine takes back what
    is not claimed and hands it out again, to any slot. Work without an end is work like any other.

    A restriction is a range of offsets, `SplittableOperator[T]`, a range of byte keys, `SplittableOperator[T,
    ByteKeyRange]`, or of a type of the author's own, `SplittableOperator[T, R]` with `restriction_type = R` and a
    `tracker`. It may be cut wherever its tracker grants that: the parts must come to the same as the whole. What cannot
    be cut has an `UnsplittableRestrictionTracker`.

    Side values come in by further inputs, which have methods of their own; those of a window are all there before its
    work begins.
    """

    served_by_engine = True
    """Its `process` is given a tracker besides, which only the engine makes; another input has a method of its own."""

    reads_positions: ClassVar[bool] = True
    """Whether its offsets are positions of what it reads, bytes of files above all, and are counted as what was read.

    False where they only number steps, such as looks at a folder.
    """

    restriction_type: ClassVar[Any] = OffsetRange
    """The type of its restrictions, where that is an author's own; ranges of offsets and of keys need no word.

    The ledger keeps what waits as JSON, as this type is written. Values of it read back equal.
    """

    def initial_restriction(self, element: T) -> R | tuple[int, int]:
        """The whole work that an element stands for; a pair of integers is a range of offsets.

        A range of offsets that stops at OFFSET_INFINITY has no end.

        It is asked when the element joins the queue, on the driver or in a slot, without `setup`; after a crash it may
        be asked again, and what it says then may have grown. A sourced element is not asked: its work is its stretch.
        """
        if is_sourced(element):
            return cast("R", OffsetRange(element.start, element.end))  # a stretch has no other restriction
        raise NotImplementedError(
            f"{type(self).__name__} must say what of a {type(element).__name__} is to be done: write "
            "initial_restriction(self, element), which gives a range, such as (0, size)"
        )

    def split(self, element: T, restriction: R) -> Iterable[R | tuple[int, int]]:  # noqa: ARG002 - for overrides
        """The work in parts that are the whole, in order, so that many slots can begin at once; here the whole is one.

        What is dealt unevenly is cut besides, and what is not done in a window is split off: this is for elements of
        which it is known beforehand that they are large.
        """
        yield restriction

    def size(self, element: T, restriction: R) -> float:
        """How much work it is, in a unit that all elements of this operator share; of work without an end, 0.

        Here: the offsets, or of another restriction what its tracker calls the work remaining.
        """
        if isinstance(restriction, OffsetRange):
            return float(restriction.size) if restriction.is_bounded() else 0.0
        remaining = self.tracker(element, restriction).current_progress().remaining
        return remaining if isfinite(remaining) else 0.0

    def truncate(self, element: T, restriction: R) -> R | None:
        """What of it is still done when the application drains; the rest waits for a later launch.

        Of offsets, any part from the start on; of another restriction, all or nothing. Here: all of what has an end,
        and of what has none, nothing.
        """
        if isinstance(restriction, OffsetRange):
            is_bounded = restriction.is_bounded()
        else:
            is_bounded = self.tracker(element, restriction).is_bounded()
        return restriction if is_bounded else None

    def tracker(self, element: T, restriction: R) -> RestrictionTracker[R, Any]:
        """What guards the work on a restriction, and says where it may be cut."""
        kind = _TRACKERS.get(type(restriction))
        if kind is None:
            raise NotImplementedError(
                f"{type(self).__name__} must say what guards a {type(restriction).__name__}: write "
                f"tracker(self, element, restriction), which gives a RestrictionTracker, for {element!r:.80}"
            )
        return kind(restriction)

    def watermark(self, element: T, reached: datetime | None) -> WatermarkEstimator | None:  # noqa: ARG002 - as above
        """The estimator of how far event time has come in an element; by default there is none.

        Called before `process`, which lets the estimator observe the times of what it reads, so the operator keeps it.
        `reached` is the event time at which earlier work on this element stopped; the new estimator resumes from it.
        """
        return None

    @abstractmethod
    def process(self, element: T, tracker: RestrictionTracker[R, Any]) -> Iterator[Any] | None:
        """Claim, work on what was granted, and return at the first refusal; items and batches may be yielded.

        `tracker.current_restriction()` is what to do; a range says by its `start` where to begin. Where there is
        nothing to do yet, defer the rest with `tracker.defer_remainder(delay)` and return: it comes back when the time
        has come.
        """


_TRACKERS: dict[type, Callable[[Any], RestrictionTracker[Any, Any]]] = {
    OffsetRange: OffsetRestrictionTracker,
    ByteKeyRange: ByteKeyRestrictionTracker,
}
"""What guards the restrictions that need no tracker of their author's."""


def work_port(operator: SplittableOperator[Any, Any]) -> str:
    """The input whose elements are worked through claim by claim: the main one, else the first."""
    ports = input_ports(type(operator))
    return next((name for name, port in ports.items() if port.main), next(iter(ports)))


__all__ = [
    "OFFSET_INFINITY",
    "Block",
    "Placed",
    "Sourced",
    "SplittableOperator",
    "is_placed",
    "is_sourced",
    "work_port",
]
