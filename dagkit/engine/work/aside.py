"""Work that left the queue, or returned to it, by a decision; the search for a record that ends its worker. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from operator import attrgetter

from pydantic import Field

from dagkit.engine.program.address import Address
from dagkit.engine.program.facts import Decided, Decision
from dagkit.engine.program.stored_value import StoredValue
from dagkit.engine.work.elements import Elements
from dagkit.engine.work.item import Number, PromisedItem, WorkItem
from dagkit.engine.work.queue import WorkQueue
from dagkit.engine.work.split import Allocation, Pieces, PlannedSplit
from dagkit.ranges import OFFSET_INFINITY
from dagkit.ranges.coverage import Bounds, surplus


class WorkAside(StoredValue):
    """Work that was set aside because it could not be processed. It can be retried, or given up."""

    item: WorkItem
    reason: str
    """How it failed."""
    window: int
    """The window that set it aside."""
    at: datetime


@dataclass(frozen=True, slots=True)
class DecidedWork:
    """The decisions on work since the last commit."""

    aside: tuple[WorkItem, ...] = ()
    given_up: tuple[WorkItem, ...] = ()
    """It was pending, or it is listed in `retried`, too."""
    retried: tuple[WorkItem, ...] = ()
    """It was set aside earlier."""
    all_aside: tuple[WorkAside, ...] = ()
    """All work that is set aside now."""

    @property
    def ended(self) -> Iterable[WorkItem]:
        """The work that no longer waits, although it was not processed."""
        return *self.aside, *self.given_up

    def setting_aside(self, items: Iterable[WorkItem], reason: str, window: int, at: datetime) -> "DecidedWork":
        """Return these decisions and that to set pending work aside."""
        items = tuple(items)
        new = (WorkAside(item=item, reason=reason, window=window, at=at) for item in items)
        return replace(self, aside=(*self.aside, *items), all_aside=(*self.all_aside, *new))

    def giving_up(self, pending: Iterable[WorkItem], found: Iterable[WorkAside]) -> "DecidedWork":
        """Return these decisions and that to give up pending work, and work that was set aside."""
        without = self.retrying(found)
        ended = without.retried[len(self.retried) :]
        return replace(without, given_up=(*self.given_up, *pending, *ended))

    def retrying(self, found: Iterable[WorkAside]) -> "DecidedWork":
        """Return these decisions and that to put back work that was set aside."""
        found = list(found)
        return replace(
            self,
            retried=(*self.retried, *(each.item for each in found)),
            all_aside=tuple(each for each in self.all_aside if each not in found),
        )


NOTHING_DECIDED = DecidedWork()


def decided_of(item: WorkItem, decision: Decision, reason: str, at: datetime, *, by: str | None = None) -> Decided:
    """Return the fact that records a decision on work."""
    return Decided(
        decision=decision,
        into=item.into,
        source=item.name,
        start=item.start,
        end=item.end if item.has_end else None,
        is_shares=item.is_shares,
        reason=reason,
        by=by,
        at=at,
    )


SOUGHT = "to find the record that ends its worker"
MOST_PIECES = 64
"""How many pieces the suspect work is processed in: each costs a call of the operator, such as opening a file."""

_Covered = dict[tuple[Address, Number], list[Bounds]]


class Search(StoredValue):
    """Pending work in which a record ends its worker."""

    suspects: Mapping[Address, tuple[PromisedItem, ...]]
    """The work, by the input that it is for."""
    step: int = 1
    """How many positions of work without an end are processed next: twice as many after each success."""
    is_traced: bool = Field(default=False, exclude_if=lambda is_traced: not is_traced)
    """Whether slots note what they process; otherwise the search goes by halves."""

    @classmethod
    def of(cls, work: Iterable[WorkItem], *, is_traced: bool = False) -> "Search | None":
        """Return the search in some work; None if there is none."""
        search = cls(suspects={}, is_traced=is_traced).joined(work)
        return search if search.suspects else None

    def joined(self, work: Iterable[WorkItem]) -> "Search":
        """Return the search in this and some other work."""
        suspects = dict(self.suspects)
        for item in work:
            suspects[item.into] = (*suspects.get(item.into, ()), (item.number, item.start, item.end))
        return self.model_copy(update={"suspects": suspects})

    def suspect_part(self, item: WorkItem) -> WorkItem | None:
        """Return the part of an item from its first to its last suspect position; None if it has none."""
        found = [each for each in self._covered.get((item.into, item.number), ()) if _meet(each, item)]
        if not found or item.restriction is not None:
            return item if found else None
        return item.part(max(item.start, int(found[0][0])), int(min(item.end, found[-1][1])))

    def includes(self, work: Iterable[WorkItem]) -> bool:
        """Whether all of this work is suspect."""
        suspects, covered = self._covered, _covered(work)
        return bool(covered) and all(not surplus(found, suspects.get(key, ())) for key, found in covered.items())

    def touches(self, item: WorkItem) -> bool:
        """Whether some of an item is suspect."""
        return any(_meet(each, item) for each in self._covered.get((item.into, item.number), ()))

    def is_down_to(self, work: Iterable[WorkItem]) -> bool:
        """Whether this is all suspect work: a single range, which could not be divided."""
        work = list(work)
        return len(work) == 1 and sum(map(len, self.suspects.values())) == 1 and _covered(work) == self._covered

    def after(self, done: Iterable[WorkItem], left: Iterable[WorkItem] = ()) -> "Search | None":
        """Return the search after some work was done, without `left` of it; None if no work is suspect now."""
        over, rest = _covered(done), _covered(left)
        suspects: dict[Address, tuple[PromisedItem, ...]] = {}
        for into, work in self.suspects.items():
            for number, start, end in work:
                ended = surplus(over.get((into, number), ()), rest.get((into, number), ()))
                for low, high in _without((start, end), ended):
                    suspects[into] = (*suspects.get(into, ()), (number, low, high))
        return self.model_copy(update={"suspects": suspects, "step": 2 * self.step}) if suspects else None

    def next(
        self, queue: WorkQueue, slots: Mapping[Address, int], elements: Mapping[Address, Elements]
    ) -> tuple[Allocation, list[PlannedSplit]]:
        """Take the suspects from the queue, for one slot: all in pieces, or the first half without traces."""
        deal = {into: [work] for into, work in self.suspects.items()}
        taken = queue.take_these(deal, dict.fromkeys(deal, 1))
        found = sorted((item for work in taken.values() for item in work[0]), key=attrgetter("into", "order"))
        if self.is_traced:
            divided = [_in_pieces(item, elements[item.into], MOST_PIECES // len(found), self.step) for item in found]
            small = [piece for pieces, _ in divided for piece in pieces]
            cuts = [cut for _, cuts in divided for cut in cuts]
            # In one slot, which begins with the smallest piece: if that fails first, it has failed by itself.
            return {into: _in_one_slot(into, small, count) for into, count in slots.items()}, cuts
        half, rest = found[: len(found) // 2], found[len(found) // 2 :]
        made = list[PlannedSplit]()
        if not half:
            (item,) = found
            pieces = self._divided(item, elements[item.into])
            half, rest = ([item], []) if pieces is None else ([pieces[0]], [pieces[1]])
            made += [] if pieces is None else [PlannedSplit(item, pieces, SOUGHT)]
        queue.put_back(rest)
        return {into: _in_one_slot(into, half, count) for into, count in slots.items()}, made

    def _divided(self, item: WorkItem, elements: Elements) -> Pieces | None:
        """Divide an item in the middle; without an end, after the next step. Return None if its operator refuses."""
        middle = (item.start + item.end) // 2 if item.has_end else item.start + self.step
        return None if middle == item.start else _cut(item, elements, middle)

    @property
    def _covered(self) -> _Covered:
        return {
            (into, number): surplus((start, end) for other, start, end in work if other == number)
            for into, work in self.suspects.items()
            for number, _, _ in work
        }


def cut_out(item: WorkItem, elements: Elements, low: int, high: int) -> WorkItem:
    """Return the part of an item that holds these positions, divided where its operator allows it."""
    if item.start < low and elements.cut_near(item, low) == low:
        item = item.part(low, item.end)
    cut = elements.cut_near(item, high) if item.start < high < item.end else None
    return item.part(item.start, cut) if isinstance(cut, int) and high <= cut < item.end else item


def is_indivisible(item: WorkItem, elements: Elements) -> bool:
    """Whether an item cannot be divided further."""
    return len(_in_pieces(item, elements, 2)[0]) == 1


def _in_pieces(
    item: WorkItem, elements: Elements, most: int, step: int = 1
) -> tuple[list[WorkItem], list[PlannedSplit]]:
    """Divide an item, and return the pieces and the cuts. The first piece is the smallest: it begins with a claim."""
    pieces: list[WorkItem] = []
    cuts: list[PlannedSplit] = []
    rest = item
    for position in _positions(item, most, step):
        cut = _cut(rest, elements, position) if position > rest.start else None
        if cut is not None:
            cuts.append(PlannedSplit(rest, cut, SOUGHT))
            pieces.append(cut[0])
            rest = cut[1]
    return [*pieces, rest], cuts


def _positions(item: WorkItem, most: int, step: int) -> Iterable[int]:
    """Where to divide an item: after its first position, then evenly; without an end, after the next step."""
    if not item.has_end:
        return [item.start + 1, item.start + step]
    if item.is_shares:
        return [item.start + item.length * piece // most for piece in range(1, most)]
    first = item.start + 1
    return sorted({first + (item.end - first) * piece // (most - 1 or 1) for piece in range(max(1, most - 1))})


def _cut(item: WorkItem, elements: Elements, position: int) -> Pieces | None:
    """Divide an item near a position. Return None if its operator refuses."""
    if not item.start < position < item.end:
        return None
    cut = elements.cut_near(item, position)
    if isinstance(cut, int):
        return (item.part(item.start, cut), item.part(cut, item.end)) if item.start < cut < item.end else None
    return cut


def _meet(suspect: Bounds, item: WorkItem) -> bool:
    return suspect[0] < item.end and item.start < suspect[1]


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
