"""The record of the work that a slot found and did: with it the ledger proves that all was done once. Pure."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeGuard

from dagkit.api.files import CorrectsReceipts, CountsUnsent
from dagkit.api.operators import Operator
from dagkit.engine.work.item import Number, WorkItem
from dagkit.ranges import OffsetRange

LISTED = 1000
"""How many elements found and done in one window are listed one by one; the rest is recorded as a sum."""


class Extent(NamedTuple):
    """A stretch of a source, or of the shares of an element."""

    source: str
    start: int
    end: int
    is_shares: bool = False

    @classmethod
    def of(cls, source: str, item: WorkItem, stop: int) -> "Extent":
        """Return the stretch from the start of an item to a stop."""
        return cls(source, item.start, stop, item.is_shares)


@dataclass(slots=True)
class FileWork:
    """The work of a slot on a file for which a receipt is wanted."""

    found: WorkItem | None = None
    """An item of it that came from another operator; its last one, if that came."""
    element_ids: set[int | None] = field(default_factory=set)
    """The elements of it that were worked on; empty if there were none."""
    rows: int = 0
    """How many items were sent for it."""
    rejected: int = 0
    dropped: int = 0
    """How many of its records were not sent, because they are invalid or because the reader is to drop them."""
    instead: Mapping[str, Any] | None = None
    """Facts that its receipt states instead of those with which it was found, as in `CorrectsReceipts`."""


@dataclass(frozen=True, slots=True)
class WorkRecord:
    """The work of one slot on one input in one window."""

    found: tuple[Extent, ...] = ()
    """Work that came from other operators in this window."""
    done: tuple[Extent, ...] = ()
    """Work that was done, without what was skipped."""
    skipped: tuple[Extent, ...] = ()
    """Offsets that the operator claimed and did not read, such as those of removed messages."""
    folded_elements: int = 0
    """How many elements came and were done in this window, without those that are listed."""
    folded_positions: int = 0
    """The sum of their positions; shares are none."""
    files: Mapping[str, FileWork] = field(default_factory=dict)
    """The files for which receipts are wanted, by name."""


NOTHING_RECORDED = WorkRecord()


class Recorder:
    """Collects the record of one slot and input during the window.

    `reads` is False for an operator that reads no positions, such as one that divides files: it asks for no receipts.
    """

    def __init__(self, *, reads: bool = True) -> None:
        self._new: dict[tuple[Number, int], WorkItem] = {}
        """Work that came from other operators and is not done."""
        self._handed: list[WorkItem] = []
        """Work that came from other operators, of which another slot does a part."""
        self._done = _Joined()
        self._skipped = _Joined()
        self._settled = _Joined()
        """Work that came from other operators and is done."""
        self._folded_elements = 0
        self._folded_positions = 0
        self._files: defaultdict[str, FileWork] = defaultdict(FileWork)
        self._reads = reads

    def find(self, item: WorkItem) -> None:
        """Record work that came from another operator."""
        # An empty part begins where the next part does, and would stand for it.
        if item.start < item.end:
            self._new[item.number, item.start] = item
        source = item.receipt_source if self._reads else None
        if source is not None and (item.ends_source or self._files[source].found is None):
            self._files[source].found = item

    def hand_over(self, item: WorkItem) -> None:
        """Record that another slot does an item or a part of it. The thread of the link calls this, too."""
        found = self._new.pop((item.number, item.start), None)
        if found is not None:
            self._handed.append(found)

    def do(
        self,
        item: WorkItem,
        stop: int,
        rows: int = 0,
        operator: Operator | None = None,
        skipped: Sequence[OffsetRange] = (),
    ) -> None:
        """Record that an operator did an item up to `stop`, without `skipped`, and sent `rows` items for it."""
        source = item.receipt_source if self._reads else None
        if source is not None:
            file = self._files[source]
            file.rows += rows
            if _counts_unsent(operator):
                rejected, dropped = operator.unsent_records()
                file.rejected, file.dropped = file.rejected + rejected, file.dropped + dropped
            # Pieces of output files that belong to no block (None) may hold records of this file, too.
            file.element_ids |= {None, item.element_id}
            file.instead = instead_of(file.instead, operator.read_instead()) if _corrects(operator) else file.instead
        if item.source is None or stop == item.start:
            return
        if skipped:
            self._do_around(item.source, item, stop, skipped)
            return
        is_settled = stop == item.end and self._new.pop((item.number, item.start), None) is not None
        if not is_settled:
            self._done.add(Extent.of(item.source, item, stop))
        # A stretch that touches the one before adds no entry.
        elif len(self._settled.extents) < LISTED or self._settled.touches(item.source, item.start):
            self._settled.add(Extent.of(item.source, item, stop))
        else:
            self._folded_elements += 1
            self._folded_positions += item.positions

    def _do_around(self, source: str, item: WorkItem, stop: int, skipped: Sequence[OffsetRange]) -> None:
        """Record an item with offsets that were skipped."""
        self.hand_over(item)  # it was found, and its parts are recorded apart
        at = item.start
        for gap in skipped:  # in the order of the claims
            self._done.add(Extent(source, at, gap.start))
            self._skipped.add(Extent(source, gap.start, gap.stop))
            at = gap.stop
        self._done.add(Extent(source, at, stop))

    def record(self) -> WorkRecord:
        """Return the complete record."""
        found = _Joined()
        for item in (*self._new.values(), *self._handed):
            if item.source is not None:
                found.add(Extent.of(item.source, item, item.end))
        settled = self._settled.extents
        return WorkRecord(
            found=(*found.extents, *settled),
            done=(*self._done.extents, *settled),
            skipped=tuple(self._skipped.extents),
            folded_elements=self._folded_elements,
            folded_positions=self._folded_positions,
            files=dict(self._files),
        )


def instead_of(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return what holds of a file after two of its elements: if either was left, the file was not read whole."""
    if before is None or after is None:
        return before if after is None else after
    return after if before and after else {}


def _corrects(operator: Operator | None) -> TypeGuard[CorrectsReceipts]:
    return isinstance(operator, CorrectsReceipts)


def _counts_unsent(operator: Operator | None) -> TypeGuard[CountsUnsent]:
    return isinstance(operator, CountsUnsent)


class _Joined:
    """Stretches, each joined with the previous one of its source if they touch."""

    def __init__(self) -> None:
        self.extents: list[Extent] = []
        self._last: dict[str, int] = {}
        """The index of the last stretch of each source."""

    def touches(self, source: str, start: int) -> bool:
        place = self._last.get(source)
        return place is not None and self.extents[place].end == start

    def add(self, extent: Extent) -> None:
        if extent.start == extent.end:
            return
        if self.touches(extent.source, extent.start):
            place = self._last[extent.source]
            self.extents[place] = self.extents[place]._replace(end=extent.end)
        else:
            self._last[extent.source] = len(self.extents)
            self.extents.append(extent)
