"""Following a backlog: what a listener keeps between two looks, and how its statistics become a decision."""

from dataclasses import replace

from dagkit.api.stats import Backlog, BatchedOperatorStats, Response
from dagkit.scaling.policies import NOT_YET, decide
from dagkit.scaling.policy_inputs import Past, ScalingInputs, ScalingSettings


class Follower:
    """Answers for an operator: one look for each round of its partitions."""

    def __init__(self) -> None:
        self.past = Past()
        self._queued: dict[int, int] = {}
        """How much waits for each partition that was told since the last look."""
        self._rule: str | None = None

    def answer(self, settings: ScalingSettings, stats: BatchedOperatorStats) -> Response:
        """What to do, once the last partition of a round was told; until then, nothing."""
        inputs = self._inputs(settings, stats)
        if inputs is None:
            return Response()
        decision = decide(inputs)
        if decision.rule == NOT_YET:
            return Response()
        self.past = decision.past
        self._queued.clear()
        changes, reason_is_new = decision.after != inputs.before, decision.rule != self._rule
        self._rule = decision.rule
        return Response(
            repartition_required=changes,
            load_indicator=(decision.after > inputs.before) - (decision.after < inputs.before),
            repartition_note=decision.rule,
            partitions=decision.after,
            policy=settings.policy,
            inputs=inputs.as_json() if changes or reason_is_new else None,
        )

    def _inputs(self, settings: ScalingSettings, stats: BatchedOperatorStats) -> ScalingInputs | None:
        """What to decide from; none where it is not this call that is to be answered."""
        self._hear(stats)
        backlog, counts_blocks = stats.backlog, settings.policy == "apex"
        as_apex = counts_blocks and settings.apex_compat
        if as_apex or (counts_blocks and backlog is None):
            if not self._queued:
                return None
            blocks = sum(self._queued.values())
            backlog = replace(backlog or Backlog(), blocks=blocks, pieces=blocks)
        is_last = stats.partition == stats.partitions - 1
        if backlog is None or not (is_last or as_apex):  # in Apex, whoever is told first decides for all
            return None
        return ScalingInputs(
            settings=settings,
            before=stats.partitions,
            at_millis=0 if stats.at is None else round(stats.at.timestamp() * 1000),
            backlog=backlog,
            capacity=stats.capacity,
            past=self.past,
        )

    def _hear(self, stats: BatchedOperatorStats) -> None:
        ports = stats.last_windowed_stats[-1].input_ports if stats.last_windowed_stats else ()
        if ports:
            self._queued[stats.partition] = ports[0].queue_size
