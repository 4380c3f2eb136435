"""Windows of event time, and aggregating values by key in them. Instants are in microseconds since 1970."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, Generic, Self

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveInt, PrivateAttr, model_validator
from typing_extensions import TypeVar

from dagkit import Batch, Context, InputPort, KeyedState, OutputPort, auto_metric
from dagkit_operators.keyed.aggregate import Aggregating, Steps, steps_of
from dagkit_operators.records.rejecting import Rejecting
from dagkit_operators.values.keys import Key, key_of, keys_of, sorted_by_key
from dagkit_operators.values.masks import only
from dagkit_operators.values.timed_elements import Unit, instant_of, micros_of


class _Windows(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TumblingWindows(_Windows):
    """Windows of one length, which follow each other without gaps: each instant is in one."""

    millis: PositiveInt
    """The length of a window."""
    offset_millis: int = 0
    """How much later than 1970-01-01T00:00Z a window begins; the others follow from it."""

    def around(self, micros: int) -> Iterator[tuple[int, int]]:
        """Yield the start and the end of each window that an instant is in."""
        length = self.millis * 1000
        offset = self.offset_millis * 1000
        start = (micros - offset) // length * length + offset
        yield start, start + length


class SlidingWindows(_Windows):
    """Windows of one length that begin at equal distances, and may overlap: an instant may be in several."""

    millis: PositiveInt
    """The length of a window."""
    every_millis: PositiveInt
    """The time between the starts of two windows; at most the length."""
    offset_millis: int = 0
    """How much later than 1970-01-01T00:00Z a window begins; the others follow from it."""

    @model_validator(mode="after")
    def _leave_no_gaps(self) -> Self:
        if self.every_millis > self.millis:
            raise ValueError(f"every_millis is {self.every_millis}, which is longer than a window of {self.millis}")
        return self

    def around(self, micros: int) -> Iterator[tuple[int, int]]:
        """Yield the start and the end of each window that an instant is in, the earliest first."""
        length, every, offset = self.millis * 1000, self.every_millis * 1000, self.offset_millis * 1000
        last = (micros - offset) // every * every + offset
        first = (micros - offset - length) // every * every + offset + every
        for start in range(first, last + 1, every):
            yield start, start + length


class SessionWindows(_Windows):
    """Windows of activity: a session of a key ends when the key has had no record for the length of the gap.

    Each record begins a session that lasts as long as the gap. Sessions of one key that overlap become one.
    """

    gap_millis: PositiveInt
    """The time without a record that ends a session."""

    def around(self, micros: int) -> Iterator[tuple[int, int]]:
        """Yield the session of a record alone."""
        yield micros, micros + self.gap_millis * 1000


TimeWindows = TumblingWindows | SlidingWindows | SessionWindows


T = TypeVar("T", default=Any)
K = TypeVar("K", default=Any)
V = TypeVar("V", default=Any)


@dataclass(frozen=True, slots=True)
class WindowResult(Generic[K, V]):
    """The result of one key in one window of event time."""

    key: K
    start: datetime
    """The first instant of the window."""
    end: datetime
    """The instant after the window."""
    result: V
    revision: int = 0
    """How often the result of this window was sent before, without the records that were late but allowed."""

    @property
    def event_time(self) -> datetime:
        """The last instant of the window: no operator below has passed it before the result is sent."""
        return self.end - timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class _NextEnd:
    """When the first of the windows of a key is to be sent, or to be forgotten since it was sent."""

    lateness: int

    def __call__(self, windows: Sequence[Any]) -> int:
        return int(min(end if has_changed else end + self.lateness for _, end, _, _, has_changed in windows))


class AggregateByTime(Rejecting, Aggregating[T, K, V], Generic[T, K, V]):
    """Combines the values of each key in windows of event time, and sends each result once its window has ended.

    A window has ended when the watermark has reached its end. Results are sent by end, start and key. With
    `allowed_lateness_millis`, a window is kept for that time: a record that comes meanwhile causes a result with the
    next `revision`, which replaces the earlier one. A record that is in no window that is kept goes to `late`.
    """

    kind = "time.aggregate/1"
    uses_watermark: ClassVar[bool] = True
    input = InputPort[T](keyed_by="routing_key")
    results = OutputPort[WindowResult[K, V]](main=True)
    late = OutputPort[T]()
    """Items that were late; dropped if it is not connected."""
    records_late = auto_metric(0)
    """Records that came after the end of their window."""
    late_dropped = auto_metric(
        0,
        warning="{late_dropped:,} late records were dropped: their windows had ended\n  help: connect late to keep "
        "them; to wait longer, set allowed_lateness_millis, or out_of_order_millis of the source of event times",
    )
    """Those of them that are in no result and no output."""

    time: Key = Field(default=...)
    """The event time of an item: a function of its value, or a field of it."""
    time_unit: Unit = "s"
    """The unit of times that are numbers since 1970."""
    windows: TimeWindows = Field(default=...)
    """The windows: `TumblingWindows(millis)`, `SlidingWindows(millis, every_millis)` or `SessionWindows(gap_millis)`.

    In a file: `{"millis": 60000}`.
    """
    allowed_lateness_millis: NonNegativeInt = 0
    """How long after its end a window is kept for late records, in event time."""
    close_when_drained: bool = False
    """Whether a launch that ends by itself sends the results of all windows, although they may not have ended.

    A later launch with more records of such a window sends a further result, for those records alone.
    """

    open_windows = KeyedState[Any, Any](list)
    """The windows of each key: start, end, partial result, revision, and whether it changed since it was sent."""
    _watermark: int | None = PrivateAttr(default=None)
    _closes_all: bool = PrivateAttr(default=False)

    def setup(self, context: Context) -> None:
        self._watermark = None if context.watermark is None else micros_of(context.watermark)
        self._closes_all = False

    def process(self, item: T) -> None:
        try:
            micros = micros_of(key_of(self.time, item), self.time_unit)
        except ValueError as fault:
            self.reject(item, item, fault)
            return
        steps = steps_of(self.function)
        if not self._add(key_of(self._key, item), micros, steps.start(key_of(self._of, item)), steps):
            self._note_late(1)
            self.late.emit(item)

    def process_batch(self, batch: Batch[T]) -> None:
        try:
            times = [micros_of(time, self.time_unit) for time in keys_of(self.time, batch)]
        # One item has no time: one by one, the others are added and it is rejected.
        except ValueError:
            for item in batch.items():
                self.process(item)
            return
        late = list(self._late_among(keys_of(self._key, batch), times, keys_of(self._of, batch)))
        self._note_late(len(late))
        if late and self.late.is_connected:
            self.late.emit_batch(only(batch, late))

    def _note_late(self, records: int) -> None:
        self.records_late += records
        if not self.late.is_connected:
            self.late_dropped += records

    def drained(self) -> None:
        self._closes_all = self.close_when_drained

    def end_window(self) -> None:
        ended = [result for key in self._due() for result in self._ended(key)]
        if ended:
            # Sorted by key first: the second sort, which is stable, keeps this order within a window.
            by_key = sorted_by_key((result.key, result) for result in ended)
            in_order = sorted((result for _, result in by_key), key=lambda result: (result.end, result.start))
            self.results.emit_batch(Batch.of(in_order))

    def _late_among(self, keys: Sequence[Any], times: Sequence[int], values: Sequence[Any]) -> Iterator[int]:
        """Add the items of a batch. Yield the indexes of those that are late."""
        steps = steps_of(self.function)
        start, combine = steps.start, steps.combine
        # The window of a session depends on the records before, so values are not combined within the batch.
        if isinstance(self.windows, SessionWindows):
            for index, (key, micros, value) in enumerate(zip(keys, times, values, strict=True)):
                if not self._add(key, micros, start(value), steps):
                    yield index
            return
        partials: dict[tuple[Any, int, int], Any] = {}
        around: dict[int, list[tuple[int, int]]] = {}
        for index, (key, micros, value) in enumerate(zip(keys, times, values, strict=True)):
            taking = around.get(micros)
            if taking is None:
                taking = around[micros] = list(self._taking(self.windows.around(micros)))
            if not taking:
                yield index
            partial = start(value)
            for window in taking:
                place = (key, *window)
                partials[place] = combine(partials[place], partial) if place in partials else partial
        for (key, begin, end), partial in partials.items():
            self._put(key, begin, end, partial, steps)

    def _add(self, key: Any, micros: int, partial: Any, steps: Steps) -> bool:
        """Add a value to its windows. Return False if it is late for all of them."""
        if isinstance(self.windows, SessionWindows):
            return self._add_to_session(key, micros, partial, steps)
        taking = list(self._taking(self.windows.around(micros)))
        for start, end in taking:
            self._put(key, start, end, partial, steps)
        return bool(taking)

    def _taking(self, windows: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """The windows that still take records."""
        return (window for window in windows if not self._is_over(window[1]))

    def _is_over(self, end: int) -> bool:
        """Whether a window with this end takes no more records."""
        return self._watermark is not None and end + self.allowed_lateness_millis * 1000 <= self._watermark

    def _put(self, key: Any, start: int, end: int, partial: Any, steps: Steps) -> None:
        windows = self.open_windows[key]
        for window in windows:
            if window[0] == start and window[1] == end:
                window[2], window[4] = steps.combine(window[2], partial), True
                return
        windows.append([start, end, partial, 0, True])

    def _add_to_session(self, key: Any, micros: int, partial: Any, steps: Steps) -> bool:
        """Join a value with the sessions that it overlaps. Return False if the whole is late."""
        ((start, end),) = self.windows.around(micros)
        known = self.open_windows.get(key, [])
        joined = [window for window in known if window[0] < end and start < window[1]]
        start, end = min([start, *(window[0] for window in joined)]), max([end, *(window[1] for window in joined)])
        # Judged after the sessions are joined: a record that is late by itself may belong to a session that still takes
        # records.
        if self._is_over(end):
            return False
        for window in joined:
            partial = steps.combine(window[2], partial)
        revision = max((window[3] for window in joined), default=0)
        self.open_windows[key] = [
            *(window for window in known if window not in joined),
            [start, end, partial, revision, True],
        ]
        return True

    def _due(self) -> list[Any]:
        """The keys with windows that may have ended."""
        if self._closes_all:
            return list(self.open_windows)
        lateness = self.allowed_lateness_millis * 1000
        return [] if self._watermark is None else self.open_windows.due(self._watermark, _NextEnd(lateness))

    def _ended(self, key: Any) -> Iterator[WindowResult[K, V]]:
        """Yield the results of a key's windows that ended, and forget the windows that take no more records."""
        result, kept = steps_of(self.function).result, []
        for start, end, partial, revision, has_changed in self.open_windows[key]:
            has_ended = self._closes_all or (self._watermark is not None and end <= self._watermark)
            if has_ended and has_changed:
                yield WindowResult(key, instant_of(start), instant_of(end), result(partial), revision)
            if not (self._closes_all or self._is_over(end)):
                sent = has_ended and has_changed
                kept.append([start, end, partial, revision + sent, has_changed and not sent])
        if kept:
            self.open_windows[key] = kept
        else:
            del self.open_windows[key]
