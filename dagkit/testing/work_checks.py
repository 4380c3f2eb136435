"""Checks that the work of a splittable operator on an element can be split, treating it as a source of records."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from dagkit.api.work import SplittableOperator, is_sourced
from dagkit.ranges import OffsetRange, PositionUnmeasured, RestrictionTracker, Split, split_near
from dagkit.schema.batch import Batch
from dagkit.testing.alone import Alone, split
from dagkit.testing.split_checks import SplitsBroken, SplitsProven, check_every_split

T = TypeVar("T")


def check_every_split_of(
    operator: SplittableOperator[T],
    element: T,
    within: OffsetRange | None = None,
    *,
    output: str | None = None,
    positions: Sequence[int] | None = None,
) -> SplitsProven:
    """Check that an operator sends the same items of an element however its work is split; else raise SplitsBroken.

    The work is split as the engine splits it, by the operator's own tracker: at each position, after every item, and
    while a thread processes it; another instance processes the residual meanwhile. Deferred work resumes at once. For
    work without an end, give a range `within`. The check compares the items of the main output or the named one.
    """
    work = _Work(operator, element, within, output)
    every = range(work.whole.start + 1, work.whole.stop) if positions is None else positions
    if not work.whole.is_bounded():
        raise PositionUnmeasured(work.whole.start, "the work has no end; check it within a range")
    near = (work.cut_near(position) for position in every)
    return check_every_split(work, every, sorted({cut for cut in near if cut is not None}))


class _Work:
    """The work on one element. Work that runs at the same time runs in separate instances, as in two slots."""

    def __init__(
        self,
        operator: SplittableOperator[Any, OffsetRange],
        element: Any,
        within: OffsetRange | None,
        output: str | None,
    ) -> None:
        self.operator = operator
        self.element = element
        self.output = output
        whole = operator.initial_restriction(element) if within is None else within
        self.whole = OffsetRange(*whole) if isinstance(whole, tuple) else whole
        self._idle: list[Alone[SplittableOperator[Any]]] = []

    def range_tracker(self, start: int | None, stop: int | None) -> "_Part":
        """A tracker of the work between two offsets."""
        part = OffsetRange(
            self.whole.start if start is None else start,
            self.whole.stop if stop is None else stop,
        )
        element = self.element
        if is_sourced(element):
            element = element.part(part.start, part.stop)
        return _Part(element, self.operator.tracker(element, part))

    def cut_near(self, position: int) -> int | None:
        """The position nearest to `position` at which the tracker lets unstarted work be cut; None if there is none."""
        tracker = self.operator.tracker(self.element, self.whole)
        # The half makes up for rounding in trackers that know fractions only.
        taken = split_near(tracker, position, (position - self.whole.start + 1.5) / (self.whole.size + 1))
        return None if taken is None else taken.residual.start

    def read(self, tracker: "_Part") -> Iterator[Any]:
        """Yield the items sent, one by one; the operator resumes when the next one is requested."""
        alone = self._idle.pop() if self._idle else Alone(self.operator)
        made = alone.operator.process(tracker.element, tracker.work)
        if made is None:
            raise SplitsBroken(f"{type(self.operator).__name__}.process sends all at once; let it yield, to be checked")
        for one in made:
            yielded = list(one.items()) if isinstance(one, Batch) else [one]
            yield from alone.sent(self.output)
            if self.output is None:
                yield from yielded
        yield from alone.sent(self.output)
        tracker.work.check_done()
        self._idle.append(alone)
        deferred = tracker.work.deferred()
        if deferred is not None:
            if deferred.residual.start == tracker.start_position():
                raise SplitsBroken(f"{deferred.residual} was deferred as a whole, which would repeat for ever")
            yield from self.read(self.range_tracker(deferred.residual.start, deferred.residual.stop))


class _Part:
    """Part of an element's work, split by position."""

    def __init__(self, element: Any, work: RestrictionTracker[OffsetRange, int]) -> None:
        self.element = element
        self.work = work

    def start_position(self) -> int:
        return self.work.current_restriction().start

    def stop_position(self) -> int:
        return self.work.current_restriction().stop

    def position_at_fraction(self, fraction: float) -> int:
        whole = self.work.current_restriction()
        return whole.start + round(whole.size * fraction)

    def try_split_at_position(self, position: int) -> Split[int] | None:
        """Split as the engine does: never before the first claim, and only where the operator's tracker allows it."""
        residual = split(self.work, position) if self.work.is_started() else None
        return None if residual is None else Split(residual.start, None, residual.stop)
