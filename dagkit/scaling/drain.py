"""The policy that drains a backlog as soon as possible, with as few partitions as that takes, and does not flap.

It grows at once if that pays. It shrinks only after fewer partitions have been enough for a while: an idle partition
costs little, but too few partitions delay all pending work.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from pydantic import BaseModel, ConfigDict, NonNegativeInt, PositiveInt

from dagkit.scaling.policy import LONGEST_MILLIS, Decision, ScalingInputs, ScalingPolicy, available

NOTHING_WAITS = "no pending work"
UNMEASURED = "as many as can work at once, because no speed is measured yet"
ALL = "as many as can work at once"
ENOUGH = "as few as process it in time"
TOO_MANY = "more than max_partitions"
TOO_FEW = "fewer than min_partitions"
FITS = "the current number fits"
NO_GAIN = "more would not be worth the change"
COOLING = "fewer would suffice, but not for long enough yet"

ALIKE = 0.5
"""The share of a window's overhead by which the work may take longer, for the sake of fewer partitions."""
WORTH = 1.1
"""The factor by which a change must reduce the time, or the number of partitions."""
GROWTH_MILLIS = 5_000.0
"""The least work for which further cores are requested: the cluster takes about this time to start them."""
MOST_PATIENCE = 32


@dataclass(frozen=True, slots=True)
class DrainEstimate:
    """Estimates the time to drain a backlog with a given number of partitions."""

    inputs: ScalingInputs

    @property
    def work_millis(self) -> float:
        """The time of one slot alone, without the cost of windows."""
        capacity, backlog = self.inputs.capacity, self.inputs.backlog
        assert capacity.positions_per_second, "an estimate needs a measured speed"
        return backlog.positions * 1000 / capacity.positions_per_second

    def millis(self, count: int) -> float:
        capacity, backlog = self.inputs.capacity, self.inputs.backlog
        work = self.work_millis / max(1, min(count, capacity.most_cores, backlog.pieces))
        return work + self._overhead(count, work)

    def _overhead(self, count: int, work: float) -> float:
        capacity = self.inputs.capacity
        rounds = ceil(count / max(1, capacity.cores))
        windows = max(1, ceil(work / LONGEST_MILLIS))
        return windows * (capacity.window_millis + capacity.slot_millis * rounds)

    def fewest(self, most: int, target_millis: float) -> int:
        """The fewest partitions that finish about as soon as `most`, or within the target."""
        soonest, capacity = self.millis(most), self.inputs.capacity
        limit = max(target_millis, soonest + ALIKE * capacity.window_millis)
        left = limit - self._overhead(most, self.work_millis / most)
        return min(most, max(1, ceil(self.work_millis / left))) if left > 0 else most


class DrainMemory(BaseModel):
    """What the policy remembers of its earlier decisions."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    shrunk_at_millis: int | None = None
    low_since_millis: int | None = None
    """The time since which fewer partitions would have been enough."""
    low_half_millis: int | None = None
    """The start of the current half of a cool-down."""
    low_most: int = 0
    """The most partitions needed in the current half."""
    low_most_before: int = 0
    """The most partitions needed in the half before; earlier needs are forgotten."""
    patience: PositiveInt = 1
    """The factor of the cool-down: it doubles with each reduction that was soon reversed."""


class Drain(ScalingPolicy):
    """As many partitions as drain the backlog soonest, within the bounds and the cores of the cluster."""

    name = "drain"

    target_drain_millis: NonNegativeInt = 0
    """The time in which to drain a backlog, with as few partitions as that takes; 0: as soon as possible."""
    cool_down_millis: NonNegativeInt = 10_000
    """How long fewer partitions must have been enough before the policy reduces them."""

    def decide(self, inputs: ScalingInputs) -> Decision:
        return _Deciding(self, inputs, DrainMemory.model_validate(inputs.memory)).decision()

    def explain(self, inputs: ScalingInputs, after: int) -> Sequence[str]:
        """The cores, and the estimated times with the counts before and after."""
        parts = [available(inputs.capacity)]
        if inputs.capacity.positions_per_second and inputs.backlog.positions:
            estimate, counts = DrainEstimate(inputs), sorted({inputs.before, after})
            parts.append(" and ".join(f"{estimate.millis(count) / 1000:.3g} s with {count}" for count in counts))
        return parts


@dataclass(frozen=True, slots=True)
class _Deciding:
    """One decision."""

    policy: Drain
    inputs: ScalingInputs
    memory: DrainMemory

    def decision(self) -> Decision:
        wanted, rule = self._wanted()
        before, settings = self.inputs.before, self.inputs.settings
        least, most = settings.min_partitions, settings.max_partitions
        if most is not None and before > most:
            return self._changed(max(wanted, least), TOO_MANY)
        if before < least:
            return self._changed(max(wanted, least), TOO_FEW if wanted <= least else rule)
        if wanted < before:
            return self._fewer(wanted, rule)
        # Without the rest: the time in which fewer were enough is over.
        memory = DrainMemory(shrunk_at_millis=self.memory.shrunk_at_millis, patience=self.memory.patience)
        if wanted == before:
            return _decided(before, FITS, memory)
        if not self._pays(wanted):
            return _decided(before, NO_GAIN, memory)
        return self._changed(wanted, rule)

    def _wanted(self) -> tuple[int, str]:
        """The best count, regardless of the current one, and the rule."""
        settings, capacity, backlog = self.inputs.settings, self.inputs.capacity, self.inputs.backlog
        least = settings.min_partitions
        if not backlog.blocks:
            return least, NOTHING_WAITS
        most = max(least, min(self._reach(), max(backlog.pieces, backlog.endless, 1)))
        if not capacity.positions_per_second:
            return most, UNMEASURED
        enough = DrainEstimate(self.inputs).fewest(most, self.policy.target_drain_millis)
        wanted = max(least, enough, min(most, backlog.endless))
        return wanted, ALL if wanted == most else ENOUGH

    def _reach(self) -> int:
        """The most slots that can run at once; up to twice as many if the cluster can grow in time."""
        capacity, settings = self.inputs.capacity, self.inputs.settings
        reach = capacity.cores
        if capacity.most_cores > capacity.cores and capacity.positions_per_second:
            work = DrainEstimate(self.inputs).work_millis / max(1, capacity.cores)
            if work > max(GROWTH_MILLIS, self.policy.target_drain_millis):
                reach = min(capacity.most_cores, 2 * capacity.cores)
        return max(1, min(reach, settings.max_partitions or reach))

    def _pays(self, wanted: int) -> bool:
        """Whether more partitions are worth a change, which costs about a window."""
        inputs = self.inputs
        # No time can be estimated: without a speed, or for work without an end, which shares slots by turns.
        if not inputs.capacity.positions_per_second or inputs.backlog.endless > inputs.before:
            return True
        estimate = DrainEstimate(inputs)
        now, then = estimate.millis(inputs.before), estimate.millis(wanted)
        return now > max(self.policy.target_drain_millis, WORTH * (then + inputs.capacity.window_millis))

    def _fewer(self, wanted: int, rule: str) -> Decision:
        """Reduce the count once clearly fewer have been enough for the cool-down."""
        memory, at = self._lower(wanted), self.inputs.at_millis
        assert memory.low_since_millis is not None, "it is low now"
        most = max(memory.low_most, memory.low_most_before)
        if at - memory.low_since_millis >= self._cool_down and WORTH * most <= self.inputs.before:
            return self._changed(most, rule)
        return _decided(self.inputs.before, COOLING, memory)

    def _lower(self, wanted: int) -> DrainMemory:
        """The memory of a time in which fewer are enough: the most needed in its last two halves."""
        memory, at = self.memory, self.inputs.at_millis
        if memory.low_since_millis is None or memory.low_half_millis is None:
            return memory.model_copy(update={"low_since_millis": at, "low_half_millis": at, "low_most": wanted})
        if at - memory.low_half_millis < self._cool_down / 2:
            return memory.model_copy(update={"low_most": max(wanted, memory.low_most)})
        return memory.model_copy(update={"low_half_millis": at, "low_most": wanted, "low_most_before": memory.low_most})

    @property
    def _cool_down(self) -> int:
        return self.policy.cool_down_millis * self.memory.patience

    def _changed(self, after: int, rule: str) -> Decision:
        """A change. If it soon reverses a reduction, the next reduction waits longer."""
        shrunk, at, patience = self.memory.shrunk_at_millis, self.inputs.at_millis, self.memory.patience
        shrinks = after < self.inputs.before
        if not shrinks and shrunk is not None:
            soon = at - shrunk < 2 * self._cool_down
            patience = min(MOST_PATIENCE, 2 * patience) if soon else max(1, patience // 2)
        return _decided(after, rule, DrainMemory(shrunk_at_millis=at if shrinks else shrunk, patience=patience))


def _decided(after: int, rule: str, memory: DrainMemory) -> Decision:
    return Decision(after, rule, memory.model_dump(mode="json"))
