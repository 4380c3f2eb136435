"""The policy of Apex Malhar's block reader, to the number: one partition for each block that waits, in powers of two.

It knows neither how long blocks are nor how many cores there are, and it goes up and down at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from dagkit.api.stats import Backlog, BatchedOperatorStats
from dagkit.scaling.policy import Decision, ScalingInputs, ScalingPolicy, ScalingSettings

AS_MANY = "as many blocks as partitions"
MOST = "more blocks than max_partitions"
LEAST = "fewer blocks than min_partitions"
POWER = "the power of two up to the blocks"

MAX_READERS = 16


class Apex(ScalingPolicy):
    """Answers what Malhar's `processStats` answers."""

    name = "apex"
    default_interval_millis: ClassVar[int] = 120_000

    apex_compat: bool = False
    """Whether it also does what Malhar's documents deny: it begins with one, and rounds to less than the minimum."""

    def decide(self, inputs: ScalingInputs) -> Decision:
        least = inputs.settings.min_partitions
        most = inputs.settings.max_partitions or max(least, MAX_READERS)
        blocks = inputs.backlog.blocks
        if blocks == inputs.before:
            return Decision(inputs.before, AS_MANY)
        if blocks > most:
            return Decision(most, MOST)
        if blocks < least:
            return Decision(least, LEAST)
        power = 1 << (blocks.bit_length() - 1)
        return Decision(power if self.apex_compat else max(least, power), POWER)

    def backlog(self, stats: BatchedOperatorStats, queued: Mapping[int, int]) -> Backlog | None:
        """Blocks alone count, so that the queues of partitions are enough to decide from.

        As in Malhar, the first partition that reports decides for all, with what is known by then.
        """
        if not self.apex_compat and (stats.backlog is not None or stats.partition < stats.partitions - 1):
            return super().backlog(stats, queued)
        if not queued:
            return None
        blocks = sum(queued.values())
        return replace(stats.backlog or Backlog(), blocks=blocks, pieces=blocks)

    def begins_with(self, settings: ScalingSettings) -> int:
        return 1 if self.apex_compat else settings.min_partitions

    def explain(self, inputs: ScalingInputs, after: int) -> Sequence[str]:  # noqa: ARG002 - blocks alone are considered
        return []
