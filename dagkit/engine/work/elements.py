"""The elements of a splittable operator: the work that they describe, and their JSON form."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from pydantic import JsonValue

from dagkit.api.operators import Operator
from dagkit.api.work import SplittableOperator, is_placed, is_sourced, work_port
from dagkit.engine.address import Address
from dagkit.engine.codec import JsonCodec
from dagkit.engine.entrances import code_of, made_by
from dagkit.engine.program.program import Program
from dagkit.engine.work.item import Number, WorkItem, name_of
from dagkit.errors import RunFailure, Scene
from dagkit.ranges import OffsetRange, split_near


class PartsWrong(RunFailure):
    """A splittable operator split an element into parts that do not cover it exactly."""

    code = "parts-mismatched"

    def __init__(self, into: Address, whole: OffsetRange, told: str) -> None:
        super().__init__(
            f"{into.operator}.split divided {whole} so that {told}",
            "yield parts that touch, from its start to its end",
            Scene(into.operator),
        )


class TruncatedWrong(RunFailure):
    """A splittable operator that drains returned a range that is no first part of the given one."""

    code = "truncation-invalid"

    def __init__(self, into: Address, whole: OffsetRange, kept: OffsetRange) -> None:
        super().__init__(
            f"{into.operator}.truncate made {kept} of {whole}",
            "return the part that is still done, from its start on, or None",
            Scene(into.operator),
        )


class ElementUnreadable(RunFailure):
    """The present payload type cannot read a pending element."""

    code = "element-unreadable"

    def __init__(self, into: Address, element: JsonValue, error: Exception) -> None:
        super().__init__(
            f"{element!r:.80} waits for {into}, written by another version of its payload, and this one cannot read "
            f"it: {error}",
            "let its type read what was kept, or launch the earlier version until that work is done",
            Scene(into.operator),
        )


class Elements:
    """The elements of one splittable operator: the work that they describe, and their JSON form."""

    def __init__(self, into: Address, operator: SplittableOperator[Any], payload: Any) -> None:
        self.into = into
        self.operator = operator
        self._payload = payload
        self._is_sized = type(operator).size is not SplittableOperator.size

    @property
    def tells_time(self) -> bool:
        """Whether the operator estimates watermarks for its elements."""
        return type(self.operator).watermark is not SplittableOperator.watermark

    @cached_property
    def _written(self) -> JsonCodec:
        return JsonCodec(self.into, self._payload)

    @classmethod
    def of(cls, program: Program) -> dict[Address, "Elements"]:
        """The elements of all splittable operators on the driver, by input."""
        found = (elements_of(program, name, operators[0]) for name, operators in program.operators.items())
        return {elements.into: elements for elements in found if elements is not None}

    def work_of(self, element: Any, number: Number, source: str | None = None) -> Iterator[WorkItem]:
        """Yield the work that an element describes, in the parts that the operator splits it into.

        The ledger names it by the `source`, else by the source in its payload, else by its own JSON.
        """
        with code_of(self.into.operator):
            whole = self._whole(element)
        written = self._written.of(element)
        if source is None:
            source = element.source if is_placed(element) else name_of(written)
        element_id = element.number if is_sourced(element) else None
        for part in self._parts(element, whole):
            yield WorkItem(
                into=self.into,
                number=number,
                element=written,
                start=part.start,
                end=part.stop,
                source=source,
                element_id=element_id,
                size=self._size(element, part),
            )

    def back(self, each: WorkItem) -> Any:
        """Decode the element. If it is a stretch of a source, return its pending part."""
        try:
            element = self._written.back(each.element)
        except (ValueError, TypeError) as error:
            raise ElementUnreadable(self.into, each.element, error) from error
        return element.part(each.start, each.end) if is_sourced(element) else element

    def truncated(self, each: WorkItem) -> tuple[WorkItem | None, WorkItem | None]:
        """Return the part that is still done when the application drains, and the part left to a later launch."""
        element = self.back(each)
        with code_of(self.into.operator):
            kept = self.operator.truncate(element, each.restriction)
        if kept is None:
            return None, each
        if kept.start != each.start or kept.stop > each.end:
            raise TruncatedWrong(self.into, each.restriction, kept)
        if kept.stop == each.end:
            return each, None
        later = each.part(kept.stop, each.end)
        return (each.part(each.start, kept.stop) if kept.stop > each.start else None), later

    def cut_near(self, each: WorkItem, position: int) -> int | None:
        """Return where the tracker of an item allows a split near a position; None if nowhere."""
        element = self.back(each)
        with code_of(self.into.operator):
            tracker = self.operator.tracker(element, each.restriction)
        # the share counts from the offset before the first one: that is where a tracker without a claim stands
        split = split_near(tracker, position, (position - each.start + 1) / (each.end - each.start + 1))
        return None if split is None else split.primary.stop

    def _divided(self, element: Any, whole: OffsetRange) -> Iterator[OffsetRange]:
        yield from self.operator.split(element, whole)

    def _size(self, element: Any, part: OffsetRange) -> float | None:
        if not self._is_sized:
            return None
        with code_of(self.into.operator):
            return self.operator.size(element, part)

    def _whole(self, element: Any) -> OffsetRange:
        if is_sourced(element):
            return OffsetRange(element.start, element.end)
        return self.operator.initial_restriction(element)

    def _parts(self, element: Any, whole: OffsetRange) -> Iterator[OffsetRange]:
        reached = whole.start
        for part in made_by(self.into.operator, self._divided(element, whole)):
            if part.start != reached:
                raise PartsWrong(self.into, whole, f"{part} follows what ends at {reached}")
            reached = part.stop
            yield part
        if reached != whole.stop:
            raise PartsWrong(self.into, whole, f"the last part ends at {reached}")


def elements_of(program: Program, name: str, operator: Operator) -> Elements | None:
    """The elements of an operator; None if it is not splittable or its input is not connected."""
    if not isinstance(operator, SplittableOperator):
        return None
    into = name, work_port(operator)
    wire = next((target for target in program.targets.values() if target.into == into), None)
    return None if wire is None else Elements(wire.address, operator, wire.payload)
