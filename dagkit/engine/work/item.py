"""Work: elements of splittable operators, or what is left of them, as they wait and as a slot is given them. Pure."""

import hashlib
import json
from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from dagkit.engine.address import Address
from dagkit.ranges import OFFSET_INFINITY, OffsetRange

Number = tuple[int, ...]
ItemKey = tuple[Address, str | None, Number]
"""What all parts of one element share."""


class WorkItem(BaseModel):
    """An element, or a part of what it stands for, that nobody has worked on yet."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True, serialize_by_alias=True)

    into: Address
    """The input that it waits for."""
    number: Number
    """What tells it from all else that waits for this input; its parts share it. Lower numbers come first."""
    element: JsonValue
    """As the payload of the input is written."""
    start: int
    end: int
    source: str | None = None
    """Under what name the ledger knows what is read; None if an earlier dagkit queued it without a record."""
    element_id: int | None = Field(default=None, validation_alias="block", serialization_alias="block")
    """The number of the element, if it is a numbered stretch of a source: files may be whole with it."""
    size: float | None = None
    """How much work it is, where the operator counts otherwise than by positions."""
    due: datetime | None = None
    """Before this there is nothing to do; None: nobody said so."""
    in_vain: bool = False
    """Whether it was put off without anything of it having been done."""
    turn: int = 0
    """The last window that worked on it; what has no end waits for those that had their turn longer ago."""
    reached: datetime | None = None
    """How far event time has come in it."""
    done_positions: int = 0
    """How many positions before it were read, at a cost that it is expected to go on with; 0: nobody knows."""
    done_millis: float = 0.0
    """What those cost."""
    done_apart: int = 0
    """How many positions lie between those and it: others were given them."""

    @property
    def restriction(self) -> OffsetRange:
        return OffsetRange(self.start, self.end)

    @property
    def key(self) -> ItemKey:
        """What all parts of one element share."""
        return self.into, self.source, self.number

    @property
    def end_key(self) -> tuple[Address, str | None, Number, int]:
        """What tells what was dealt, and what is left of it, from all else: where it ends."""
        return self.into, self.source, self.number, self.end

    @property
    def name(self) -> str:
        """What is worked on, as people are told: the name that the ledger knows, else the element itself."""
        return name_of(self.element) if self.source is None else self.source

    @property
    def has_end(self) -> bool:
        """Whether it can be worked through to its end at all."""
        return self.end < OFFSET_INFINITY

    @property
    def length(self) -> int:
        """How many positions it has; one without an end has none that can be counted."""
        return self.end - self.start if self.has_end else 0

    @property
    def amount(self) -> float:
        """How much work it is, as its operator counts."""
        return float(self.length) if self.size is None or not self.has_end else self.size

    @property
    def density(self) -> float:
        """How much work each of its positions is."""
        return 1.0 if self.size is None or not self.length else self.size / self.length

    @property
    def order(self) -> tuple[int, int, Number, int]:
        """Where it stands among all: by its number, and by its start; behind them by turns, what has no end."""
        return (0, 0, self.number, self.start) if self.has_end else (1, self.turn, self.number, self.start)

    def part(self, start: int, end: int) -> "WorkItem":
        """A part of what waits, or the whole of it."""
        if (start, end) == (self.start, self.end):
            return self
        bounded = self.has_end and self.size is not None
        size = self.size * (end - start) / (self.end - self.start) if bounded and self.size is not None else self.size
        apart = self.done_apart + start - self.start if self.done_positions else 0
        return self.model_copy(update={"start": start, "end": end, "size": size, "done_apart": apart})


LONGEST_NAME = 200
"""Letters of an element that stand in its name; of a longer one the rest is a digest."""


def name_of(element: JsonValue) -> str:
    """The name of an element whose payload gives it none: its own JSON, cut and made unique where that is long."""
    text = json.dumps(element, sort_keys=True, separators=(",", ":"))
    if len(text) <= LONGEST_NAME:
        return text
    return f"{text[:LONGEST_NAME]}… {hashlib.blake2b(text.encode(), digest_size=12).hexdigest()}"
