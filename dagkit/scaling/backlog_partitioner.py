"""The partitioner that lets any splittable operator follow its backlog."""

from collections.abc import Sequence
from typing import Any

from pydantic import PrivateAttr

from dagkit.api.partitioning import Partition, Partitioner, PartitioningContext, StatelessPartitioner, is_first_call
from dagkit.api.stats import BatchedOperatorStats, Response, StatsListener
from dagkit.api.work import SplittableOperator
from dagkit.scaling.follower import Follower
from dagkit.scaling.policy import ScalingSettings


# The settings are not properties of SplittableOperator: they would change the fingerprint of every plan, and collide
# with properties of operators, such as `interval_millis` of TailFiles. In PARTITIONER, authors who come from Apex look
# for them. A policy is a class and never a function, because a file must not name a function to be called.
class BacklogPartitioner(ScalingSettings, Partitioner, StatsListener):
    """Makes as many partitions of a splittable operator as its policy decides from the backlog.

    Set it as the PARTITIONER of the operator, in a property file as `BacklogPartitioner:drain:maxPartitions=8`. It then
    receives the statistics that it needs. Operators that mirror these partitions follow them.
    """

    _follower: Follower = PrivateAttr(default_factory=Follower)

    def __init__(self, policy: str = "drain", /, **settings: Any) -> None:
        super().__init__(**{"policy": policy, **settings})

    def process_stats(self, stats: BatchedOperatorStats) -> Response:
        return self._follower.answer(self, stats)

    def define_partitions(self, partitions: Sequence[Partition], context: PartitioningContext) -> Sequence[Partition]:
        """Make as many partitions as are wanted or mirrored; at first, as many as the policy begins with."""
        operator = partitions[0].operator
        if not isinstance(operator, SplittableOperator):
            raise TypeError(f"{type(operator).__name__} has no backlog: only a SplittableOperator has one")
        if context.parallel_count or context.wanted or is_first_call(partitions):
            return StatelessPartitioner(self.chosen.begins_with(self)).define_partitions(partitions, context)
        return partitions
