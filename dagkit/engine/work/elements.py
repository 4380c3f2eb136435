"""Elements of a splittable operator: what work they stand for, and how they are written and read back."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from pydantic import JsonValue

from dagkit.api.operators import Operator
from dagkit.api.work import SplittableOperator, is_placed, is_sourced, work_port
from dagkit.engine.address import Address
from dagkit.engine.codec import JsonCodec
from dagkit.engine.program.program import Program
from dagkit.engine.work.item import Number, WorkItem, name_of
from dagkit.errors import RunFailure, Scene
from dagkit.ranges import OffsetRange, split_near


class PartsWrong(RunFailure):
    """A splittable operator divided an element into parts that are not the whole."""

    code = "parts-mismatched"

    def __init__(self, into: Address, whole: OffsetRange, told: str) -> None:
        super().__init__(
            f"{into.operator}.split divided {whole} so that {told}",
            "yield parts that touch, from its start to its end",
            Scene(into.operator),
        )


class TruncatedWrong(RunFailure):
    """A splittable operator should drain, and returned other work than it was asked about."""

    code = "truncation-invalid"

    def __init__(self, into: Address, whole: OffsetRange, kept: OffsetRange) -> None:
        super().__init__(
            f"{into.operator}.truncate made {kept} of {whole}",
            "return the part that is still done, from its start on, or None",
            Scene(into.operator),
        )


class ElementUnreadable(RunFailure):
    """The payload type of today cannot read an element that waits."""

    code = "element-unreadable"

    def __init__(self, into: Address, element: JsonValue, error: Exception) -> None:
        super().__init__(
            f"{element!r:.80} waits for {into}, written by another version of its payload, and this one cannot read "
            f"it: {error}",
            "let its type read what was kept, or launch the earlier version until that work is done",
            Scene(into.operator),
        )


class Elements:
    """The elements of one splittable operator: what work they are, and how they are written and read back."""

    def __init__(self, into: Address, operator: SplittableOperator[Any], payload: Any) -> None:
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
    def of(cls, program: Program) -> dict[Address, "Elements"]:
        """Of all splittable operators, by the input that they come in at, on the driver."""
        found = (elements_of(program, name, operators[0]) for name, operators in program.operators.items())
        return {elements.into: elements for elements in found if elements is not None}

    def work_of(self, element: Any, number: Number, source: str | None = None) -> Iterator[WorkItem]:
        """All that an element stands for, in the parts that the operator makes of it.

        The ledger knows it by the `source`, else by the name that its payload gives it, else by its own JSON.
        """
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
                size=self.operator.size(element, part) if self._is_sized else None,
            )

    def back(self, each: WorkItem) -> Any:
        """The element; of one that is a stretch of a source, the part that waits."""
        try:
            element = self._written.back(each.element)
        except (ValueError, TypeError) as error:
            raise ElementUnreadable(self.into, each.element, error) from error
        return element.part(each.start, each.end) if is_sourced(element) else element

    def truncated(self, each: WorkItem) -> tuple[WorkItem | None, WorkItem | None]:
        """What of it is still done when the application drains, and what waits for a later launch."""
        kept = self.operator.truncate(self.back(each), each.restriction)
        if kept is None:
            return None, each
        if kept.start != each.start or kept.stop > each.end:
            raise TruncatedWrong(self.into, each.restriction, kept)
        if kept.stop == each.end:
            return each, None
        later = each.part(kept.stop, each.end)
        return (each.part(each.start, kept.stop) if kept.stop > each.start else None), later

    def cut_near(self, each: WorkItem, position: int) -> int | None:
        """Where what waits may be cut near a position: its tracker says; None: nowhere."""
        tracker = self.operator.tracker(self.back(each), each.restriction)
        # the share is of what lies after the offset before the first: a tracker stands there that has claimed nothing
        split = split_near(tracker, position, (position - each.start + 1) / (each.end - each.start + 1))
        return None if split is None else split.primary.stop

    def _whole(self, element: Any) -> OffsetRange:
        if is_sourced(element):
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


def elements_of(program: Program, name: str, operator: Operator) -> Elements | None:
    """The elements of an operator, if it is splittable; an input has one wire."""
    if not isinstance(operator, SplittableOperator):
        return None
    into = name, work_port(operator)
    wire = next((target for target in program.targets.values() if target.into == into), None)
    return None if wire is None else Elements(wire.address, operator, wire.payload)
