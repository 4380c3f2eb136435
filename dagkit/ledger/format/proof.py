"""Work: ranges of a source, and the proof that every byte of it was consumed exactly once.

A root chain's slices list the discovered ranges, one to a line. Between them may stand items that the input operator
emitted and that are not ranges (`EmittedItem`); the proof ignores these. A window consumes whole root blocks. Its
checkpoint lists under `work.consumed` what was really read, and under `work.pending` what a deadline cut off. These
three give the whole history of every byte.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any, Literal, Self

from pydantic import Field, JsonValue, model_validator

from dagkit.ledger.format.events import DataField, DataSchema
from dagkit.ledger.format.wire import Offset, Wire

Place = Annotated[int, Field(ge=0)]


class Span(Wire):
    """The range `[start, end)` of a source; without an end it is unbounded."""

    source: str
    start: Place
    end: Place | None = None

    @model_validator(mode="after")
    def _forwards(self) -> Self:
        if self.end is not None and self.end < self.start:
            raise ValueError(f"{self} ends before it starts")
        return self

    def __str__(self) -> str:
        return f"{self.source}[{self.start}, {'inf' if self.end is None else self.end})"


class WorkBlock(Span):
    """A discovered range: one record of a root chain's data."""

    size: Place | None = None
    """The length of the whole source, if it is known and final."""
    extra: Mapping[str, JsonValue] | None = None
    """Further values that the input operator passes to the reader."""

    @property
    def span(self) -> Span:
        return Span(source=self.source, start=self.start, end=self.end)


class EmittedItem(Wire):
    """An item of an input operator that is not a range of a source: a record of a root chain's data, but not work."""

    offset: Offset
    port: Annotated[str, Field(min_length=1)]
    """The output port that emitted it; a row with a port is an item, a row without one is work."""
    item: JsonValue

    def as_json(self) -> dict[str, Any]:
        """The row; an item may be null, which differs from an absent one."""
        return {**super().as_json(), "item": self.item}


def row_of(row: Any) -> WorkBlock | EmittedItem:
    """Parse a row of a root chain's slice."""
    is_item = isinstance(row, Mapping) and "port" in row
    return EmittedItem.model_validate(row) if is_item else WorkBlock.model_validate(row)


class Work(Wire):
    """What a window did with its spans: the entry `work` of its checkpoint."""

    consumed: tuple[Span, ...] = ()
    pending: tuple[Span, ...] = ()


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


@dataclass(frozen=True, slots=True)
class Flaw:
    """A range that was lost, consumed twice, or not yet read."""

    kind: Literal["missing", "doubled", "unread"]
    span: Span
    why: str


Stretch = tuple[float, float]


def normal(spans: Iterable[Span]) -> dict[str, list[Stretch]]:
    """The ranges of each source, in order; an open end is infinite."""
    found: dict[str, list[Stretch]] = defaultdict(list)
    for span in spans:
        if span.end is None or span.end > span.start:
            found[span.source].append((span.start, float("inf") if span.end is None else span.end))
    return {source: sorted(stretches) for source, stretches in sorted(found.items())}


def overlaps(spans: Iterable[Span]) -> list[Span]:
    """The ranges that more than one of the spans cover."""
    found = []
    for source, stretches in normal(spans).items():
        reached: float = 0
        for start, end in stretches:
            if start < reached:
                found.append(_span(source, start, min(end, reached)))
            reached = max(reached, end)
    return found


def without(spans: Iterable[Span], removed: Iterable[Span]) -> list[Span]:
    """The spans minus the removed ones."""
    holes, found = normal(removed), []
    for source, stretches in normal(spans).items():
        for start, end in merged(stretches):
            at: float = start
            for low, high in merged(holes.get(source, [])):
                if high <= at or low >= end:
                    continue
                if low > at:
                    found.append(_span(source, at, low))
                at = max(at, high)
            if at < end:
                found.append(_span(source, at, end))
    return found


def merged(stretches: Sequence[Stretch]) -> list[Stretch]:
    """Merge ranges that touch or overlap."""
    found: list[Stretch] = []
    for start, end in stretches:
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def joined(spans: Iterable[Span]) -> list[Span]:
    """Merge spans that touch or overlap."""
    return [_span(source, *stretch) for source, found in normal(spans).items() for stretch in merged(found)]


def _span(source: str, start: float, end: float) -> Span:
    return Span(source=source, start=int(start), end=None if end == float("inf") else int(end))


class DiscoveredWork:
    """Checks the ranges that one input operator discovered; stores one merged range for each unbroken run."""

    def __init__(self) -> None:
        self._known: dict[str, list[Stretch]] = {}
        self._sizes: dict[str, int] = {}

    def add(self, block: WorkBlock) -> list[Flaw]:
        """The flaws of the next block."""
        if block.size is not None:
            self._sizes[block.source] = block.size
        if block.end == block.start:
            return []  # empty: recorded as a range, it would make the bytes before it look skipped
        known = self._known.get(block.source, [])
        twice = covered([block.span], known)
        end = float("inf") if block.end is None else block.end
        if known and known[-1][1] == block.start and not twice:
            known[-1] = (known[-1][0], end)
        else:
            self._known[block.source] = merged(sorted([*known, (block.start, end)]))
        return [Flaw("doubled", span, "was discovered twice") for span in twice]

    def end(self) -> list[Flaw]:
        """Ranges that were skipped, and tails that are not discovered yet."""
        flaws = []
        for source in sorted({*self._known, *self._sizes}):  # a source may have only an empty range
            reached: float = 0
            for start, end in self._known.get(source, []):
                if start > reached:
                    why = "was never discovered, but later bytes were"
                    flaws.append(Flaw("missing", _span(source, reached, start), why))
                reached = end
            size = self._sizes.get(source)
            if size is not None and reached < size:
                flaws.append(Flaw("unread", _span(source, reached, size), "is not discovered yet"))
        return flaws


def covered(spans: Iterable[Span], known: Sequence[Stretch]) -> list[Span]:
    """The parts of one source's spans that lie in known ranges."""
    found = []
    for span in spans:
        end = float("inf") if span.end is None else span.end
        first = max(0, bisect_left(known, (span.start, -1.0)) - 1)
        for low, high in islice(known, first, bisect_left(known, (end, -1.0))):
            if max(low, span.start) < min(high, end):
                found.append(_span(span.source, max(low, span.start), min(high, end)))
    return found


@dataclass(frozen=True, slots=True)
class Window:
    """The work that one window was given, and its report."""

    given: Sequence[Span]
    """The blocks that were new to it."""
    work: Work | None
    """None if the checkpoint lists no work: then the window consumed all that it was given."""


class Audit:
    """Checks the windows of one application; finds every byte that was lost or consumed twice."""

    def __init__(self) -> None:
        self.pending: list[Span] = []
        self._consumed: dict[str, list[Stretch]] = {}

    def window(self, window: Window) -> list[Flaw]:
        """The flaws of the next window."""
        before = [*self.pending, *window.given]
        work = window.work or Work(consumed=tuple(before))
        flaws = [Flaw("doubled", span, "was given twice") for span in overlaps(before)]
        after = [*work.consumed, *work.pending]
        flaws += [Flaw("doubled", s, "is consumed and pending, or twice") for s in overlaps(after)]
        flaws += [Flaw("missing", s, "is neither consumed nor pending") for s in without(before, after)]
        flaws += [Flaw("doubled", s, "was not given to the window") for s in without(after, before)]
        flaws += [Flaw("doubled", s, "was consumed before") for s in self._again(work.consumed)]
        self._note(work.consumed)
        self.pending = list(work.pending)
        return flaws

    def _again(self, spans: Iterable[Span]) -> list[Span]:
        return [again for span in spans for again in covered([span], self._consumed.get(span.source, []))]

    def _note(self, spans: Iterable[Span]) -> None:
        for source, stretches in normal(spans).items():
            self._consumed[source] = merged(sorted([*self._consumed.get(source, []), *stretches]))


def work_of(checkpoint: Any) -> Work | None:
    """The entry `work` of a checkpoint, if it has one."""
    said = checkpoint.get("work") if isinstance(checkpoint, dict) else None
    return None if said is None else Work.model_validate(said)
