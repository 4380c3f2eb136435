"""Partitioners that listen: partitions that have too much to do become more, and those that have too little fewer.

Set one as the PARTITIONER of an operator: it listens there. As one of its STATS_LISTENERS, it asks another partitioner.
"""

from abc import abstractmethod
from datetime import datetime, timedelta
from typing import Self

from pydantic import NonNegativeFloat, NonNegativeInt, PrivateAttr, model_validator

from dagkit import BatchedOperatorStats, Response, StatelessPartitioner, StatsListener


class StatsAwarePartitioner(StatelessPartitioner, StatsListener):
    """Asks for other partitions when one of them has had too much or too little to do for a while."""

    cooldown_millis: NonNegativeInt = 2000
    """How long that must last, and the least time between two changes."""
    _since: datetime | None = PrivateAttr(default=None)
    """Since when some partition has had too much or too little."""
    _loads: list[int] = PrivateAttr(default_factory=list)
    """Of the partitions that were told in this round."""
    _asked: list[int] = PrivateAttr(default_factory=list)
    """The loads with which it asked last: where they came again, nothing could be done about them."""

    @abstractmethod
    def load(self, stats: BatchedOperatorStats) -> int:
        """Below zero where a partition has too little to do, above where it has too much."""

    def process_stats(self, stats: BatchedOperatorStats) -> Response:
        """The load of this partition; with the last one of a round, whether it is time for a change."""
        load = self.load(stats) if stats.last_windowed_stats else 0
        self._loads = [load] if stats.partition == 0 else [*self._loads, load]
        is_last = stats.partition == stats.partitions - 1
        return Response(
            load_indicator=load,
            repartition_required=is_last and stats.at is not None and self._is_time(stats.at),
            repartition_note=self._note,
        )

    def _is_time(self, at: datetime) -> bool:
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
        """What is wanted of each partition, in a few words."""


class StatelessThroughputBasedPartitioner(StatsAwarePartitioner):
    """Splits a partition that takes more items in a second than `maximum_events`, and joins two that take too few."""

    maximum_events: NonNegativeFloat
    minimum_events: NonNegativeFloat = 0

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
    minimum_latency: NonNegativeFloat = 0

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
    """On which side of the bounds it lies, if it does not lie between them."""
    return (measured > most) - (measured < least)
