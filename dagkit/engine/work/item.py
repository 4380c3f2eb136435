"""Work: elements of splittable operators, or what is left of them, as they wait and as a slot is given them. Pure."""

import json
from collections.abc import Iterator
from dataclasses import fields, replace
from datetime import datetime
from functools import cached_property
from operator import attrgetter
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, JsonValue

from dagkit.api.operators import Operator
from dagkit.api.work import Block, SplittableOperator, work_port
from dagkit.engine.codec import JsonCodec
from dagkit.engine.program.program import Program
from dagkit.errors import DagkitError
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
            element=_as_json(block),
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


class PartsWrong(DagkitError):
    """A splittable operator divided an element into parts that are not the whole."""

    exit_code: ClassVar[int] = 7

    def __init__(self, into: str, whole: OffsetRange, told: str) -> None:
        super().__init__(
            f"{into.partition('.')[0]}.split divided {whole} so that {told}; yield parts that touch, from its start to "
            "its end"
        )
        self.given = into, whole, told

    def __reduce__(self) -> tuple[Any, ...]:
        return PartsWrong, self.given


class TruncatedWrong(DagkitError):
    """A splittable operator is to drain, and wants to do other work than it was asked about."""

    exit_code: ClassVar[int] = 7

    def __init__(self, into: str, whole: OffsetRange, kept: OffsetRange) -> None:
        super().__init__(
            f"{into.partition('.')[0]}.truncate made {kept} of {whole}; give back what of it is still done, from its "
            "start on, or None"
        )
        self.given = into, whole, kept

    def __reduce__(self) -> tuple[Any, ...]:
        return TruncatedWrong, self.given


class ElementUnreadable(DagkitError):
    """An element waits that the payload of today cannot take back."""

    exit_code: ClassVar[int] = 7

    def __init__(self, into: str, element: JsonValue, error: Exception) -> None:
        super().__init__(
            f"{element!r:.80} waits for {into}, written by another version of its payload, and cannot be read by this "
            f"one: {error}\nlet its type read what was kept, or launch as it was before until that is done"
        )
        self.given = into, element, error

    def __reduce__(self) -> tuple[Any, ...]:
        into, element, error = self.given
        return ElementUnreadable, (into, element, ValueError(str(error)))


class Elements:
    """The elements of one splittable operator: what work they are, and how they are written and read back."""

    def __init__(self, into: str, operator: SplittableOperator[Any], payload: Any) -> None:
        self.into = into
        self.operator = operator
        self._payload = payload
        self._is_sized = type(operator).size is not SplittableOperator.size

    @property
    def tells_time(self) -> bool:
        """Whether the operator says how far event time has come in its elements."""
        return type(self.operator).watermark is not SplittableOperator.watermark

    @cached_property
    def _written(self) -> JsonCodec:
        return JsonCodec(self.into, self._payload)

    @classmethod
    def of(cls, program: Program) -> dict[str, "Elements"]:
        """Of all splittable operators, by the input that they come in at, on the driver."""
        found = (elements_of(program, name, operators[0]) for name, operators in program.operators.items())
        return {elements.into: elements for elements in found if elements is not None}

    def work_of(self, element: Any, number: Number, source: str | None = None) -> Iterator[WorkItem]:
        """All that an element stands for, in the parts that the operator makes of it."""
        block = element if isinstance(element, Block) else None
        whole = self._whole(element)
        written = self._written.of(element) if block is None else _as_json(block)
        for part in self._parts(element, whole):
            yield WorkItem(
                into=self.into,
                number=number,
                element=written,
                start=part.start,
                end=part.stop,
                source=source,
                block=None if block is None else block.block_id,
                size=self.operator.size(element, part) if self._is_sized else None,
            )

    def back(self, each: WorkItem) -> Any:
        """The element; a block is the stretch of it that waits."""
        if each.block is not None:
            return each.as_block()
        try:
            return self._written.back(each.element)
        except (ValueError, TypeError) as error:
            raise ElementUnreadable(self.into, each.element, error) from error

    def truncated(self, each: WorkItem) -> tuple[WorkItem | None, WorkItem | None]:
        """What of it is still done when the application drains, and what waits for a later launch."""
        kept = self.operator.truncate(self.back(each), each.restriction)
        if kept is None:
            return None, each
        if kept.start != each.start or kept.stop > each.end:
            raise TruncatedWrong(self.into, each.restriction, kept)
        if kept.stop == each.end:
            return each, None
        later = stretch_of(each, kept.stop, each.end)
        return (stretch_of(each, each.start, kept.stop) if kept.stop > each.start else None), later

    def cut_near(self, each: WorkItem, position: int) -> int | None:
        """Where what waits may be cut near a position: its tracker says; None: nowhere."""
        tracker = self.operator.tracker(self.back(each), each.restriction)
        # a share of what lies after the offset before the first, where a tracker stands that nobody began
        split = tracker.try_split((position - each.start + 1) / (each.end - each.start + 1))
        return None if split is None else split.primary.stop

    def _whole(self, element: Any) -> OffsetRange:
        if isinstance(element, Block):
            return OffsetRange(element.start, element.end)
        return self.operator.initial_restriction(element)

    def _parts(self, element: Any, whole: OffsetRange) -> Iterator[OffsetRange]:
        reached = whole.start
        for part in self.operator.split(element, whole):
            if part.start != reached:
                raise PartsWrong(self.into, whole, f"{part} follows what ends at {reached}")
            reached = part.stop
            yield part
        if reached != whole.stop:
            raise PartsWrong(self.into, whole, f"the last part ends at {reached}")


def _as_json(block: Block) -> dict[str, Any]:
    written = dict(zip(_FIELDS, _values_of(block), strict=True))
    if block.facts is not None:
        written["facts"] = dict(block.facts)
    return written


def elements_of(program: Program, name: str, operator: Operator) -> Elements | None:
    """The elements of an operator, if it is splittable; an input has one wire."""
    if not isinstance(operator, SplittableOperator):
        return None
    into = name, work_port(operator)
    wire = next((target for target in program.targets.values() if target.into == into), None)
    return None if wire is None else Elements(wire.address, operator, wire.payload)


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
