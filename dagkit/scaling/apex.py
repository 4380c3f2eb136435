"""The policy of Apex Malhar's block reader: one partition for each waiting block, in powers of two.

It considers neither the lengths of blocks nor the number of cores, and it changes the count at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from dagkit.api.stats import Backlog, BatchedOperatorStats
from dagkit.scaling.policy import Decision, ScalingInputs, ScalingPolicy, ScalingSettings

AS_MANY = "as many blocks as partitions"
MOST = "more blocks than max_partitions"
LEAST = "fewer blocks than min_partitions"
POWER = "the largest power of two up to the number of blocks"

MAX_READERS = 16


class Apex(ScalingPolicy):
    """Computes the number that Malhar's `processStats` computes."""

    name = "apex"
    default_interval_millis: ClassVar[int] = 120_000

    apex_compat: bool = False
    """Whether to copy two undocumented behaviours of Malhar: begin with 1 partition, and round below the minimum."""

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
        """The number of blocks, which the queues of the partitions show.

        With `apex_compat`, the first partition that reports decides for all, with the queues known by then, as in
        Malhar.
        """
        if not self.apex_compat and (stats.backlog is not None or stats.partition < stats.partitions - 1):
            return super().backlog(stats, queued)
        if not queued:
            return None
        blocks = sum(queued.values())
        return replace(stats.backlog or Backlog(), blocks=blocks, pieces=blocks)

    def begins_with(self, settings: ScalingSettings) -> int:
        return 1 if self.apex_compat else settings.min_partitions

    def explain(self, inputs: ScalingInputs, after: int) -> Sequence[str]:  # noqa: ARG002 - only blocks are considered
        return []
