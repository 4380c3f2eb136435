"""Work that waits, and views of it that share what did not change. Pure.

A million blocks may wait. A lane packs what lies between its two ends, and a view of a lane holds the same packs. So
neither a window that takes from one end and adds to the other, nor the checkpoint after it, looks at the rest.
"""

import pickle
import zlib
from collections import Counter, deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, fields, replace
from functools import reduce
from itertools import accumulate, chain, count, islice
from operator import attrgetter
from typing import Any, NamedTuple, Self, overload

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from dagkit.engine.program.address import Address
from dagkit.engine.program.differences import NEW, PIECES, Change, Piece, difference, joined_pieces
from dagkit.engine.work.item import WorkItem

# With 100,000 waiting blocks, comparing and recording all of them took each window 1.3 s and 5 MB. Unpacking takes 3 µs
# for each block, when its turn comes. The record of a window lists up to a thousand waiting elements and sums up more,
# which no cut changes, so `verify` still notices a lost position in the same window. Rejected: recording the ranges as
# differences, which names the position at once and needs two forms of each entry.
PACKED = 1024
"""How many items are packed together."""

_values = attrgetter(*(field.name for field in fields(WorkItem)))


class WorkSum(NamedTuple):
    """How much work there is. Each cut of an item leaves the sum as it was.

    An item without an end has one `endless`, and minus its start in positions or shares.
    """

    positions: int = 0
    shares: int = 0
    endless: int = 0

    def plus(self, other: "WorkSum") -> "WorkSum":
        return WorkSum(self.positions + other.positions, self.shares + other.shares, self.endless + other.endless)

    @classmethod
    def of(cls, items: Iterable[WorkItem]) -> "WorkSum":
        """The sum of the items that the ledger records."""
        positions = shares = endless = 0
        for item in items:
            if item.source is None:
                continue
            length = (item.end if item.has_end else 0) - item.start
            endless += not item.has_end
            if item.is_shares:
                shares += length
            else:
                positions += length
        return cls(positions, shares, endless)


@dataclass(frozen=True, slots=True)
class _Pack:
    """Items in a row, as bytes, and the answers to frequent questions about them."""

    length: int
    data: bytes
    sum: WorkSum
    elements: tuple[int, int] | None
    """The lowest and the highest number of an element; None if no element has one."""
    receipts: frozenset[str | None]
    decisive: tuple[WorkItem, ...]

    @classmethod
    def of(cls, items: Sequence[WorkItem]) -> "_Pack":
        numbers = [item.element_id for item in items if item.element_id is not None]
        return cls(
            len(items),
            zlib.compress(pickle.dumps([_values(item) for item in items], pickle.HIGHEST_PROTOCOL), 1),
            WorkSum.of(items),
            (min(numbers), max(numbers)) if numbers else None,
            frozenset(item.receipt_source for item in items),
            tuple(_decisive(items)),
        )

    def items(self) -> list[WorkItem]:
        values = pickle.loads(zlib.decompress(self.data))  # noqa: S301 - packed by this process
        return [WorkItem(*each) for each in values]


def _decisive(items: Iterable[WorkItem]) -> Iterator[WorkItem]:
    """The items that decide the watermark of all: the earliest of those that are alike, and all that are idle."""
    earliest: dict[bool, WorkItem] = {}
    for item in items:
        if item.deferral.idle_since is not None:
            yield item
            continue
        alike = item.has_end or not item.done.turn
        before = earliest.get(alike)
        if before is None or _is_earlier(item, before):
            earliest[alike] = item
    yield from earliest.values()


def _is_earlier(one: WorkItem, other: WorkItem) -> bool:
    """Whether an item holds a watermark back more than another; one of unknown time does most."""
    mine, others = one.times.hold, other.times.hold
    return others is not None and (mine is None or mine < others)


_NUMBERS = count()


class Lane:
    """The items of one input in order: windows take the first ones, and new ones are appended."""

    def __init__(self, into: Address, items: Iterable[WorkItem] = ()) -> None:
        self.into = into
        # Each lane has another name, so that the change to a lane that replaces one lists its items as new.
        self.name = f"{into} {next(_NUMBERS)}"
        """Names it in this process."""
        self._first: deque[WorkItem] = deque()
        self._packs: deque[_Pack] = deque()
        self._last: list[WorkItem] = []
        self.start = 0
        """How many items were taken, which is the place of the first one."""
        self.stop = 0
        """The place behind the last item."""
        for item in items:
            self.append(item)

    def append(self, item: WorkItem) -> None:
        self.stop += 1
        if not self._packs and not self._last and len(self._first) < PACKED:
            self._first.append(item)
            return
        self._last.append(item)
        if len(self._last) == PACKED:
            self._packs.append(_Pack.of(self._last))
            self._last = []

    def popleft(self) -> WorkItem:
        if not self._first:
            if self._packs:
                self._first.extend(self._packs.popleft().items())
            else:
                self._first.extend(self._last)
                self._last = []
        item = self._first.popleft()
        self.start += 1
        return item

    def view(self) -> "LaneView":
        """The present items."""
        return LaneView(self, self.start, self.stop, tuple(self._first), tuple(self._packs), tuple(self._last))

    def __len__(self) -> int:
        return self.stop - self.start

    def __iter__(self) -> Iterator[WorkItem]:
        return iter(self.view())


@dataclass(frozen=True, slots=True, eq=False)
class LaneView:
    """The items of a lane at one time."""

    lane: Lane
    start: int
    stop: int
    first: tuple[WorkItem, ...]
    packs: tuple[_Pack, ...]
    last: tuple[WorkItem, ...]

    def __len__(self) -> int:
        return self.stop - self.start

    @property
    def ends(self) -> Iterator[WorkItem]:
        """The items that are not packed."""
        return chain(self.first, self.last)

    @property
    def sum(self) -> WorkSum:
        """How much work it is."""
        return reduce(WorkSum.plus, (pack.sum for pack in self.packs), WorkSum.of(self.ends))

    def __iter__(self) -> Iterator[WorkItem]:
        return chain(self.first, (item for pack in self.packs for item in pack.items()), self.last)

    def since(self, place: int) -> list[WorkItem]:
        """The items from a place on."""
        skipped = max(0, place - self.start)
        rest: list[WorkItem] = list(self.first[skipped:])
        skipped -= min(skipped, len(self.first))
        for pack in self.packs:
            if skipped < pack.length:
                rest += pack.items()[skipped:]
            skipped -= min(skipped, pack.length)
        return [*rest, *self.last[skipped:]]

    def until(self, place: int) -> "LaneView":
        """The same without the items from a place on."""
        if place >= self.stop:
            return self
        stop = max(place, self.start)
        left = stop - self.start
        first, packs, last = self.first[:left], list[_Pack](), tuple[WorkItem, ...]()
        left -= len(first)
        for pack in self.packs:
            if left < pack.length:
                last = tuple(islice(pack.items(), left)) if left else ()
                left = 0
                break
            packs.append(pack)
            left -= pack.length
        return replace(self, stop=stop, first=first, packs=tuple(packs), last=last or self.last[:left])


Stretch = tuple[WorkItem, ...] | LaneView


class Waiting(Sequence[WorkItem]):
    """Work that waits, in order: lists of few items, and views of lanes, each under a name."""

    def __init__(self, parts: Mapping[str, Stretch] | None = None) -> None:
        self.parts = {name: part for name, part in (parts or {}).items() if len(part)}

    @classmethod
    def of(cls, items: Iterable[WorkItem]) -> Self:
        """These items, in one list."""
        return cls({"": tuple(items)})

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        def read(value: Any, validated: Callable[[Any], tuple[WorkItem, ...]]) -> Waiting:
            return value if isinstance(value, Waiting) else cls.of(validated(value))

        listed = handler.generate_schema(tuple[WorkItem, ...])
        written = core_schema.plain_serializer_function_ser_schema(list)
        return core_schema.no_info_wrap_validator_function(read, listed, serialization=written)

    def __len__(self) -> int:
        return sum(map(len, self.parts.values()))

    def __iter__(self) -> Iterator[WorkItem]:
        return chain.from_iterable(self.parts.values())

    @overload
    def __getitem__(self, index: int) -> WorkItem: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[WorkItem]: ...
    def __getitem__(self, index: int | slice) -> WorkItem | Sequence[WorkItem]:
        return tuple(self)[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment] # it may hold lists

    def __repr__(self) -> str:
        return f"Waiting({list(self)!r})"

    @property
    def _views(self) -> Iterator[LaneView]:
        return (part for part in self.parts.values() if isinstance(part, LaneView))

    @property
    def _listed(self) -> Iterator[WorkItem]:
        """The items that are not packed."""
        return chain.from_iterable(part.ends if isinstance(part, LaneView) else part for part in self.parts.values())

    @property
    def _packs(self) -> Iterator[_Pack]:
        return (pack for view in self._views for pack in view.packs)

    @property
    def decisive(self) -> list[WorkItem]:
        """Items that determine the same watermarks as all of them."""
        return [*self._listed, *(item for pack in self._packs for item in pack.decisive)]

    @property
    def receipt_sources(self) -> set[str | None]:
        """The sources of these items for which receipts are wanted."""
        return {item.receipt_source for item in self._listed}.union(*(pack.receipts for pack in self._packs))

    def elements_among(self, numbers: AbstractSet[int]) -> set[int]:
        """Those of the numbers that belong to elements of these items."""
        if not numbers:
            return set()
        found = {item.element_id for item in self._listed if item.element_id in numbers}
        lowest, highest = min(numbers), max(numbers)
        for pack in self._packs:
            if pack.elements is None or pack.elements[1] < lowest or highest < pack.elements[0]:
                continue
            if any(pack.elements[0] <= each <= pack.elements[1] for each in numbers):
                found |= {item.element_id for item in pack.items() if item.element_id in numbers}
        return {number for number in found if number is not None}

    def lengths(self) -> Counter[Address]:
        """How many items wait for each input."""
        counts: Counter[Address] = Counter()
        for part in self.parts.values():
            if isinstance(part, LaneView):
                counts[part.lane.into] += len(part)
            else:
                counts.update(item.into for item in part)
        return counts

    def of_others(self, inputs: Container[str]) -> Iterator[WorkItem]:
        """The items of all inputs but these."""
        for part in self.parts.values():
            if not isinstance(part, LaneView):
                yield from (item for item in part if item.into not in inputs)
            elif part.lane.into not in inputs:
                yield from part

    def sum_of(self, into: str) -> WorkSum:
        """How much work waits for an input."""
        found = WorkSum()
        for part in self.parts.values():
            if not isinstance(part, LaneView):
                found = found.plus(WorkSum.of(item for item in part if item.into == into))
            elif part.lane.into == into:
                found = found.plus(part.sum)
        return found

    def change_since(self, before: "Waiting") -> Change | None:
        """The change from earlier work to this, as `differences` describes that of a list; None if there is none.

        Its cost depends on the items that were taken from lanes and added to them, and on those outside of lanes.
        """
        starts = dict(zip(before.parts, accumulate(map(len, before.parts.values()), initial=0), strict=False))
        pieces: list[Piece] = []
        for name, part in self.parts.items():
            pieces += _pieces(part, before.parts.get(name, ()), starts.get(name, 0))
        found = joined_pieces(pieces)
        if found == ([[0, len(before)]] if len(before) else []):
            return None
        return {PIECES: found} if any(isinstance(piece, list) for piece in found) else {NEW: list(self)}


def _pieces(part: Stretch, before: Stretch, at: int) -> Iterator[Piece]:
    """The pieces of one part, of which the earlier one begins at this place of the list."""
    if isinstance(part, LaneView):
        if not isinstance(before, LaneView) or before.start > part.start:
            yield {NEW: list(part)}
            return
        stop = max(part.start, min(before.stop, part.stop))
        yield [at + part.start - before.start, at + stop - before.start]
        yield {NEW: part.since(stop)}
        return
    change: Change | None = {NEW: part} if isinstance(before, LaneView) else difference(before, part)
    if change is None:
        yield [at, at + len(before)]
    else:
        for piece in change.get(PIECES, [{NEW: list(part)}]):
            yield piece if isinstance(piece, Mapping) else [at + place for place in piece]
