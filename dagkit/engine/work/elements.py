"""The elements of a splittable operator: the work that they describe, and their JSON form."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import Any

from pydantic import JsonValue

from dagkit.api.operators import Operator, main_outlet
from dagkit.api.ports import Outlet
from dagkit.api.work import SplittableOperator, is_placed, is_sourced, work_port
from dagkit.engine.program.address import Address, SourceKey
from dagkit.engine.program.codec import JsonCodec
from dagkit.engine.program.entrances import code_of, made_by
from dagkit.engine.program.program import Program
from dagkit.engine.work.item import NO_TIMES, ItemTimes, Number, WorkItem, name_of
from dagkit.engine.work.restrictions import KEPT_SHARES, Restrictions, divided_at, intervals
from dagkit.engine.work.split import Pieces
from dagkit.errors import RunFailure, Scene
from dagkit.ranges import (
    ByteKeyRange,
    OffsetRange,
    RestrictionTracker,
    UnsplittableRestrictionTracker,
    aware,
    split_near,
)


def _parts_mismatched(into: Address, whole: Any, problem: str) -> RunFailure:
    """A splittable operator split an element into parts that do not cover it exactly."""
    return RunFailure(
        f"{into.operator}.split divided {whole} so that {problem}",
        "yield parts that touch, from its start to its end",
        Scene(into.operator),
        code="parts-mismatched",
    )


def _truncation_invalid(into: Address, whole: Any, kept: Any) -> RunFailure:
    """A splittable operator that drains returned a range that is no first part of the given one."""
    return RunFailure(
        f"{into.operator}.truncate made {kept} of {whole}",
        "return the part that is still done, from its start on, or None",
        Scene(into.operator),
        code="truncation-invalid",
    )


def _element_unreadable(into: Address, element: JsonValue, error: Exception) -> RunFailure:
    """The present payload type cannot read a pending element."""
    return RunFailure(
        f"{element!r:.80} waits for {into}, written by another version of its payload, and this one cannot read "
        f"it: {error}",
        "let its type read what was kept, or launch the earlier version until that work is done",
        Scene(into.operator),
        code="element-unreadable",
    )


class Elements:
    """The elements of one splittable operator: the work that they describe, and their JSON form."""

    def __init__(self, into: Address, operator: SplittableOperator[Any, Any], payload: Any) -> None:
        self.into = into
        self.operator = operator
        self.restrictions = Restrictions(into, operator)
        self.payload = payload
        self._takes_offsets = type(operator).restriction_type is OffsetRange
        self._is_sized = type(operator).size is not SplittableOperator.size
        self._knows_earliest = type(operator).earliest is not SplittableOperator.earliest

    @property
    def name(self) -> str:
        """The name of the operator."""
        return self.into.operator

    @cached_property
    def outlet(self) -> Outlet[Any] | None:
        """The main outlet of the operator, for the items that `process` yields."""
        return main_outlet(self.operator)

    @cached_property
    def _written(self) -> JsonCodec:
        return JsonCodec(self.into, self.payload)

    def code(self) -> code_of:
        """Enter the code of the operator."""
        return code_of(self.name)

    @classmethod
    def of(cls, program: Program) -> dict[Address, "Elements"]:
        """The elements of all splittable operators on the driver, by input."""
        found = (elements_of(program, name, operators[0]) for name, operators in program.operators.items())
        return {elements.into: elements for elements in found if elements is not None}

    def work_of(
        self,
        element: Any,
        number: Number,
        source: str | None = None,
        *,
        not_before: datetime | None = None,
        written: JsonValue = None,
    ) -> Iterator[WorkItem]:
        """Yield the work that an element describes, in the parts that the operator splits it into.

        `written` is its JSON, if that is known. The ledger names it by the `source`, else by the source in its payload,
        else by its own JSON. `not_before` is the watermark when it was found, for elements whose operator does not know
        their earliest event time.
        """
        if self._knows_earliest:
            with self.code():
                known = self.operator.earliest(element)
                not_before = not_before if known is None else aware(known)
        with self.code():
            whole = self._whole(element)
        written = self._written.of(element) if written is None else written
        if source is None:
            source = element.source if is_placed(element) else name_of(written)
        element_id = element.number if is_sourced(element) else None
        times = NO_TIMES if not_before is None else ItemTimes(None, not_before)
        for start, end, part in self._parts(element, whole):
            restriction = self.restrictions.written(element, part, "split")
            is_sized = self._is_sized or restriction is not None
            yield WorkItem(
                into=self.into,
                number=number,
                element=written,
                start=start,
                end=end,
                source=source,
                element_id=element_id,
                size=self.restrictions.size(element, part) if is_sized else None,
                restriction=restriction,
                times=times,
            )

    def back(self, item: WorkItem) -> Any:
        """Decode the element. If it is a stretch of a source, return its pending part."""
        try:
            element = self._written.back(item.element)
        except (ValueError, TypeError) as error:
            raise _element_unreadable(self.into, item.element, error) from error
        return element.part(item.start, item.end) if is_sourced(element) else element

    def restriction(self, item: WorkItem) -> Any:
        """Return the restriction of an item."""
        if item.restriction is None and self._takes_offsets:
            return OffsetRange(item.start, item.end)
        return self.restrictions.of(item)

    def tracker(self, item: WorkItem, element: Any) -> RestrictionTracker[Any, Any]:
        """Return the tracker of an item; the last share of an element is not split."""
        tracker = self._tracker(element, self.restriction(item))
        return UnsplittableRestrictionTracker(tracker) if item.restriction is not None and item.length == 1 else tracker

    def _tracker(self, element: Any, restriction: Any) -> RestrictionTracker[Any, Any]:
        with self.code():
            tracker = self.operator.tracker(element, restriction)
        if not isinstance(tracker, RestrictionTracker):
            raise self.restrictions.no_tracker(element, tracker)
        return tracker

    def rest_of(self, item: WorkItem, element: Any, tracker: RestrictionTracker[Any, Any], residual: Any) -> WorkItem:
        """Return the item that a split of a running item left, with what was done before it."""
        residual = self._checked(element, residual, "tracker")
        if item.restriction is None:
            rest, seen = item.part(residual.start, residual.stop), tracker.seen_end()
            completed = item.done.completed + (rest.start - item.start) * item.density
            seen_end = 0 if rest.has_end else item.done.seen_end if seen is None else seen
            return replace(rest, done=rest.done._replace(completed=completed, seen_end=seen_end))
        if not tracker.is_started():
            return self._holding(item, element, residual, item.start, item.end)
        done, left = (self.restrictions.size(element, part) for part in (tracker.current_restriction(), residual))
        rest = self._holding(item, element, residual, divided_at(item, done, left, least=1), item.end)
        return replace(rest, done=rest.done._replace(completed=item.done.completed + done))

    def source_to_report(self, item: WorkItem, rest: WorkItem | None) -> str | None:
        """The source whose watermark an item reports when it has been processed; None if it reports none.

        Each source that grows has its own, which only progress renews, so that it can become idle. All others share
        the name "".
        """
        if not self.operator.sources_grow or item.source is None:
            return ""
        return item.source if rest is None or rest.start > item.start else None

    def set_aside_for(self, item: WorkItem | None, error: Exception) -> SourceKey | None:
        """Return the source of an item if its operator, which raised `error`, sets it aside; None: the run ends."""
        if item is None or item.source is None or not item.has_end or not self.operator.sets_aside(error):
            return None
        return item.into, item.source

    def halved(self, item: WorkItem, element: Any, tracker: RestrictionTracker[Any, Any]) -> Pieces | None:
        """Divide an item that is processed. Half of the unclaimed work is the second piece. None if impossible."""
        if item.restriction is not None:
            return self._cut_at(item, element, tracker, 0.5)
        split = tracker.try_split(0.5)
        if split is None:
            return None
        at = self._checked(element, split.residual, "tracker").start
        return item.part(item.start, at), item.part(at, item.end)

    def truncated(self, item: WorkItem) -> tuple[WorkItem | None, WorkItem | None]:
        """Return the part that is still done when the application drains, and the part left to a later launch."""
        element, whole = self.back(item), self.restriction(item)
        with self.code():
            kept = self.operator.truncate(element, whole)
        if kept is None:
            return None, item
        kept = self._checked(element, kept, "truncate")
        if item.restriction is not None:
            # All or nothing: after a crash, the operator might divide it elsewhere.
            if self.restrictions.written(element, kept, "truncate") != item.restriction:
                raise _truncation_invalid(self.into, whole, kept)
            return item, None
        if kept.start != item.start or kept.stop > item.end:
            raise _truncation_invalid(self.into, whole, kept)
        if kept.stop == item.end:
            return item, None
        later = item.part(kept.stop, item.end)
        return (item.part(item.start, kept.stop) if kept.stop > item.start else None), later

    def cut_near(self, item: WorkItem, position: int) -> int | Pieces | None:
        """Return where the tracker of an item allows a split near a position, or the pieces; None if nowhere."""
        element = self.back(item)
        tracker = self._tracker(element, self.restriction(item))
        if item.restriction is not None:
            return self._cut_at(item, element, tracker, (position - item.start) / (item.end - item.start))
        # the share counts from the offset before the first one: that is where a tracker without a claim stands
        with self.code():
            split = split_near(tracker, position, (position - item.start + 1) / (item.end - item.start + 1))
        return None if split is None else self._checked(element, split.primary, "tracker").stop

    def _cut_at(
        self, item: WorkItem, element: Any, tracker: RestrictionTracker[Any, Any], share: float
    ) -> Pieces | None:
        if item.length < 2 * KEPT_SHARES:
            return None
        with self.code():
            split = tracker.try_split(share)
        if split is None:
            return None
        sizes = [self.restrictions.size(element, self._checked(element, part, "tracker")) for part in split]
        at = divided_at(item, *sizes, least=KEPT_SHARES)
        first = self._holding(item, element, split.primary, item.start, at)
        return first, self._holding(item, element, split.residual, at, item.end)

    def _holding(self, item: WorkItem, element: Any, restriction: Any, start: int, end: int) -> WorkItem:
        """Return the part of an item that holds these shares."""
        written = self.restrictions.written(element, restriction, "tracker")
        size = self.restrictions.size(element, restriction)
        return replace(item.part(start, end), restriction=written, size=size)

    def _checked(self, element: Any, given: Any, method: str) -> Any:
        if self._takes_offsets and isinstance(given, OffsetRange):
            return given
        return self.restrictions.checked(element, given, method)

    def _whole(self, element: Any) -> Any:
        if is_sourced(element):
            return OffsetRange(element.start, element.end)
        with self.code():
            whole = self.operator.initial_restriction(element)
        return self._checked(element, whole, "initial_restriction")

    def _divided(self, element: Any, whole: Any) -> Iterator[Any]:
        # A generator calls `split` at the first step, which `made_by` enters: `split` may be a plain function.
        yield from self.operator.split(element, whole)

    def _parts(self, element: Any, whole: Any) -> Iterator[tuple[int, int, Any]]:
        divided = made_by(self.into.operator, self._divided(element, whole))
        parts = (self._checked(element, part, "split") for part in divided)
        return (
            _touching(self.into, whole, parts)
            if isinstance(whole, OffsetRange)
            else self._shared(element, whole, parts)
        )

    def _shared(self, element: Any, whole: Any, parts: Iterable[Any]) -> Iterator[tuple[int, int, Any]]:
        """Parts of a restriction that is no range of offsets, with the shares of each."""
        made = list(parts)
        if not made:
            raise _parts_mismatched(self.into, whole, "there is no part")
        if isinstance(whole, ByteKeyRange):
            made = [part for _, _, part in _touching(self.into, whole, made)]
        trackers = [self._tracker(element, part) for part in made]
        with self.code():
            bounded = [tracker.is_bounded() for tracker in trackers]
        if not all(bounded[:-1]):
            raise _parts_mismatched(
                self.into, whole, f"{made[bounded.index(False)]!r:.80} has no end and is not the last"
            )
        sizes = [self.restrictions.size(element, part) for part in made]
        for (start, end), part in zip(intervals(sizes, last_ends=bounded[-1]), made, strict=True):
            yield start, end, part


def _touching(into: Address, whole: Any, parts: Iterable[Any]) -> Iterator[tuple[Any, Any, Any]]:
    """Parts of a range of offsets or of keys, one by one: there may be many."""
    reached = whole.start
    for part in parts:
        if part.start != reached:
            raise _parts_mismatched(into, whole, f"{part} follows what ends at {reached!r}")
        reached = part.stop
        yield part.start, part.stop, part
    if reached != whole.stop:
        raise _parts_mismatched(into, whole, f"the last part ends at {reached!r}")


def elements_of(program: Program, name: str, operator: Operator) -> Elements | None:
    """The elements of an operator; None if it is not splittable or its input is not connected."""
    if not isinstance(operator, SplittableOperator):
        return None
    into = name, work_port(operator)
    wire = next((target for target in program.targets.values() if target.into == into), None)
    return None if wire is None else Elements(wire.address, operator, wire.payload)
