"""Readers whose number of partitions follows their backlog."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

from pydantic import NonNegativeInt, PositiveInt, PrivateAttr, field_validator, model_validator

from dagkit import (
    BatchedOperatorStats,
    DataQueueSize,
    Operator,
    Partition,
    Partitioner,
    PartitioningContext,
    Response,
    StatsListener,
)
from dagkit.scaling import Follower, ScalingSettings
from dagkit.scaling.policy import policy_class, policy_of, refuse_crossed

POLICY_PROPERTIES = ("target_drain_millis", "cool_down_millis", "apex_compat")
"""Properties that a reader passes to its policy if the policy has a setting of this name."""


class FollowsBacklog(Operator, Partitioner, StatsListener, DataQueueSize):
    """A reader that is its own partitioner and stats listener.

    It starts with `min_readers` partitions, which share one queue of work. The number of partitions follows the length
    of that queue.
    """

    policy: str = "drain"
    """How the number of partitions follows the backlog. `drain`: as many as finish it soonest. `apex`: one per block.

    Name any other policy by its entry point in `dagkit.policies`, or as `package.module:Class`.
    """
    policy_settings: Mapping[str, Any] = {}
    """Further settings of the policy, by name."""
    min_readers: PositiveInt = 1
    """The minimum and initial number of partitions."""
    max_readers: PositiveInt | None = None
    """The maximum number of partitions; None: 16 for `apex`, as many as the cluster can run at once for `drain`."""
    collect_stats: bool = True
    """Whether the number of partitions follows the backlog; if not, it stays at `min_readers`."""
    interval_millis: NonNegativeInt | None = None
    """The time between two checks of the backlog; None: two minutes for `apex`, every window for `drain`."""
    target_drain_millis: NonNegativeInt = 0
    """The time in which `drain` is to finish a backlog, with no more partitions than needed. 0: as soon as possible."""
    cool_down_millis: NonNegativeInt = 10_000
    """How long fewer partitions must have been enough before `drain` removes some."""
    apex_compat: bool = False
    """Whether `apex` behaves exactly as Malhar's reader: it begins with one, and may go below `min_readers`."""

    _follower: Follower = PrivateAttr(default_factory=Follower)

    @field_validator("policy")
    @classmethod
    def _policy_is_known(cls, policy: str) -> str:
        policy_class(policy)
        return policy

    @model_validator(mode="after")
    def _settings_hold(self) -> Self:
        refuse_crossed("min_readers", self.min_readers, "max_readers", self.max_readers)
        policy_of(self.policy, self._settings_of_policy)
        return self

    @property
    def _settings_of_policy(self) -> dict[str, Any]:
        """The settings for the chosen policy: the reader's properties that it has, and `policy_settings`."""
        known = policy_class(self.policy).model_fields
        own = {name: getattr(self, name) for name in POLICY_PROPERTIES if name in known}
        return {**own, **self.policy_settings}

    def scaling_settings(self) -> ScalingSettings:
        """The settings by which the number of partitions follows the backlog."""
        return ScalingSettings(
            policy=self.policy,
            policy_settings=self._settings_of_policy,
            min_partitions=self.min_readers,
            max_partitions=self.max_readers,
            interval_millis=self.interval_millis,
        )

    def process_stats(self, stats: BatchedOperatorStats) -> Response:
        """Return the wanted number of partitions with the last partition's statistics; none without `collect_stats`."""
        if not self.collect_stats:
            return Response()
        return self._follower.answer(self.scaling_settings(), stats)

    def define_partitions(self, partitions: Sequence[Partition], context: PartitioningContext) -> Sequence[Partition]:
        """Return as many as the parallel operator or the policy needs; else the initial, later the current number."""
        # At the beginning of a launch, the engine asks with the one operator that was drawn, which has no statistics.
        begins = len(partitions) == 1 and partitions[0].stats is None
        settings = self.scaling_settings()
        first = settings.chosen.begins_with(settings)
        wanted = context.parallel_count or context.wanted or (first if begins else len(partitions))
        return [*partitions[:wanted], *[Partition(self)] * (wanted - len(partitions))]
