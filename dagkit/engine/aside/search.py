"""The search for a record that ends its worker: by halves, one window for each. Pure.

When all attempts at a window have failed, it is committed without its work, which is suspect then. Each window after it
processes the first half of the suspect work, and no other work. If it fails, that half is suspect, and the other half
waits as before. If it succeeds, the other half is suspect. Every step is in the ledger: a crash costs at most one.
"""

from collections.abc import Iterable, Mapping
from operator import attrgetter

from pydantic import BaseModel, ConfigDict

from dagkit.engine.address import Address
from dagkit.engine.work.elements import Elements
from dagkit.engine.work.item import Number, PromisedItem, WorkItem
from dagkit.engine.work.queue import WorkQueue
from dagkit.engine.work.split import Allocation, Pieces, PlannedSplit
from dagkit.ranges import OFFSET_INFINITY
from dagkit.ranges.coverage import Bounds, surplus

HALF = "to find the record that ends its worker"

_Covered = dict[tuple[Address, Number], list[Bounds]]


class Search(BaseModel):
    """Pending work in which a record ends its worker."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    suspects: Mapping[Address, tuple[PromisedItem, ...]]
    """The work, by the input that it is for."""
    step: int = 1
    """How many positions of work without an end are processed next: twice as many after each success."""

    @classmethod
    def of(cls, work: Iterable[WorkItem]) -> "Search | None":
        """Return the search in some work; None if there is none."""
        suspects: dict[Address, tuple[PromisedItem, ...]] = {}
        for item in work:
            suspects[item.into] = (*suspects.get(item.into, ()), (item.number, item.start, item.end))
        return cls(suspects=suspects) if suspects else None

    def includes(self, work: Iterable[WorkItem]) -> bool:
        """Whether all of this work is suspect."""
        suspects, covered = self._covered, _covered(work)
        return bool(covered) and all(not surplus(found, suspects.get(key, ())) for key, found in covered.items())

    def touches(self, item: WorkItem) -> bool:
        """Whether some of an item is suspect."""
        suspects = self._covered.get((item.into, item.number), ())
        return any(start < item.end and item.start < end for start, end in suspects)

    def is_down_to(self, work: Iterable[WorkItem]) -> bool:
        """Whether this is all suspect work: a single range, which could not be divided."""
        return sum(map(len, self.suspects.values())) == 1 and _covered(work) == self._covered

    def after(self, done: Iterable[WorkItem], left: Iterable[WorkItem] = ()) -> "Search | None":
        """Return the search after some work was done, without `left` of it; None if no work is suspect now."""
        over, rest = _covered(done), _covered(left)
        suspects: dict[Address, tuple[PromisedItem, ...]] = {}
        for into, work in self.suspects.items():
            for number, start, end in work:
                ended = surplus(over.get((into, number), ()), rest.get((into, number), ()))
                for low, high in _without((start, end), ended):
                    suspects[into] = (*suspects.get(into, ()), (number, low, high))
        return Search(suspects=suspects, step=2 * self.step) if suspects else None

    def next(
        self, queue: WorkQueue, slots: Mapping[Address, int], elements: Mapping[Address, Elements]
    ) -> tuple[Allocation, list[PlannedSplit]]:
        """Take the first half of the suspects from the queue, for one slot."""
        deal = {into: [work] for into, work in self.suspects.items()}
        taken = queue.take_these(deal, dict.fromkeys(deal, 1))
        found = sorted((item for work in taken.values() for item in work[0]), key=attrgetter("into", "order"))
        half, rest, made = found[: len(found) // 2], found[len(found) // 2 :], list[PlannedSplit]()
        if not half:
            (item,) = found
            pieces = self._divided(item, elements[item.into])
            half, rest = ([item], []) if pieces is None else ([pieces[0]], [pieces[1]])
            made += [] if pieces is None else [PlannedSplit(item, pieces, HALF)]
        queue.put_back(rest)
        return {into: _in_one_slot(into, half, count) for into, count in slots.items()}, made

    def _divided(self, item: WorkItem, elements: Elements) -> Pieces | None:
        """Divide an item in the middle; without an end, after the next step. Return None if its operator refuses."""
        middle = (item.start + item.end) // 2 if item.has_end else item.start + self.step
        if middle == item.start:
            return None
        cut = elements.cut_near(item, middle)
        if isinstance(cut, int):
            return (item.part(item.start, cut), item.part(cut, item.end)) if item.start < cut < item.end else None
        return cut

    @property
    def _covered(self) -> _Covered:
        return {
            (into, number): surplus((start, end) for other, start, end in work if other == number)
            for into, work in self.suspects.items()
            for number, _, _ in work
        }


def _covered(work: Iterable[WorkItem]) -> _Covered:
    """The ranges of each element."""
    found: _Covered = {}
    for item in work:
        found.setdefault((item.into, item.number), []).append((item.start, item.end))
    return {key: surplus(ranges) for key, ranges in found.items()}


def _without(stretch: Bounds, ended: Iterable[Bounds]) -> Iterable[tuple[int, int]]:
    """The rest of a stretch. Ranges of shares are not joined, since only their operator could divide them again."""
    inside = [(max(start, stretch[0]), min(end, stretch[1])) for start, end in ended]
    for start, end in surplus([stretch], [(low, high) for low, high in inside if low < high]):
        yield int(start), OFFSET_INFINITY if end >= OFFSET_INFINITY else int(end)


def _in_one_slot(into: Address, work: Iterable[WorkItem], slots: int) -> list[list[WorkItem]]:
    return [[item for item in work if item.into == into], *([] for _ in range(slots - 1))]
