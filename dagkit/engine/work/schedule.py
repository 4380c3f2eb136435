"""Schedule the work of each window from the measurements of earlier windows. Pure.

The loop and `dagkit.simulation` use the same scheduler, so that a simulation behaves as a run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

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
from dagkit.engine.work.window_size import WindowSizer
from dagkit.scaling.policy import LONGEST_MILLIS

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
        return bool(allocated) and not self.made and all(item.in_vain or not item.has_end for item in allocated)

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
        """Take the work of the next window from the queue. The driver may deliver what it makes after the commit."""
        forecast, by_input = CostEstimate(self.pace.usual), self._by_input(slots)
        length = self.pace.next(max(by_input.values(), default=0.0), is_delivered=is_delivered and overlaps)
        work = {into: min(millis, length.work_millis) for into, millis in by_input.items()}
        cutter = SplitPlanner(forecast, cuts, self.patience, window_id)
        allocation = self.queue.take(slots, work, cutter, besides=0.0 if overlaps else BESIDES)
        lasts = length.lasts_millis
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
