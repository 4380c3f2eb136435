"""A source of watermarks: an operator that reads the event time of the records that pass."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Generic

from pydantic import Field, NonNegativeInt, PrivateAttr
from typing_extensions import TypeVar

from dagkit import Batch, InputPort, OutputPort, Rows
from dagkit_operators.records.rejecting import Rejecting
from dagkit_operators.values.keys import Key, key_of, keys_of
from dagkit_operators.values.timed_elements import Unit, instant_of, micros_of

T = TypeVar("T", default=Any)


class EventTime(Rejecting, Generic[T]):
    """Passes on items, and estimates a watermark from their event times: the latest, less `out_of_order_millis`.

    The slowest partition decides. Work that was found above the operator and is not done holds back the watermark:
    files wait until all files found so far are read. Endless work, such as a growing file, does not.
    """

    kind = "time.event-time/1"
    rows = Rows.KEPT
    input = InputPort[T]()
    output = OutputPort[T](main=True)

    time: Key = Field(default=...)
    """The event time of an item: a function of its value, or a field of it."""
    time_unit: Unit = "s"
    """The unit of times that are numbers since 1970."""
    out_of_order_millis: NonNegativeInt = 0
    """How much earlier than the latest item an item may be without being late."""
    idle_millis: NonNegativeInt | None = None
    """After this time without items, a partition no longer holds back the watermark; None: it always does."""

    _latest: int | None = PrivateAttr(default=None)
    """The latest event time of this streaming window."""

    @property
    def estimates_watermark(self) -> bool:
        return True

    @property
    def idle_after(self) -> timedelta | None:
        return None if self.idle_millis is None else timedelta(milliseconds=self.idle_millis)

    def current_watermark(self) -> datetime | None:
        return None if self._latest is None else instant_of(self._latest - self.out_of_order_millis * 1000)

    def process(self, item: T) -> Iterator[T]:
        try:
            micros = micros_of(key_of(self.time, item), self.time_unit)
        except ValueError as fault:
            self.reject(item, item, fault)
            return
        self._latest = micros if self._latest is None else max(self._latest, micros)
        yield item

    def process_batch(self, batch: Batch[T]) -> Batch[T] | Iterator[T]:
        if not len(batch):
            return batch
        try:
            latest = max(micros_of(time, self.time_unit) for time in keys_of(self.time, batch))
        # One item has no time: one by one, the others pass and it is rejected.
        except ValueError:
            return self._one_by_one(batch)
        self._latest = latest if self._latest is None else max(self._latest, latest)
        return batch

    def _one_by_one(self, batch: Batch[T]) -> Iterator[T]:
        for item in batch.items():
            yield from self.process(item)
