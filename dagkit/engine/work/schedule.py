"""Schedule the work of each window, and choose its length, from the measurements of earlier windows. Pure.

The loop and `dagkit.simulation` use the same scheduler, so that a simulation behaves as a run.

Each window has an overhead, and a slot without more work waits for the others until the window is over. Its wait
depends on the error of the forecast: long windows are best if it is accurate, short ones if it is not. With the backlog
T, the overhead h of a window and the error r, windows of sqrt(T h / r) have the lowest total cost; they get shorter as
the backlog does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import sqrt
from typing import NamedTuple

from dagkit.engine.program.address import Address
from dagkit.engine.program.facts import Split
from dagkit.engine.work.cost import CostEstimate, learnt
from dagkit.engine.work.item import WindowPromise, WorkItem
from dagkit.engine.work.queue import WorkQueue
from dagkit.engine.work.split import (
    Allocation,
    CutNear,
    ItemEnd,
    Pieces,
    PlannedSplit,
    SlotResult,
    SplitBackoff,
    SplitPlanner,
    all_in,
    place_in,
)
from dagkit.scaling.policy import LONGEST_MILLIS

FIRST_POSITIONS = 512 << 20
"""The work of a slot before any measurement: more than it reads in time, since unread work costs nothing."""
FIRST_MILLIS = 1_000.0
"""The shortest first window: it includes loading the programs."""
FIRST_PER_MILLI = 100_000
"""The assumed reading speed of a slot per millisecond before any measurement."""
LEAST_ERROR = 0.02
"""The lowest error that is assumed of any forecast."""
SOMEWHAT_WRONG = 0.1
"""Up to this error a window may run longer to end the backlog; above it, the next window shares out late work again."""
_KEPT = 0.9
"""The weight of earlier measurements beside the newest window."""
_RISING = 1.25
"""The largest growth of the overhead in one window: other load may have delayed a single window."""


class WindowLength(NamedTuple):
    """The duration of a window and the amount of its work."""

    lasts_millis: float
    """After this time slots begin no new work, and work in progress is split."""
    work_millis: float
    """The amount of work to allocate to each slot."""


@dataclass(frozen=True, slots=True)
class WindowSizer:
    """The measurements so far."""

    shortest_millis: float
    """STREAMING_WINDOW_SIZE_MILLIS: the length of a window with little work."""
    positions: float = 0.0
    millis: float = 0.0
    """The positions that all slots read recently, and their busy time in total."""
    overhead_millis: float = 100.0
    """The overhead of a window."""
    error: float = LEAST_ERROR
    """The recent error of forecasts: 0 is exact, 1 is as bad as no forecast."""
    hands_over: bool = False
    """Whether slots hand work over, so that no slot waits long for another, whatever the error of the forecast."""

    @property
    def usual(self) -> float | None:
        """Milliseconds per position; None before any measurement."""
        return self.millis / self.positions if self.positions else None

    def after(self, positions: float, busy_millis: float) -> "WindowSizer":
        """Return the measurements including one window: the positions and the busy time of all slots."""
        if positions <= 0 or busy_millis <= 0:
            return self
        return replace(self, positions=_KEPT * self.positions + positions, millis=_KEPT * self.millis + busy_millis)

    def after_window(self, whole_millis: float, busiest_millis: float) -> "WindowSizer":
        """Return the measurements including the overhead of a window: its duration without that of its busiest slot."""
        seen = max(0.0, whole_millis - busiest_millis)
        return replace(self, overhead_millis=max(1.0, min(seen, _RISING * self.overhead_millis)))

    def after_forecast(self, expected: Sequence[float], took: Sequence[float]) -> "WindowSizer":
        """Return the measurements including the forecast error of a window: expected and actual times by slot.

        If all slots were slower by the same factor, none waited, and the forecast counts as right. One slot alone never
        waits.
        """
        if len(took) < 2 or sum(expected) <= 0 or sum(took) <= 0:
            return self
        slower = sum(took) / sum(expected)
        off = sum(abs(t - slower * e) for e, t in zip(expected, took, strict=True)) / sum(took)
        # A wrong forecast counts at once, and is forgotten by halves.
        return replace(self, error=min(1.0, max(LEAST_ERROR, off, (off + self.error) / 2)))

    def next(self, backlog: float, *, is_delivered: bool = False) -> WindowLength:
        """Return the next window for a backlog per slot, in milliseconds, or in positions while nothing is measured.

        If the driver delivers the results of each window while slots work on the next one, slots wait for the delivery
        of the last one as if its forecast were all wrong.
        """
        if self.usual is None:
            lasts = min(max(FIRST_MILLIS, backlog / FIRST_PER_MILLI), LONGEST_MILLIS / 4)
            return WindowLength(max(self.shortest_millis, lasts), FIRST_POSITIONS)
        longest = max(self.shortest_millis, LONGEST_MILLIS)
        error = 1.0 if is_delivered else LEAST_ERROR if self.hands_over else self.error
        best = min(max(self.shortest_millis, sqrt(backlog * self.overhead_millis / error)), longest)
        if backlog <= best * 1.25:
            late = 2 * self.error * backlog + self.overhead_millis if self.error <= SOMEWHAT_WRONG else 0.0
            return WindowLength(max(self.shortest_millis, backlog + late), backlog)
        return WindowLength(best, best)


SHARED_MILLIS = 200.0
"""The expected time of a slot from which on its window has a board: a shorter one would not gain what that costs."""
BESIDES = 2.0
"""How much spare work a slot gets, as a multiple of its share, if no other window begins before this one ends."""


@dataclass(frozen=True)
class WindowSchedule:
    """The work of one window."""

    allocation: Allocation
    lasts_millis: float
    forecast: CostEstimate
    """The estimate that the allocation is based on."""
    made: tuple[PlannedSplit, ...] = ()
    """The cuts that were made for the allocation."""
    promised: WindowPromise | None = None
    """The promise that it fulfils, if a launch before this one made it: that one holds the cuts."""
    handed: tuple[Split, ...] = ()
    """The splits of work that slots handed over; `allocation` is the one after them."""

    @cached_property
    def cuts(self) -> tuple[Split, ...]:
        """The facts of the cuts. Simulations do not ask for them."""
        return tuple(cut.fact for cut in self.made) if self.promised is None else self.promised.cuts

    @property
    def pieces(self) -> Sequence[Pieces]:
        """The two pieces of each cut; of a promise, only those that an operator made."""
        return [cut.pieces for cut in self.made] if self.promised is None else self.promised.divided

    @property
    def places(self) -> frozenset[ItemEnd]:
        """The positions of the cuts between offsets: pieces that were not begun are joined there again."""
        return frozenset(place_in(rest, rest.start) for _, rest in self.pieces if rest.restriction is None)

    @property
    def divided(self) -> tuple[Pieces, ...]:
        """The items that an operator divided."""
        return tuple(pieces for pieces in self.pieces if pieces[0].restriction is not None)

    @property
    def polls(self) -> bool:
        """Whether all its work has no end, or had nothing to do last time: such a window may find nothing."""
        allocated = all_in(self.allocation)
        return (
            bool(allocated) and not self.made and all(item.deferral.in_vain or not item.has_end for item in allocated)
        )

    @property
    def is_worth_sharing(self) -> bool:
        """Whether a slot may have so much work that it should hand some over while the window runs."""
        if self.forecast.usual is None:
            return True
        return any(
            sum(map(self.forecast.millis, slot_items)) >= SHARED_MILLIS
            for slot_work in self.allocation.values()
            for slot_items in slot_work
        )

    def promise(self, *, last: bool) -> WindowPromise:
        """Return what `Scheduler.again` needs to allocate the same work again."""
        deal = {
            into: tuple(tuple((item.number, item.start, item.end) for item in work) for work in slot_work)
            for into, slot_work in self.allocation.items()
        }
        return WindowPromise(deal=deal, lasts_millis=self.lasts_millis, cuts=self.cuts, last=last, divided=self.divided)


@dataclass
class Scheduler:
    """Allocates the queue window by window, and learns from each window."""

    queue: WorkQueue
    pace: WindowSizer
    patience: SplitBackoff = field(default_factory=SplitBackoff)

    def backlog_millis(self, slots: Mapping[Address, int]) -> float:
        """How long a slot would be busy with its share of an input's pending work, for the input that has most."""
        return max(self._by_input(slots).values(), default=0.0)

    def next(
        self,
        window_id: int,
        slots: Mapping[Address, int],
        cuts: Mapping[Address, CutNear],
        *,
        overlaps: bool,
        is_delivered: bool = False,
    ) -> WindowSchedule:
        """Take the work of the next window from the queue.

        `is_delivered`: the driver delivers the results to an external system after the commit.
        """
        forecast, by_input = CostEstimate(self.pace.usual), self._by_input(slots)
        length = self.pace.next(max(by_input.values(), default=0.0), is_delivered=is_delivered and overlaps)
        work = {into: min(millis, length.work_millis) for into, millis in by_input.items()}
        cutter = SplitPlanner(forecast, cuts, self.patience, window_id)
        allocation = self.queue.take(slots, work, cutter, besides=0.0 if overlaps else BESIDES)
        lasts = length.lasts_millis
        # Work without an end does not end by itself, and would keep the window for the longest time.
        if self.pace.hands_over and all(item.has_end for item in all_in(allocation)):
            lasts = max(lasts, LONGEST_MILLIS)  # all slots end when there is no more work
        return WindowSchedule(allocation, lasts, forecast, tuple(cutter.made))

    def again(self, promise: WindowPromise, slots: Mapping[Address, int]) -> WindowSchedule:
        """Take the work of a promised, uncommitted window from the queue, without an estimate of its duration."""
        self.queue.divide(promise.divided)
        allocation = self.queue.take_these(promise.deal, slots)
        return WindowSchedule(allocation, promise.lasts_millis, CostEstimate(), promised=promise)

    def over(self, given: WindowSchedule, worked: Sequence[SlotResult], whole_millis: float | None = None) -> None:
        """Return the rest of an ended window to the queue, and learn from its measurements."""
        allocated = {item.end_key: item for item in all_in(given.allocation)}
        undone: dict[ItemEnd, float] = {}
        returned: list[WorkItem] = []
        for left in (left for one in worked for left in one.left):
            before = allocated.get(left.end_key)
            if before is not None:
                undone[left.end_key] = given.forecast.between(before, left.start, left.end)
            returned.append(left if before is None else learnt(before, left))
        self.queue.put_back(returned, given.places)
        expected: dict[int, float] = {}
        for slot_work in given.allocation.values():
            for slot, slot_items in enumerate(slot_work):
                did = sum(given.forecast.millis(item) - undone.get(item.end_key, 0.0) for item in slot_items)
                expected[slot] = expected.get(slot, 0.0) + did
        self._learn(given, [one for one in worked if one.work], expected, whole_millis)

    def _learn(
        self,
        given: WindowSchedule,
        busy: Sequence[SlotResult],
        expected: Mapping[int, float],
        whole_millis: float | None,
    ) -> None:
        """Learn the cost of work, the overhead of windows and the error of estimates from a window."""
        took = [one.busy_millis for one in busy]
        pace = replace(self.pace, hands_over=any(one.hands_over for one in busy)) if busy else self.pace
        if given.forecast.usual is not None:
            pace = pace.after_forecast([expected.get(one.slot, 0.0) for one in busy], took)
        if whole_millis is not None and busy:
            levels = {one.level for one in busy}  # each level begins when the level before it has ended
            longest = [max(one.busy_millis for one in busy if one.level == level) for level in levels]
            pace = pace.after_window(whole_millis, sum(longest))
        self.pace = pace.after(sum(one.work for one in busy), sum(took))

    def _by_input(self, slots: Mapping[Address, int]) -> dict[str, float]:
        forecast = CostEstimate(self.pace.usual)
        return {into: self.queue.millis(into, forecast) / max(1, count) for into, count in slots.items()}
