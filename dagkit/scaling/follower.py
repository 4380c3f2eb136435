"""Following a backlog: turns statistics into decisions, and keeps the state between two decisions."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import JsonValue, PrivateAttr

from dagkit.api.partitioning import Partition, Partitioner, PartitioningContext, StatelessPartitioner, is_first_call
from dagkit.api.stats import Backlog, BatchedOperatorStats, Capacity, Response, StatsListener
from dagkit.api.work import SplittableOperator
from dagkit.scaling.policy import Decision, ScalingInputs, ScalingSettings, decide


class Follower:
    """Asks the policy of one operator once for each round of its partitions."""

    def __init__(self) -> None:
        self._looked_at_millis: int | None = None
        self._memory: Mapping[str, JsonValue] = {}
        self._queued: dict[int, int] = {}
        """The queue size of each partition that has reported since the last decision."""
        self._rule: str | None = None

    def answer(self, settings: ScalingSettings, stats: BatchedOperatorStats) -> Response:
        """The response, once enough partitions of a round have reported for the policy; until then, an empty one."""
        self._take(stats)
        policy = settings.chosen
        backlog = policy.backlog(stats, self._queued)
        if backlog is None:
            return Response()
        at = 0 if stats.at is None else round(stats.at.timestamp() * 1000)
        looked = self.look(settings, stats.partitions, at, backlog, stats.capacity)
        if looked is None:
            return Response()
        inputs, decision = looked
        self._queued.clear()
        # The ledger keeps the inputs of a decision. One that repeats the decision before with its reason adds nothing.
        changes, reason_is_new = decision.after != inputs.before, decision.rule != self._rule
        self._rule = decision.rule
        return Response(
            repartition_required=changes,
            load_indicator=(decision.after > inputs.before) - (decision.after < inputs.before),
            repartition_note=decision.rule,
            partitions=decision.after,
            policy=policy.name,
            inputs=inputs.model_dump(mode="json") if changes or reason_is_new else None,
        )

    def look(
        self, settings: ScalingSettings, before: int, at_millis: int, backlog: Backlog, capacity: Capacity
    ) -> tuple[ScalingInputs, Decision] | None:
        """The decision and its inputs; None before the interval is over."""
        inputs = ScalingInputs(
            settings=settings,
            before=before,
            at_millis=at_millis,
            backlog=backlog,
            capacity=capacity,
            looked_at_millis=self._looked_at_millis,
            memory=self._memory,
        )
        if not inputs.is_due:
            return None
        decision = decide(inputs)
        self._looked_at_millis, self._memory = at_millis, decision.memory
        return inputs, decision

    def _take(self, stats: BatchedOperatorStats) -> None:
        ports = stats.last_windowed_stats[-1].input_ports if stats.last_windowed_stats else ()
        if ports:
            # the engine puts the port with the queue first
            self._queued[stats.partition] = ports[0].queue_size


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
