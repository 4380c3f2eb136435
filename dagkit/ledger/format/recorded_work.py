"""Work as the ledger records it: ranges of sources that were found, and what each window did with them.

A root chain's slices list the discovered ranges, one to a line. Between them may stand items that the input operator
emitted and that are not ranges (`EmittedItem`). A window consumes whole root blocks. Its checkpoint lists under
`work.inputs`, for each input of a splittable operator, what root chains gave it, what else was found for it in this
window, what of all that was consumed, and what waits. From these the whole history of every position follows, whether
an input operator found it or one in the middle of the graph.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, JsonValue, NonNegativeInt, model_validator

from dagkit.ledger.format.events import DataField, DataSchema
from dagkit.ledger.format.wire import Json, Offset, Wire
from dagkit.ranges.progress import percent


class Span(Wire):
    """The range `[start, end)` of a source, or of the shares of an element; without an end it is unbounded."""

    source: str
    start: NonNegativeInt
    end: NonNegativeInt | None = None
    shares: Literal[True] | None = None
    """Whether `start` and `end` are shares. Up to November 2026 windows did not record that."""

    @model_validator(mode="after")
    def _forwards(self) -> Self:
        if self.end is not None and self.end < self.start:
            raise ValueError(f"{self} ends before it starts")
        return self

    def __str__(self) -> str:
        start, end = (percent(at) if self.shares and at is not None else at for at in (self.start, self.end))
        return f"{self.source}[{start}, {'inf' if end is None else end})"


class WorkBlock(Span):
    """A discovered range: one record of a root chain's data."""

    shares: None = None
    size: NonNegativeInt | None = None
    """The length of the whole source, if it is known and final."""
    extra: Mapping[str, Json] | None = None
    """Further values that the input operator passes to the reader."""

    @property
    def span(self) -> Span:
        return Span(source=self.source, start=self.start, end=self.end)

    def as_json(self) -> dict[str, Any]:
        """The row of the range."""
        row = super().as_json()
        # Unchanged: pydantic would write null for an infinite number.
        return row if self.extra is None else {**row, "extra": dict(self.extra)}


def block_row(
    source: str, start: int, end: int | None, size: int | None, extra: Mapping[str, JsonValue]
) -> dict[str, Any]:
    """The row of a range, as `WorkBlock` checks and writes it."""
    # For plain numbers, `WorkBlock` takes five times as long.
    numbers = [start] if end is None else [start, end]
    if size is not None:
        numbers.append(size)
    if not all(type(number) is int for number in numbers) or not 0 <= start <= min(numbers):
        return WorkBlock(source=source, start=start, end=end, size=size, extra=extra).as_json()
    row: dict[str, Any] = {"source": source, "start": start, "extra": dict(extra)}
    if end is not None:
        row["end"] = end
    if size is not None:
        row["size"] = size
    return row


class EmittedItem(Wire):
    """An item of an input operator that is not a range of a source: a record of a root chain's data, but not work."""

    offset: Offset
    port: Annotated[str, Field(min_length=1)]
    """The output port that emitted it; a row with a port is an item, a row without one is work."""
    item: Json

    def as_json(self) -> dict[str, Any]:
        """The row of the item, which may be null: that differs from an absent item."""
        return {**super().as_json(), "item": self.item}


def row_of(row: Any) -> WorkBlock | EmittedItem:
    """Parse a row of a root chain's slice."""
    is_item = isinstance(row, Mapping) and "port" in row
    return EmittedItem.model_validate(row) if is_item else WorkBlock.model_validate(row)


class Folded(Wire):
    """Elements that a window found and did, and that are recorded as a sum because they are many."""

    elements: NonNegativeInt
    positions: NonNegativeInt
    """The sum of their positions, without shares."""


class WaitingSum(Wire):
    """The amount of work that waits: the sum of all ends minus that of all starts, however the ranges are divided."""

    positions: int = 0
    shares: int = 0
    endless: NonNegativeInt = 0
    """The number of ranges without an end; the sums contain only their starts."""


class InputWork(Wire):
    """What a window did with the work of one operator's input. A range that came twice is listed twice."""

    input: Annotated[str, Field(min_length=1)]
    given: tuple[Span, ...] = ()
    """Ranges from the blocks of root chains that the window consumed."""
    found: tuple[Span, ...] = ()
    """Ranges from elsewhere: from operators in the middle of the graph, or from items of an input operator."""
    folded: Folded | None = None
    """Further elements that were found and consumed."""
    retried: tuple[Span, ...] | None = None
    """Ranges that had been set aside, and wait again."""
    consumed: tuple[Span, ...] = ()
    skipped: tuple[Span, ...] | None = None
    """Ranges that were not read because they were gone, such as messages that a broker removed."""
    aside: tuple[Span, ...] | None = None
    """Ranges that were set aside instead of being consumed; a user can retry them."""
    given_up: tuple[Span, ...] | None = None
    """Ranges that a user gave up for good."""
    pending: tuple[Span, ...] = ()
    """Ranges that wait after this window; empty if `waits` is set."""
    waits: WaitingSum | None = None
    """The sum of the ranges that wait, if they are many: all that waited before or came, and were not settled."""

    @property
    def had(self) -> tuple[Span, ...]:
        """Ranges that came in this window."""
        return *self.given, *self.found, *(self.retried or ())

    @property
    def settled(self) -> tuple[Span, ...]:
        """Ranges that no longer wait after this window."""
        return *self.consumed, *(self.skipped or ()), *(self.aside or ()), *(self.given_up or ())


class Work(Wire):
    """What a window did with its spans: the entry `work` of its checkpoint."""

    consumed: tuple[Span, ...] = ()
    pending: tuple[Span, ...] = ()
    inputs: tuple[InputWork, ...] | None = None
    """The work by the input that it is for. Up to November 2026 windows recorded only what root chains list, and that
    under `consumed` and `pending` for all inputs together.
    """

    @property
    def by_input(self) -> Mapping[str, InputWork]:
        return {part.input: part for part in self.inputs or ()}

    @property
    def all_consumed(self) -> Iterator[Span]:
        """The spans that the window consumed, of all inputs."""
        yield from self.consumed
        for part in self.inputs or ():
            yield from part.consumed


WORK_SCHEMA = DataSchema(
    fields=(
        DataField(name="offset", type="UInt64"),
        DataField(name="source", type="String"),
        DataField(name="start", type="UInt64"),
        DataField(name="end", type={"kind": "Option", "inner": "UInt64"}),
        DataField(name="size", type={"kind": "Option", "inner": "UInt64"}),
        DataField(name="extra", type={"kind": "Option", "inner": "String"}),
        DataField(name="port", type={"kind": "Option", "inner": "String"}),
        DataField(name="item", type={"kind": "Option", "inner": "String"}),
    )
)
"""The columns of a root chain's data. A row with a port also has an item and an offset, and no other column."""

PARTS_SCHEMA = DataSchema(
    fields=(
        DataField(name="part", type="String"),
        DataField(name="records", type="UInt64"),
    )
)
"""The columns of a derivative chain's data, unless the application declares others."""


def work_of(checkpoint: Any) -> Work | None:
    """The entry `work` of a checkpoint, if it has one."""
    work = checkpoint.get("work") if isinstance(checkpoint, dict) else None
    return None if work is None else Work.model_validate(work)
