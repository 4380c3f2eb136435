"""Event times of records as instants: microseconds since 1970 in UTC."""

from datetime import UTC, datetime, timedelta
from math import isfinite
from typing import Any, Final, Literal

from dagkit.errors import clipped

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
