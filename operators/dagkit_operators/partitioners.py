"""Partitioners that follow statistics: they split overloaded partitions and join idle ones.

Set one as the PARTITIONER of an operator: it then receives the operator's statistics. If set as one of its
STATS_LISTENERS, it requests the change from another partitioner.
"""

from abc import abstractmethod
from datetime import datetime, timedelta
from typing import Self

from pydantic import NonNegativeFloat, NonNegativeInt, PrivateAttr, model_validator

from dagkit import BatchedOperatorStats, Response, StatelessPartitioner, StatsListener


class StatsAwarePartitioner(StatelessPartitioner, StatsListener):
    """Requests a repartition when a partition has been overloaded or underloaded for a while."""

    cooldown_millis: NonNegativeInt = 2000
    """How long the condition must last, and the minimum time between two changes."""
    _since: datetime | None = PrivateAttr(default=None)
    """Since when a partition has been overloaded or underloaded."""
    _loads: list[int] = PrivateAttr(default_factory=list)
    """The loads of the partitions whose statistics were processed in this round."""
    _asked: list[int] = PrivateAttr(default_factory=list)
    """The loads of the last request. If they recur, the request had no effect, and is not repeated."""

    @abstractmethod
    def load(self, stats: BatchedOperatorStats) -> int:
        """Negative if a partition is underloaded, positive if it is overloaded, else 0."""

    def process_stats(self, stats: BatchedOperatorStats) -> Response:
        """Return the load of this partition; for the last one of a round, also whether to repartition now."""
        load = self.load(stats) if stats.last_windowed_stats else 0
        # Each round begins with the first partition.
        self._loads = [load] if stats.partition == 0 else [*self._loads, load]
        is_last = stats.partition == stats.partitions - 1
        return Response(
            load_indicator=load,
            repartition_required=is_last and stats.at is not None and self._is_time(stats.at),
            repartition_note=self._note,
        )

    def _is_time(self, at: datetime) -> bool:
        """Whether to repartition now."""
        if not any(self._loads) or self._loads == self._asked:
            self._since = None
            return False
        if self._since is None:
            self._since = at
        if at - self._since < timedelta(milliseconds=self.cooldown_millis):
            return False
        self._since, self._asked = None, self._loads
        return True

    @property
    @abstractmethod
    def _note(self) -> str:
        """The target for each partition, in a few words."""


class StatelessThroughputBasedPartitioner(StatsAwarePartitioner):
    """Splits a partition that processes more than `maximum_events` items a second, and joins two below the minimum."""

    maximum_events: NonNegativeFloat
    """The most items a second for each partition."""
    minimum_events: NonNegativeFloat = 0
    """The fewest items a second for each partition."""

    @model_validator(mode="after")
    def _bounds_in_order(self) -> Self:
        if self.minimum_events > self.maximum_events:
            raise ValueError(f"minimum_events {self.minimum_events:g} is greater than maximum_events")
        return self

    def load(self, stats: BatchedOperatorStats) -> int:
        return _beyond(stats.tuples_processed_psma, self.minimum_events, self.maximum_events)

    @property
    def _note(self) -> str:
        return f"{self.minimum_events:g} to {self.maximum_events:g} items in a second for each"


class StatelessLatencyBasedPartitioner(StatsAwarePartitioner):
    """Splits a partition whose windows take longer than `maximum_latency` milliseconds, and joins two that are idle."""

    maximum_latency: NonNegativeFloat
    """The longest windows of a partition, in milliseconds."""
    minimum_latency: NonNegativeFloat = 0
    """The shortest windows of a partition, in milliseconds."""

    @model_validator(mode="after")
    def _bounds_in_order(self) -> Self:
        if self.minimum_latency > self.maximum_latency:
            raise ValueError(f"minimum_latency {self.minimum_latency:g} is greater than maximum_latency")
        return self

    def load(self, stats: BatchedOperatorStats) -> int:
        return _beyond(stats.latency_ma_millis, self.minimum_latency, self.maximum_latency)

    @property
    def _note(self) -> str:
        return f"windows of {self.minimum_latency:g} to {self.maximum_latency:g} ms for each"


def _beyond(measured: float, least: float, most: float) -> int:
    """-1 below the bounds, 1 above them, 0 between them."""
    return (measured > most) - (measured < least)
