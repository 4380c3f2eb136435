"""Event times of records, and the watermarks of elements that follow from them."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from math import isfinite
from typing import Any, Final, Literal

from pydantic import NonNegativeInt, PrivateAttr

from dagkit import Batch, Operator
from dagkit.errors import clipped
from dagkit.ranges import ManualWatermarkEstimator
from dagkit_operators.values.keys import Key, key_of, keys_of

Unit = Literal["s", "ms", "us", "ns"]
"""The unit of event times that are numbers since 1970."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICRO: Final = timedelta(microseconds=1)
_FIRST: Final = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICRO
_LAST: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICRO
_MICROS: Final = {"s": 1_000_000, "ms": 1000, "us": 1}


def micros_of(time: Any, unit: Unit = "s") -> int:
    """Return an event time in microseconds since 1970. Raise ValueError if the value is no time.

    A time is a datetime, a number since 1970 in `unit`, or text in the form of ISO 8601. A datetime or a text without a
    time zone is in UTC.
    """
    if isinstance(time, datetime):
        return _of_datetime(time)
    if isinstance(time, str):
        try:
            return _of_datetime(datetime.fromisoformat(time))
        except ValueError:
            raise ValueError(f"the event time {clipped(time, 40)} has not the form of ISO 8601") from None
    if isinstance(time, bool) or not isinstance(time, int | float) or not isfinite(time):
        raise ValueError(f"the event time {clipped(time, 40)} is no time")
    micros = int(time // 1000) if unit == "ns" else round(time * _MICROS[unit])
    if not _FIRST <= micros <= _LAST:
        raise ValueError(
            f"the event time {clipped(time, 40)} is not between the years 1 and 9999, in {unit} since 1970"
        )
    return micros


def _of_datetime(time: datetime) -> int:
    return ((time if time.tzinfo is not None else time.replace(tzinfo=UTC)) - _EPOCH) // _MICRO


def instant_of(micros: int) -> datetime:
    """Return the instant of microseconds since 1970, within the years 1 to 9999."""
    return _EPOCH + timedelta(microseconds=min(max(micros, _FIRST), _LAST))


class TimedElements(Operator):
    """A splittable operator that can estimate a watermark for each element, from the event times of its records.

    The watermark of an element is the latest event time that was read of it, less `out_of_order_millis`. The slowest
    element decides, also if one partition reads several. Elements that wait hold back the watermark where it is.
    """

    event_time: Key = None
    """The event time of a record: a function of its value, or a field of it. None: there is none, and no watermark."""
    time_unit: Unit = "s"
    """The unit of event times that are numbers since 1970."""
    out_of_order_millis: NonNegativeInt = 0
    """How much earlier than the latest record of an element a record of it may be without being late."""
    idle_millis: NonNegativeInt | None = None
    """After this time without records, an element no longer holds back the watermark; None: it always does."""

    _times: ManualWatermarkEstimator | None = PrivateAttr(default=None)

    @property
    def estimates_watermark(self) -> bool:
        return self.event_time is not None

    @property
    def idle_after(self) -> timedelta | None:
        return None if self.idle_millis is None else timedelta(milliseconds=self.idle_millis)

    def watermark(self, element: Any, reached: datetime | None) -> ManualWatermarkEstimator | None:  # noqa: ARG002 - as declared
        self._times = ManualWatermarkEstimator(reached) if self.estimates_watermark else None
        return self._times

    def time_of(self, item: Any) -> int:
        """The event time of an item in microseconds since 1970. Raise ValueError if it has none."""
        return micros_of(key_of(self.event_time, item), self.time_unit)

    def times_of(self, batch: Batch[Any]) -> list[int]:
        """The event times of a batch in microseconds since 1970. Raise ValueError unless all items have one."""
        return [micros_of(time, self.time_unit) for time in keys_of(self.event_time, batch)]

    def observe(self, micros: Iterable[int]) -> None:
        """Record that records with these event times, in microseconds since 1970, were read."""
        latest = max(micros, default=None)
        if latest is not None:
            self.reach(instant_of(latest - self.out_of_order_millis * 1000))

    def reach(self, watermark: datetime) -> None:
        """Advance the watermark of the present element, if it is earlier and the operator estimates one."""
        if self._times is None:
            return
        reached = self._times.current_watermark()
        if reached is None or watermark > reached:
            self._times.set_watermark(watermark)
