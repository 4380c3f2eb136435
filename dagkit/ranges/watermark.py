"""Watermarks: the event time that a source has reached. No later record should have an earlier time."""

import logging
from abc import abstractmethod
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from dagkit.ranges.cursor import Locked
from dagkit.ranges.range_errors import WatermarkInvalid

END_OF_TIME: Final = datetime.max.replace(tzinfo=UTC)
"""The watermark of a source that has ended: no record will come."""


class WatermarkEstimator(Locked):
    """Estimates a watermark, which never goes back; None until there is one.

    An estimator made from the state of an earlier one continues from its watermark.
    """

    def __init__(self, state: datetime | None = None) -> None:
        super().__init__()
        self._watermark = None if state is None else aware(state)

    @abstractmethod
    def observe_timestamp(self, timestamp: datetime) -> None:
        """Record that a record with this time was sent."""

    @abstractmethod
    def current_watermark(self) -> datetime | None:
        """The current watermark."""

    def estimator_state(self) -> datetime | None:
        """The state for the next estimator: the last watermark that was returned or set."""
        with self._lock:
            return self._watermark

    def _advance(self, instant: datetime) -> datetime:
        """Advance the watermark to an instant if that is later. The caller holds the lock."""
        if self._watermark is None or instant > self._watermark:
            self._watermark = instant
        return self._watermark


class MonotonicWatermarkEstimator(WatermarkEstimator):
    """For sources whose records are in the order of their times: the watermark is the time of the last record."""

    def __init__(self, state: datetime | None = None) -> None:
        super().__init__(state)
        self._observed: datetime | None = None

    def observe_timestamp(self, timestamp: datetime) -> None:
        observed = aware(timestamp)
        with self._lock:
            self._observed = observed

    def current_watermark(self) -> datetime | None:
        with self._lock:
            return self._watermark if self._observed is None else self._advance(self._observed)


class WalltimeWatermarkEstimator(WatermarkEstimator):
    """For sources whose records have the time at which they are read: the watermark is the time of a clock."""

    def __init__(self, now: Callable[[], datetime], state: datetime | None = None) -> None:
        super().__init__(state)
        self._now = now

    def observe_timestamp(self, timestamp: datetime) -> None:
        """Records do not move it."""

    def current_watermark(self) -> datetime:
        instant = aware(self._now())
        with self._lock:
            return self._advance(instant)


class ManualWatermarkEstimator(WatermarkEstimator):
    """For sources that know their watermark: the reader sets it."""

    def observe_timestamp(self, timestamp: datetime) -> None:
        """Do nothing: the times of records do not change the watermark."""

    def set_watermark(self, watermark: datetime) -> None:
        """Set the watermark. Raise WatermarkInvalid if it would go back."""
        instant = aware(watermark)
        with self._lock:
            if self._watermark is not None and instant < self._watermark:
                raise WatermarkInvalid(watermark, f"event time has already reached {self._watermark.isoformat()}")
            self._watermark = instant

    def current_watermark(self) -> datetime | None:
        with self._lock:
            return self._watermark


def aware(instant: object) -> datetime:
    """Return an instant in UTC. Raise WatermarkInvalid if it is not an aware datetime."""
    if not isinstance(instant, datetime):
        raise WatermarkInvalid(instant, "it is not a datetime")
    if instant.tzinfo is None:
        raise WatermarkInvalid(instant, "it has no time zone; give it a tzinfo")
    return instant.astimezone(UTC)


_log = logging.getLogger(__name__)


class BundleFinalizer(Locked):
    """Collects callbacks while records are read, and calls each at most once when the window is durable.

    Best effort: a crash between commit and call leaves callbacks uncalled, and a failing one is only logged. So a
    callback should acknowledge up to an absolute position: then a later one includes what an earlier one missed.
    """

    transient = Locked.transient | {"_callbacks"}

    def __init__(self) -> None:
        super().__init__()
        self._callbacks: list[Callable[[], object]] = []

    def __setstate__(self, state: dict[str, object]) -> None:
        super().__setstate__(state)
        self._callbacks = []

    def register(self, callback: Callable[[], object]) -> None:
        """Register a callback to call after the commit."""
        with self._lock:
            self._callbacks.append(callback)

    def taken(self) -> list[Callable[[], object]]:
        """Return the registered callbacks in order, and forget them."""
        with self._lock:
            callbacks, self._callbacks = self._callbacks, []
            return callbacks

    def finalize(self) -> int:
        """Call the registered callbacks in order, and return how many failed. No callback is called again."""
        return sum(not _called(callback) for callback in self.taken())


def _called(callback: Callable[[], object]) -> bool:
    try:
        callback()
    except Exception:  # noqa: BLE001 - the records are committed: no failure here may fail them
        _log.exception("%r failed after its records were committed; they stay committed", callback)
        return False
    return True
