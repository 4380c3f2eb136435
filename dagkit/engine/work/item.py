"""Work items: pending elements of splittable operators, or parts of elements, in the queue and in a slot. Pure.

The promise of a window names them, so that after a crash the window runs again with the same work.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from datetime import datetime
from typing import Any, NamedTuple, TypeVar, dataclass_transform, get_type_hints

from pydantic import GetCoreSchemaHandler, JsonValue
from pydantic_core import CoreSchema, core_schema

from dagkit.engine.program.address import Address
from dagkit.engine.program.facts import Split
from dagkit.engine.program.stored_value import StoredValue
from dagkit.ranges import NEXT_LAUNCH, OFFSET_INFINITY, OFFSET_UNKNOWN

Number = tuple[int, ...]
ItemKey = tuple[Address, str | None, Number]
"""Identifies an element; all its parts share it."""


T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def _value(cls: type[T]) -> type[T]:
    """Make a dataclass that is frozen for the type checker."""
    # Not at run time: each copy of a frozen one takes seven times as long, and scheduling makes many.
    return dataclass(slots=True)(cls)


class DoneBefore(NamedTuple):
    """What windows did of an element before the position where an item of it starts."""

    positions: int = 0
    """How many positions were measured, with a cost that is expected to continue; 0 if none."""
    millis: float = 0.0
    """How long those took."""
    apart: int = 0
    """How many positions lie between those and the item: they belong to other items."""
    completed: float = 0.0
    """How much was done by those who had the item as their rest, in the unit of its amount: for reports only."""
    turn: int = 0
    """The last window that worked on it; items without an end take turns in this order."""
    seen_end: int = 0
    """Of an item without an end, up to where there was something to read, as far as that is known."""

    def further(self, positions: int) -> "DoneBefore":
        """The same for an item that starts so many positions later."""
        apart = self.apart + positions if self.positions else 0
        return DoneBefore(self.positions, self.millis, apart, 0.0, self.turn, self.seen_end)

    def measured(self, positions: int, millis: float, apart: int) -> "DoneBefore":
        """The same with another measurement: how many positions took how long, and how far before the item they end."""
        return DoneBefore(positions, millis, apart, self.completed, self.turn, self.seen_end)


class Deferral(NamedTuple):
    """How long an item waits although slots are free, and why."""

    due: datetime | None = None
    """When there is something to do again; None if the item is not deferred."""
    in_vain: bool = False
    """Whether it was deferred without any progress."""
    idle_since: datetime | None = None
    """When it was first deferred without progress; None if it made progress since, or if its source did not answer."""
    unanswered: bool = False
    """Whether it was deferred because its source did not answer."""
    waits_for: str = ""
    """Why it was deferred although there is input, if its operator gave a reason."""


class ItemTimes(NamedTuple):
    """The event times of an item."""

    reached: datetime | None = None
    """Its watermark: how far event time has advanced in it; None before a window worked on it."""
    not_before: datetime | None = None
    """The earliest event time of its records, as far as that was known when it was found."""

    @property
    def hold(self) -> datetime | None:
        """The instant at which it holds watermarks back; None if that is unknown."""
        return self.not_before if self.reached is None else self.reached


NOTHING_DONE, NOT_DEFERRED, NO_TIMES = DoneBefore(), Deferral(), ItemTimes()


@_value
class WorkItem:
    """An element, or a part of the work that it describes, that is not done yet.

    In JSON, as the ledger holds it, the fields of its groups stand among its own.
    """

    into: Address
    """The input that will process it."""
    number: Number
    """Identifies the element among all pending work of this input; its parts share it. Lower numbers come first."""
    element: JsonValue
    """The element in the JSON form of the input's payload."""
    start: int
    end: int
    source: str | None = None
    """The name of the source in the ledger; None if an earlier dagkit queued the item without a record."""
    element_id: int | None = None
    """The number of the element, if it is a numbered stretch of a source: its end may complete files."""
    size: float | None = None
    """The amount of work, if the operator measures it in other units than positions."""
    restriction: JsonValue = None
    """The JSON form of a restriction that is no range of offsets; `start` and `end` are then shares of the element.

    None: `start` and `end` are offsets, and the restriction.
    """
    done: DoneBefore = NOTHING_DONE
    deferral: Deferral = NOT_DEFERRED
    times: ItemTimes = NO_TIMES

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        kinds = {name: kind for part in (cls, *_GROUPS) for name, kind in get_type_hints(part).items()}
        required = {field.name for field in fields(cls) if field.default is MISSING}
        members = {
            _MEMBERS.get(name, name): core_schema.typed_dict_field(
                handler.generate_schema(kind), required=name in required
            )
            for name, kind in kinds.items()
            if kind not in _GROUPS
        }

        def read(value: Any, validated: Callable[[Any], dict[str, Any]]) -> WorkItem:
            return value if isinstance(value, cls) else _read(validated(value))

        return core_schema.no_info_wrap_validator_function(
            read,
            core_schema.typed_dict_schema(members, extra_behavior="forbid"),
            serialization=core_schema.plain_serializer_function_ser_schema(cls.as_json),
        )

    def as_json(self) -> dict[str, Any]:
        """Return the JSON form. The order of its members is that of earlier releases."""
        # Written out, since each item that a window finds is stored: pydantic takes three times as long.
        done, deferral, times = self.done, self.deferral, self.times
        members: dict[str, Any] = {
            "into": self.into,
            "number": self.number,
            "element": self.element,
            "start": self.start,
            "end": self.end,
            "source": self.source,
            "block": self.element_id,
            "size": self.size,
            "due": _text(deferral.due),
            "in_vain": deferral.in_vain,
            "turn": done.turn,
            "reached": _text(times.reached),
            "done_positions": done.positions,
            "done_millis": done.millis,
            "done_apart": done.apart,
            "completed": done.completed,
            "restriction": self.restriction,
            "not_before": _text(times.not_before),
            "idle_since": _text(deferral.idle_since),
        }
        if deferral.unanswered:
            members["unanswered"] = True
        if deferral.waits_for:
            members["waits_for"] = deferral.waits_for
        if done.seen_end:
            members["seen_end"] = done.seen_end
        return members

    @property
    def key(self) -> ItemKey:
        """Identifies the element; all its parts share it."""
        return self.into, self.source, self.number

    @property
    def end_key(self) -> tuple[Address, str | None, Number, int]:
        """Identifies an allocated item and its rest: both have the same end."""
        return self.into, self.source, self.number, self.end

    @property
    def name(self) -> str:
        """The name for messages: the source in the ledger, else the element itself."""
        return name_of(self.element) if self.source is None else self.source

    @property
    def receipt(self) -> Mapping[str, JsonValue] | None:
        """The receipt that is wanted for its file: `receipt` of a file, or the fact `receipt` of a block; else None."""
        if not isinstance(self.element, dict):
            return None
        facts = self.element.get("facts")
        wanted = facts.get("receipt") if isinstance(facts, dict) else self.element.get("receipt")
        return wanted if isinstance(wanted, dict) else None

    @property
    def receipt_source(self) -> str | None:
        """The name of the source for which a receipt is wanted; None if none is."""
        return None if self.receipt is None else self.source

    @property
    def ends_source(self) -> bool:
        """Whether its element is the last of its source: True unless it is a block with `last` False."""
        return not isinstance(self.element, dict) or self.element.get("last", True) is True

    @property
    def has_end(self) -> bool:
        """Whether the work has an end."""
        return self.end < OFFSET_INFINITY

    @property
    def is_for_next_launch(self) -> bool:
        """Whether nothing is left to do of it until another launch, as after a launch has scanned a pattern."""
        return self.deferral.due == NEXT_LAUNCH

    @property
    def length(self) -> int:
        """How many positions it has; 0 if it has no end."""
        return self.end - self.start if self.end < OFFSET_INFINITY else 0  # inlines has_end: this is called most

    @property
    def known_length(self) -> int:
        """How many positions it has; 0 if it has no end, or if its operator does not know the end yet."""
        # While a database is away, the end of a query is unknown: it would count with all integers that a key can be.
        return self.end - self.start if self.end < OFFSET_UNKNOWN else 0

    @property
    def amount(self) -> float:
        """The amount of work in the unit of its operator."""
        return float(self.length) if self.size is None or not self.has_end else self.size

    @property
    def density(self) -> float:
        """The amount of work per position."""
        return 1.0 if self.size is None or not self.length else self.size / self.length

    @property
    def order(self) -> tuple[int, int, Number, int]:
        """The sort key: by number and start; items without an end come last, in turns."""
        return (0, 0, self.number, self.start) if self.has_end else (1, self.done.turn, self.number, self.start)

    @property
    def is_shares(self) -> bool:
        """Whether `start` and `end` are shares of the element, not positions of its source."""
        return self.restriction is not None

    @property
    def positions(self) -> int:
        """How many positions of its source it is known to have; shares are none.

        Of an item without an end, those that were seen and are not read.
        """
        if self.is_shares:
            return 0
        return self.known_length if self.has_end else self.waiting_up_to(0)

    def waiting_up_to(self, end: int) -> int:
        """Of an item without an end, how many positions up to here, or to where it was seen before, are not read."""
        return max(0, max(end, self.done.seen_end) - self.start)

    def seeing(self, end: int) -> "WorkItem":
        """The item, if there is something to read up to this position: it matters if the item has no end."""
        if self.has_end or end <= self.done.seen_end:
            return self
        return replace(self, done=self.done._replace(seen_end=end))

    def part(self, start: int, end: int) -> "WorkItem":
        """Return the part of the item from `start` to `end`, or the item itself if that is the whole.

        Of shares, it is an estimate only: `Elements` divides the restriction with them.
        """
        if (start, end) == (self.start, self.end):
            return self
        size = self.size
        if size is not None and self.has_end:
            size = size * (end - start) / (self.end - self.start)
        done = self.done
        if start != self.start and done is not NOTHING_DONE:
            done = done.further(start - self.start)
        return self._changed(start, end, size, done)

    def joined(self, other: "WorkItem") -> "WorkItem":
        """Return the item together with the part behind it."""
        size = None if self.size is None or other.size is None else self.size + other.size
        return self._changed(self.start, other.end, size, self.done)

    def measured(self, positions: int, millis: float, apart: int) -> "WorkItem":
        """Return the item with this measurement, as in `DoneBefore`."""
        return self._changed(self.start, self.end, self.size, self.done.measured(positions, millis, apart))

    def _changed(self, start: int, end: int, size: float | None, done: DoneBefore) -> "WorkItem":
        """Return a copy with these values of the fields that scheduling changes."""
        # `dataclasses.replace` takes ten times as long, and scheduling copies more items than it does anything else.
        return WorkItem(
            self.into,
            self.number,
            self.element,
            start,
            end,
            self.source,
            self.element_id,
            size,
            self.restriction,
            done,
            self.deferral,
            self.times,
        )


_GROUPS = (DoneBefore, Deferral, ItemTimes)
_MEMBERS = {
    "element_id": "block",
    "positions": "done_positions",
    "millis": "done_millis",
    "apart": "done_apart",
}
"""The names of fields in JSON, where they differ."""


def _read(members: Mapping[str, Any]) -> WorkItem:
    """The item of this JSON form, which may lack members that earlier releases did not write."""
    get = members.get
    done, deferral, times = NOTHING_DONE, NOT_DEFERRED, NO_TIMES
    # most items have never been begun: they share these groups, which costs less memory, and less in a pack
    if get("turn") or get("done_positions") or get("completed") or get("seen_end"):
        positions, millis, apart = get("done_positions", 0), get("done_millis", 0.0), get("done_apart", 0)
        done = DoneBefore(positions, millis, apart, get("completed", 0.0), get("turn", 0), get("seen_end", 0))
    if get("due") or get("in_vain") or get("idle_since") or get("unanswered") or get("waits_for"):
        due, in_vain, idle_since = get("due"), get("in_vain", False), get("idle_since")
        deferral = Deferral(due, in_vain, idle_since, get("unanswered", False), get("waits_for", ""))
    if get("reached") or get("not_before"):
        times = ItemTimes(get("reached"), get("not_before"))
    return WorkItem(
        members["into"],
        members["number"],
        members["element"],
        members["start"],
        members["end"],
        get("source"),
        get("block"),
        get("size"),
        get("restriction"),
        done,
        deferral,
        times,
    )


def _text(instant: datetime | None) -> str | None:
    return None if instant is None else instant.isoformat().replace("+00:00", "Z")


LONGEST_NAME = 200
"""How many characters of an element its name holds; a digest replaces the rest."""


def name_of(element: JsonValue) -> str:
    """The name of an element without a source: its own JSON; if that is long, cut and made unique by a digest."""
    text = json.dumps(element, sort_keys=True, separators=(",", ":"))
    if len(text) <= LONGEST_NAME:
        return text
    return f"{text[:LONGEST_NAME]}… {hashlib.blake2b(text.encode(), digest_size=12).hexdigest()}"


PromisedItem = tuple[tuple[int, ...], int, int]
"""A stretch of a work item: its number, where it starts and where it ends."""


def parted(
    work: Iterable[WorkItem], without: Mapping[Address, tuple[PromisedItem, ...]]
) -> tuple[list[WorkItem], list[WorkItem]]:
    """Return the work outside of some stretches, and the work inside."""
    outside: list[WorkItem] = []
    inside: list[WorkItem] = []
    for item in work:
        at = item.start
        for number, start, end in sorted(without.get(item.into, ())):
            low, high = max(start, at), min(end, item.end)
            if number != item.number or low >= high:
                continue
            # Only the operator divides shares, so they belong to one side as a whole.
            if item.restriction is not None:
                low, high = item.start, item.end
            outside += [item.part(at, low)] if at < low else []
            inside.append(item.part(low, high) if (low, high) != (item.start, item.end) else item)
            at = high
        if at == item.start:
            outside.append(item)
        elif at < item.end:
            outside.append(item.part(at, item.end))
    return outside, inside


class WindowPromise(StoredValue):
    """A planned window, as the ledger keeps it until the window is committed."""

    deal: Mapping[Address, tuple[tuple[PromisedItem, ...], ...]]
    """The work of each slot, by the input that it goes into."""
    lasts_millis: float
    cuts: tuple[Split, ...] = ()
    """The splits that were made to share the work."""
    last: bool = False
    """Whether this window notifies operators that no more input is expected for now."""
    divided: tuple[tuple[WorkItem, WorkItem], ...] = ()
    """The items that operators divided for it, in order: a second division might differ."""

    def as_notes(self) -> dict[str, Any]:
        """The promise as plain data, for the ledger."""
        notes: dict[str, Any] = self.model_dump(mode="json")
        return notes
