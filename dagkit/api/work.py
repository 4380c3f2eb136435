"""Work: splittable operators, the elements that they process, and the restrictions that bound it."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime
from inspect import isclass
from math import isfinite
from typing import Annotated, Any, ClassVar, Generic, Protocol, Self, cast, runtime_checkable

from pydantic import Field
from typing_extensions import TypeIs, TypeVar

from dagkit.api.operators import Operator
from dagkit.api.ports import input_ports
from dagkit.ground.amounts import BYTE
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
"""The type of a restriction, which is a part of the work on an element: offsets, keys, or a type of the author."""


class Placed(Protocol):
    """A payload with a name, which messages and the ledger use instead of its whole content."""

    @property
    def source(self) -> str:
        """The identity of the source that is read. The ledger records it."""

    def place(self, position: int | None) -> str:
        """A position as text, such as `topic/3 @ 1200`; for None, the whole element."""


class Sourced(Placed, Protocol):
    """A payload that is a numbered range of positions of a source.

    If an input operator emits it, the ledger records that this range is to be read once. An output file can belong to
    it: `files.open(name, block=element.number)`.

    A payload that is not `Sourced` is recorded from the window in which it joins the work of an operator. Its name is
    its `source` if it is `Placed`, else its JSON.
    """

    @property
    def number(self) -> int:
        """The ID of the element, which is unique among all elements of an input."""

    @property
    def start(self) -> int:
        """The first position."""

    @property
    def end(self) -> int:
        """The position after the last one; OFFSET_INFINITY if there is no end."""

    @property
    def source_size(self) -> int | None:
        """The size of the whole source; None if it is unknown or may change."""

    def part(self, start: int, end: int) -> Self:
        """The element, reduced to a part of its range."""


_MEMBERS = ("source", "place", "number", "start", "end", "source_size", "part")
_sourced: dict[type, bool] = {}


def is_sourced(element: object) -> TypeIs[Sourced]:
    """Whether a payload is `Sourced`. The answer is cached for its type."""
    kind = type(element)
    if kind not in _sourced:
        _sourced[kind] = all(hasattr(element, member) for member in _MEMBERS)
    return _sourced[kind]


def is_placed(element: object) -> TypeIs[Placed]:
    """Whether a payload is `Placed`."""
    return isinstance(getattr(element, "source", None), str) and hasattr(element, "place")


@dataclass(frozen=True, slots=True)
class Block:
    """The positions of a source, such as a file, from `start` up to, not including, `end`."""

    block_id: int
    path: str
    """The path of a file, or another name that the reader understands."""
    start: int
    end: int
    last: bool = False
    """Whether the source ends with this block."""
    version: str = ""
    """The version of a source that changed and is read again; empty for its first version."""
    facts: Mapping[str, Any] | None = None
    """Further facts for the reader, as JSON, such as the length of the source and the time of its last change."""
    previous_block_id: Annotated[int | None, Field(exclude_if=lambda number: number is None)] = None
    """The block that ends where this one starts; None for the first of a source, or if the finder does not set it.

    A reader that has just read that block may reuse its open stream. Stored blocks omit the field if it is None.
    """

    @property
    def source(self) -> str:
        """The path, with the version if there is one. The ledger records it."""
        return f"{self.path}@{self.version}" if self.version else self.path

    @property
    def number(self) -> int:
        """The ID of the block."""
        return self.block_id

    @property
    def source_size(self) -> int | None:
        """The length of the file when it was split into blocks; None if `facts` does not contain it."""
        return (self.facts or {}).get("length")

    def place(self, position: int | None) -> str:
        """The path and the byte at a position as text; for None, the path and the range of the block."""
        if position is None:
            return f"{self.path}, in block {self.block_id} [{self.start}, {self.end})"
        return f"{self.path}, byte {position} (block {self.block_id})"

    def part(self, start: int, end: int) -> "Block":
        """The block, reduced to a part of its bytes. `last` stays True only if the part ends where the block does."""
        if (start, end) == (self.start, self.end):
            return self
        # A part that begins later does not continue the previous block, so a reader must not reuse the stream of that
        # block.
        previous = self.previous_block_id if start == self.start else None
        return replace(self, start=start, end=end, last=self.last and end == self.end, previous_block_id=previous)


class SplittableOperator(Operator, Generic[T, R]):
    """An operator whose work on one element can be interrupted, split and resumed, in several slots and windows.

    The work on an element, such as reading a file, is described by a restriction, such as a range of offsets. `process`
    claims each position before it works on it. At the end of a window, the engine takes back the unclaimed rest, and
    assigns it to any slot in a later window. The work need not have an end. The operator may be anywhere in a graph,
    and its elements may be of any payload type.

    The restriction is a range of offsets for `SplittableOperator[T]`, a range of byte keys for `SplittableOperator[T,
    ByteKeyRange]`, or of an author's type for `SplittableOperator[T, R]` with `restriction_type = R` and a `tracker`.
    The tracker decides where a restriction can be split. The parts must give the same result as the whole. Work that
    cannot be split uses an `UnsplittableRestrictionTracker`.

    Further inputs can bring side values, each with its own method. All side values of a window arrive before `process`
    is called in it.
    """

    served_by_engine = True
    """True, because only the engine can create the tracker for `process`. Further inputs need their own methods."""

    reads_positions: ClassVar[bool] = True
    """Whether offsets are positions of a source, such as bytes of a file, which statistics count as read.

    Set it to False if they only number steps, such as scans of a folder.
    """

    position_unit: ClassVar[str] = ""
    """The noun for one position, in which reports count what was read and what waits, such as `offset`.

    By default, `byte` if the elements are blocks of files, else `position`.
    """

    restriction_type: ClassVar[Any] = OffsetRange
    """The type of restrictions, if it is the author's own. Ranges of offsets and of byte keys need not be declared.

    The ledger records pending restrictions as JSON of this type. A value read from this JSON must equal the original.
    """

    def initial_restriction(self, element: T) -> R | tuple[int, int]:
        """Return the restriction for all work on an element. A pair of integers is a range of offsets.

        A range of offsets with the stop OFFSET_INFINITY has no end.

        Called when the element joins the queue, on the driver or in a slot, without `setup`. After a crash it may be
        called again, and may then return more work. By default, that of a `Sourced` element is its range, and any
        other element raises NotImplementedError.
        """
        if is_sourced(element):
            return cast("R", OffsetRange(element.start, element.end))  # `R` is OffsetRange for a sourced element
        raise NotImplementedError(
            f"{type(self).__name__} does not define the work on a {type(element).__name__}: write "
            "initial_restriction(self, element), which returns a range, such as (0, size)"
        )

    def split(self, element: T, restriction: R) -> Iterable[R | tuple[int, int]]:  # noqa: ARG002 - for overrides
        """Yield the parts of a restriction, in order, so that many slots can begin at once. By default, one part.

        Override it only for elements that are known to be large: the engine itself splits work to balance the slots,
        and at the end of a window.
        """
        yield restriction

    def size(self, element: T, restriction: R) -> float:
        """The amount of work, in a unit that all elements of this operator share; 0 for work without an end.

        By default the number of offsets, or for other restrictions the remaining work that the tracker reports.
        """
        if isinstance(restriction, OffsetRange):
            return float(restriction.size) if restriction.is_bounded() else 0.0
        remaining = self.tracker(element, restriction).current_progress().remaining
        return remaining if isfinite(remaining) else 0.0

    def truncate(self, element: T, restriction: R) -> R | None:
        """The part of a restriction to process before a draining launch ends. The rest waits for a later launch.

        For a range of offsets, return any part that begins at its start, or None. For another restriction, return the
        whole or None. By default, the whole if the work has an end, else None.
        """
        if isinstance(restriction, OffsetRange):
            is_bounded = restriction.is_bounded()
        else:
            is_bounded = self.tracker(element, restriction).is_bounded()
        return restriction if is_bounded else None

    def tracker(self, element: T, restriction: R) -> RestrictionTracker[R, Any]:
        """Return the tracker of a restriction, which grants claims and decides where the restriction can be split.

        Raise NotImplementedError for restrictions of an author's type, unless overridden.
        """
        kind = _TRACKERS.get(type(restriction))
        if kind is None:
            raise NotImplementedError(
                f"{type(self).__name__} has no tracker for a {type(restriction).__name__}: write "
                f"tracker(self, element, restriction), which returns a RestrictionTracker, for {element!r:.80}"
            )
        return kind(restriction)

    @property
    def estimates_watermark(self) -> bool:
        """Whether the operator is a source of watermarks. By default, if it overrides `watermark`."""
        return type(self).watermark is not SplittableOperator.watermark

    @property
    def sources_grow(self) -> bool:
        """Whether a later element may continue the source of one that is done, such as a partition of a topic.

        If so, each source holds back the watermark where its last element left it. By default, a source ends.
        """
        return False

    def earliest(self, element: T) -> datetime | None:  # noqa: ARG002 - for overrides
        """The earliest event time that a record of an element may have; None if it is unknown.

        Until the element is begun, it holds back the watermark to this time; if it is unknown, to where it is. Called
        without `setup`.
        """
        return None

    def watermark(self, element: T, reached: datetime | None) -> WatermarkEstimator | None:  # noqa: ARG002 - as above
        """Return an estimator of the event time that is reached in an element. By default there is none.

        Called before `process`. The operator must keep the estimator, because `process` passes it the times of
        records. `reached` is the event time at which earlier work on this element stopped, and from which the estimator
        resumes; None at first.
        """
        return None

    def process_whole(self, element: T) -> Iterator[Any] | None:  # noqa: ARG002 - for overrides
        """Process a small element without claims, which take longer than the work itself; None if that is impossible.

        What is yielded must be what `process` yields for the whole element. Called instead of `process` for a `Sourced`
        element, or a part of one, that will take a few milliseconds by the time that the one before it took. Nothing
        can be split off then. By default, and if `process` is to be called, None.
        """
        return None

    def sets_aside(self, error: Exception) -> bool:  # noqa: ARG002 - for overrides
        """Whether an element at which this operator raised `error` is set aside, instead of ending the run.

        The window is then processed again without the source of the element. The ledger records what is set aside and
        why; `dagkit work retry` puts it back. Called for work with an end, after all attempts have failed. By default,
        False.
        """
        return False

    def refuse_retry(self, element: T) -> None:
        """Raise a RunFailure if an element that was set aside must not be put back, because it would be read twice.

        Called on the driver, without `setup`, when a user requests a retry. By default, nothing is refused.
        """

    @abstractmethod
    def process(self, element: T, tracker: RestrictionTracker[R, Any]) -> Iterator[Any] | None:
        """Claim a position, work on it once the claim is granted, and so on; return at the first refused claim.

        Begin at the start of `tracker.current_restriction()`. Items and batches may be yielded. If no input is
        available yet, call `tracker.defer_remainder(delay)` and return: the engine resumes the rest after the delay.
        """


_TRACKERS: dict[type, Callable[[Any], RestrictionTracker[Any, Any]]] = {
    OffsetRange: OffsetRestrictionTracker,
    ByteKeyRange: ByteKeyRestrictionTracker,
}
"""The trackers of restrictions, by type, for operators that do not override `tracker`."""


def work_port(operator: SplittableOperator[Any, Any]) -> str:
    """The name of the input whose elements `process` receives: the main one, else the first."""
    ports = input_ports(type(operator))
    return next((name for name, port in ports.items() if port.main), next(iter(ports)))


def unit_of(operator: object) -> str:
    """The unit in which reports count the positions of an operator, or of a module, which has none of its own."""
    if not isinstance(operator, SplittableOperator):
        return BYTE
    payload = input_ports(type(operator))[work_port(operator)].payload
    return operator.position_unit or (BYTE if isclass(payload) and issubclass(payload, Block) else "position")


def reads_positions(operator: object) -> bool:
    """Whether the positions of an operator are read, and not only divided for other operators."""
    return not isinstance(operator, SplittableOperator) or operator.reads_positions


__all__ = [
    "OFFSET_INFINITY",
    "Block",
    "Placed",
    "Sourced",
    "SplittableOperator",
    "is_placed",
    "is_sourced",
    "unit_of",
    "work_port",
]


@runtime_checkable
class ShowsContent(Protocol):
    """A splittable operator whose positions are those of bytes, which it opens for `dagkit trace` to show."""

    def opened_content(self, element: Any) -> AbstractContextManager[Any]:
        """Open the bytes in which the positions of an element lie; the stream has `seek` and `readinto`."""

    def decompresses(self, element: Any) -> bool:
        """Whether these bytes are the decompressed content of a file."""

    def text_of(self, element: Any, content: bytes, stream: Any) -> str:
        """The text of bytes of a record, given the stream from which they were read; other bytes are escaped."""

    def record_end(self, element: Any, start: int, stop: int) -> int:
        """The end of the record that starts at a position of these bytes; the element was read up to `stop`."""
