"""Work: elements of splittable operators, or what is left of them, as they wait and as a slot is given them. Pure."""

import json
from dataclasses import fields, replace
from datetime import datetime
from operator import attrgetter
from typing import Any

from pydantic import BaseModel, ConfigDict, JsonValue

from dagkit.api.work import Block
from dagkit.ranges import OFFSET_INFINITY, OffsetRange

Number = tuple[int, ...]

_FIELDS = tuple(field.name for field in fields(Block))
_values_of = attrgetter(*_FIELDS)  # `asdict` takes ten times as long, and there may be millions of blocks


class WorkItem(BaseModel):
    """An element, or a part of what it stands for, that nobody has worked on yet."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    into: str
    """The input that it waits for."""
    number: Number
    """What tells it from all else that waits for this input; its parts share it. Lower numbers come first."""
    element: JsonValue
    """As the payload of the input is written."""
    start: int
    end: int
    source: str | None = None
    """Under what name the ledger knows what is read; None where it is no stretch that an input operator found."""
    block: int | None = None
    """The number of the block that the element is, if it is one: files may be whole with it."""
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

    @classmethod
    def of_block(cls, into: str, block: Block, source: str) -> "WorkItem":
        """A block that an input operator found."""
        return cls(
            into=into,
            number=(block.block_id,),
            element=block_as_json(block),
            start=block.start,
            end=block.end,
            source=source,
            block=block.block_id,
        )

    @property
    def restriction(self) -> OffsetRange:
        return OffsetRange(self.start, self.end)

    def as_block(self) -> Block:
        """The stretch of the block that this is."""
        assert self.block is not None, f"what waits for {self.into} is no block"
        block = Block(**self.element)  # type: ignore[arg-type] # as it was written
        return replace(block, start=self.start, end=self.end, last=block.last and self.end == block.end)


def block_as_json(block: Block) -> dict[str, Any]:
    written = dict(zip(_FIELDS, _values_of(block), strict=True))
    if block.facts is not None:
        written["facts"] = dict(block.facts)
    return written


def stretch_of(each: WorkItem, start: int, end: int) -> WorkItem:
    """A part of what waits, or the whole of it."""
    if (start, end) == (each.start, each.end):
        return each
    bounded = has_end(each) and each.size is not None
    size = each.size * (end - start) / (each.end - each.start) if bounded and each.size is not None else each.size
    apart = each.done_apart + start - each.start if each.done_positions else 0
    return each.model_copy(update={"start": start, "end": end, "size": size, "done_apart": apart})


def part_of(each: WorkItem) -> tuple[str, str | None, Number]:
    """What all parts of one element share."""
    return each.into, each.source, each.number


def end_of(each: WorkItem) -> tuple[str, str | None, Number, int]:
    """What tells what was dealt, and what is left of it, from all else: where it ends."""
    return *part_of(each), each.end


def name_of(each: WorkItem) -> str:
    """What is worked on, as people are told: a source that the ledger knows, else the element itself."""
    return json.dumps(each.element) if each.source is None else each.source


def has_end(each: WorkItem) -> bool:
    """Whether it can be worked through to its end at all."""
    return each.end < OFFSET_INFINITY


def length_of(each: WorkItem) -> int:
    """How many positions it has; one without an end has none that can be counted."""
    return each.end - each.start if has_end(each) else 0


def amount_of(each: WorkItem) -> float:
    """How much work it is, as its operator counts."""
    return float(length_of(each)) if each.size is None or not has_end(each) else each.size


def density_of(each: WorkItem) -> float:
    """How much work each of its positions is."""
    return 1.0 if each.size is None or not length_of(each) else each.size / length_of(each)


def place_of(each: WorkItem) -> tuple[int, int, Number, int]:
    """Where it stands among all: by its number, and by where it starts; behind them by turns, what has no end."""
    return (0, 0, each.number, each.start) if has_end(each) else (1, each.turn, each.number, each.start)
