"""Restrictions of one splittable operator: those that an author may return, their JSON in the ledger, their shares.

The queue, the deadlines and the proof know integers. A range of offsets is such integers itself. Of any other
restriction, an element has SHARES shares: each part of the work holds an interval of them, with the restriction that
the interval stands for, as JSON. A split divides the interval by the sizes of the two restrictions.
"""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, Final

from pydantic import JsonValue

from dagkit.api.adapters import Adapter, adapter_of, copied
from dagkit.api.tagged import Unwritable, tagged, untagged
from dagkit.api.work import SplittableOperator
from dagkit.engine.program.address import Address
from dagkit.engine.program.entrances import code_of
from dagkit.engine.work.item import WorkItem
from dagkit.errors import RunFailure, Scene
from dagkit.ranges import OFFSET_INFINITY, ByteKeyRange, OffsetRange, RangeFault
from dagkit.ranges.progress import SHARES
from dagkit.schema import spelled

KEPT_SHARES: Final = 2**40
"""Shares that the rest of divided work keeps at least: so often it can be divided again, however wrong sizes are."""


WRITABLE = (
    "set restriction_type to the type of what is returned, one that is written as JSON and reads back equal: a "
    "dataclass, a pydantic model, lists or tuples of such values"
)


class Restrictions:
    """The restrictions of one operator's elements."""

    def __init__(self, into: Address, operator: SplittableOperator[Any, Any]) -> None:
        self.into = into
        self._operator = operator
        self._declared = type(operator).restriction_type

    def checked(self, element: Any, given: Any, method: str) -> Any:
        """Return what a method of the author returned, as trackers take it: a pair of integers is a range of offsets.

        Raise `restriction-invalid` if it is no restriction of the declared type.
        """
        if self._declared is OffsetRange and isinstance(given, tuple):
            return self._of_pair(element, given, method)
        if self._declared is OffsetRange and isinstance(given, OffsetRange | ByteKeyRange):
            return given
        if self._declared is OffsetRange:
            advice = "return an OffsetRange, a pair of integers or a ByteKeyRange; or declare what is returned as "
            advice += "restriction_type, and write `tracker`"
            raise self._invalid(element, method, f"{given!r:.80}, which is no range", advice)
        self._written(element, given, method)
        return given

    def written(self, element: Any, restriction: Any, method: str) -> JsonValue:
        """The restriction as JSON; None for a range of offsets, which is the interval of the item itself."""
        if isinstance(restriction, OffsetRange):
            return None
        if self._declared is OffsetRange and isinstance(restriction, ByteKeyRange):
            return ByteKeys().dump(restriction)
        return self._written(element, restriction, method)

    def no_tracker(self, element: Any, given: Any) -> RunFailure:
        """The failure of an operator whose `tracker` returned no tracker."""
        problem = f"{given!r:.80}, which is no RestrictionTracker"
        return self._invalid(element, "tracker", problem, "return a RestrictionTracker from `tracker`")

    def of(self, item: WorkItem) -> Any:
        """The restriction of an item."""
        if item.restriction is None:
            if self._declared is not OffsetRange and item.element_id is None:
                raise self._unreadable(item, f"it is a range of offsets, and no {spelled(self._declared)}")
            return OffsetRange(item.start, item.end)
        form = ByteKeys() if self._declared is OffsetRange else self._own
        try:
            # A copy, since the type may keep members of it as they are, and the operator may change them.
            return form.load(copied(item.restriction))
        except (ValueError, TypeError, KeyError, RangeFault) as error:
            raise self._unreadable(item, str(error)) from error

    def size(self, element: Any, restriction: Any) -> float:
        """The amount of work, in the unit of the operator; 0 for work without an end."""
        with code_of(self.into.operator):
            size = self._operator.size(element, restriction)
        return size if math.isfinite(size) else 0.0

    def _of_pair(self, element: Any, given: tuple[Any, ...], method: str) -> OffsetRange:
        are_offsets = len(given) == 2 and all(isinstance(each, int) and not isinstance(each, bool) for each in given)
        advice = "return (start, stop), two integers of which the first is not the larger"
        if not are_offsets:
            raise self._invalid(element, method, f"{given!r:.80}, which is no pair of integers", advice)
        try:
            return OffsetRange(*given)
        except RangeFault as fault:
            raise self._invalid(element, method, f"{given!r:.80}: {fault}", advice) from fault

    def _form(self, restriction: Any) -> Adapter:
        return ByteKeys() if isinstance(restriction, ByteKeyRange) else self._own

    def _written(self, element: Any, given: Any, method: str) -> JsonValue:
        problem = f"{given!r:.80}, which cannot be kept as {spelled(self._declared)}"
        if isinstance(self._declared, type) and not isinstance(given, self._declared):
            raise self._invalid(element, method, problem, WRITABLE)
        try:
            return self._form(given).dump(given)
        except Unwritable as error:
            raise self._invalid(element, method, problem, WRITABLE) from error

    @cached_property
    def _own(self) -> Adapter:
        return ByteKeys() if self._declared is ByteKeyRange else adapter_of(self._declared)

    def _invalid(self, element: Any, method: str, problem: str, advice: str) -> RunFailure:
        operator = self.into.operator
        author = f"{type(self._operator).__name__}.{method}"
        return RunFailure(
            f"{operator}: {author} gave, for {element!r:.80}, {problem}",
            advice,
            Scene(operator=operator),
            code="restriction-invalid",
        )

    def _unreadable(self, item: WorkItem, reason: str) -> RunFailure:
        operator = self.into.operator
        return RunFailure(
            f"{operator}: work on {item.name:.80} waits, written by another version of its restriction: {reason}",
            "let its type read what was kept, or launch as it was before until that work is done",
            Scene(operator=operator, source=item.name),
            code="restriction-unreadable",
        )


class ByteKeys:
    """Ranges of keys as JSON: keys are bytes, and need not be text."""

    def dump(self, value: Any) -> JsonValue:
        if not isinstance(value, ByteKeyRange):
            raise Unwritable(value)
        return {"start": tagged(value.start), "stop": tagged(value.stop)}

    def load(self, data: JsonValue) -> ByteKeyRange:
        if not isinstance(data, dict):
            raise TypeError(f"{data!r:.80} is no range of keys")
        return ByteKeyRange(untagged(data["start"]), untagged(data["stop"]))


def intervals(sizes: Sequence[float], *, last_ends: bool) -> Iterator[tuple[int, int]]:
    """The shares of the parts of an element, in proportion to their sizes; each has KEPT_SHARES at least.

    If the last has no end, its shares have none.
    """
    spare = SHARES - len(sizes) * KEPT_SHARES
    weights = list(map(Fraction, sizes if any(sizes) else [1] * len(sizes)))  # floats lose shares at such lengths
    total = sum(weights)
    reached = [0, *accumulate(KEPT_SHARES + int(weight * spare / total) for weight in weights)]
    reached[-1] = SHARES if last_ends else OFFSET_INFINITY
    yield from pairwise(reached)


def divided_at(item: WorkItem, primary: float, residual: float, *, least: int) -> int:
    """Where the shares of work are divided whose parts are of these sizes; the first has so many shares at least.

    The rest keeps KEPT_SHARES while there are more; so the last of them are given out one by one.
    """
    length = item.end - item.start
    share = primary / (primary + residual) if primary + residual and item.has_end else 0.0
    return item.start + min(max(least, int(length * share)), max(1, length - KEPT_SHARES))
