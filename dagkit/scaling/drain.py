"""The policy that works a backlog off as soon as it can, with as few partitions as that takes, and does not flap.

It grows at once where that pays, and shrinks only when fewer have been enough for a while: what a partition costs that
has nothing to do is little, and what it costs to come too late is the time of everybody who waits.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from dagkit.scaling.policy_inputs import LONGEST_MILLIS, Decision, Past, ScalingInputs

NOTHING_WAITS = "nothing waits"
UNMEASURED = "as many as can work at once, for nothing is measured yet"
ALL = "as many as can work at once"
ENOUGH = "as few as work it off in time"
TOO_MANY = "more than max_readers"
TOO_FEW = "fewer than min_readers"
FITS = "the count that there is"
NO_GAIN = "more would not be worth the change"
COOLING = "fewer would do, and have to do so for longer"

ALIKE = 0.5
"""What part of a window's own cost nobody minds to wait longer, for fewer partitions."""
WORTH = 1.1
"""How many times faster it must become, or how many times more there must be than needed, for a change."""
GROWTH_MILLIS = 5_000.0
"""How much work there must be for cores that the cluster does not have yet: so long it takes to get them."""
MOST_PATIENCE = 32
NOT_LOW: Mapping[str, int | None] = {
    "low_since_millis": None,
    "low_half_millis": None,
    "low_most": 0,
    "low_most_before": 0,
}


@dataclass(frozen=True, slots=True)
class Forecast:
    """How long a backlog would last with so many partitions."""

    inputs: ScalingInputs

    @property
    def work_millis(self) -> float:
        """Of one slot alone, without what windows cost."""
        per_second = self.inputs.capacity.positions_per_second
        assert per_second, "a forecast needs something that was measured"
        return self.inputs.backlog.positions * 1000 / per_second

    def millis(self, count: int) -> float:
        work = self.work_millis / max(1, min(count, self.inputs.capacity.most_cores, self.inputs.backlog.pieces))
        return work + self._own_cost(count, work)

    def _own_cost(self, count: int, work: float) -> float:
        capacity = self.inputs.capacity
        rounds = ceil(count / max(1, capacity.cores))
        windows = max(1, ceil(work / LONGEST_MILLIS))
        return windows * (capacity.window_millis + capacity.slot_millis * rounds)

    def fewest(self, most: int, target_millis: float) -> int:
        """The fewest that are about as soon done as `most`, or within the target."""
        soonest = self.millis(most)
        limit = max(target_millis, soonest + ALIKE * self.inputs.capacity.window_millis)
        left = limit - self._own_cost(most, self.work_millis / most)
        return min(most, max(1, ceil(self.work_millis / left))) if left > 0 else most


def decide_drain(inputs: ScalingInputs) -> Decision:
    """As many partitions as work the backlog off soonest, within the bounds and what the cluster has."""
    wanted, rule = _wanted(inputs)
    before, least, most = inputs.before, inputs.settings.min_readers, inputs.settings.max_readers
    if most is not None and before > most:
        return _changed(inputs, max(wanted, least), TOO_MANY)
    if before < least:
        return _changed(inputs, max(wanted, least), TOO_FEW if wanted <= least else rule)
    if wanted < before:
        return _fewer(inputs, wanted, rule)
    past = _looked(inputs).model_copy(update=NOT_LOW)
    if wanted == before:
        return Decision(before, FITS, past)
    if not _pays(inputs, wanted):
        return Decision(before, NO_GAIN, past)
    return _changed(inputs, wanted, rule)


def _wanted(inputs: ScalingInputs) -> tuple[int, str]:
    """How many there would be, were there none, and why."""
    least, backlog = inputs.settings.min_readers, inputs.backlog
    if not backlog.blocks:
        return least, NOTHING_WAITS
    most = max(least, min(_reach(inputs), max(backlog.pieces, backlog.endless, 1)))
    if not inputs.capacity.positions_per_second:
        return most, UNMEASURED
    enough = Forecast(inputs).fewest(most, inputs.settings.target_drain_millis)
    wanted = max(least, enough, min(most, backlog.endless))
    return wanted, ALL if wanted == most else ENOUGH


def _reach(inputs: ScalingInputs) -> int:
    """The most that can work at once; where the cluster can grow and it is worth the wait, as many again."""
    settings, capacity = inputs.settings, inputs.capacity
    reach = capacity.cores
    if capacity.most_cores > capacity.cores and capacity.positions_per_second:
        work = Forecast(inputs).work_millis / max(1, capacity.cores)
        if work > max(GROWTH_MILLIS, settings.target_drain_millis):
            reach = min(capacity.most_cores, 2 * capacity.cores)
    return max(1, min(reach, settings.max_readers or reach))


def _pays(inputs: ScalingInputs, wanted: int) -> bool:
    """Whether so many more are worth a change, which costs about a window."""
    if not inputs.capacity.positions_per_second or inputs.backlog.endless > inputs.before:
        return True
    forecast = Forecast(inputs)
    now, then = forecast.millis(inputs.before), forecast.millis(wanted)
    return now > max(inputs.settings.target_drain_millis, WORTH * (then + inputs.capacity.window_millis))


def _fewer(inputs: ScalingInputs, wanted: int, rule: str) -> Decision:
    """Some are taken away once clearly fewer have been enough for as long as the cool-down asks."""
    past, at = _lower(inputs, wanted), inputs.at_millis
    assert past.low_since_millis is not None, "it is low now"
    most = max(past.low_most, past.low_most_before)
    if at - past.low_since_millis >= _cool_down(inputs) and WORTH * most <= inputs.before:
        return _changed(inputs, most, rule)
    return Decision(inputs.before, COOLING, past)


def _lower(inputs: ScalingInputs, wanted: int) -> Past:
    """What is remembered of a time in which fewer would do: the most that were needed in its last half."""
    past, at = _looked(inputs), inputs.at_millis
    if past.low_since_millis is None or past.low_half_millis is None:
        return past.model_copy(update={"low_since_millis": at, "low_half_millis": at, "low_most": wanted})
    if at - past.low_half_millis < _cool_down(inputs) / 2:
        return past.model_copy(update={"low_most": max(wanted, past.low_most)})
    return past.model_copy(update={"low_half_millis": at, "low_most": wanted, "low_most_before": past.low_most})


def _cool_down(inputs: ScalingInputs) -> int:
    return inputs.settings.cool_down_millis * inputs.past.patience


def _looked(inputs: ScalingInputs) -> Past:
    return inputs.past.model_copy(update={"looked_at_millis": inputs.at_millis})


def _changed(inputs: ScalingInputs, after: int, rule: str) -> Decision:
    """A change, remembered: where it takes back one that was just made, the next is waited for longer."""
    past, at = inputs.past, inputs.at_millis
    shrinks, patience = after < inputs.before, past.patience
    if not shrinks and past.shrunk_at_millis is not None:
        soon = at - past.shrunk_at_millis < 2 * _cool_down(inputs)
        patience = min(MOST_PATIENCE, 2 * patience) if soon else max(1, patience // 2)
    changed = Past(
        looked_at_millis=at,
        changed_at_millis=at,
        shrunk_at_millis=at if shrinks else past.shrunk_at_millis,
        patience=patience,
    )
    return Decision(after, rule, changed)
