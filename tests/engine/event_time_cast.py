"""Sources of watermarks and operators that act on them, for applications in tests. Event times are minutes."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from pydantic import Field, PrivateAttr

from dagkit import Context, InputOperator, InputPort, Operator, OutputPort, RowOperator, Shutdown, State
from dagkit.ranges import OffsetRange, RestrictionTracker
from tests.engine.work_cast import MIDNIGHT, Named, Timed

Minutes = tuple[tuple[int, ...], int | None]
"""The minutes that a look emits, and the watermark after it; None: as before."""


def at(minute: int) -> datetime:
    return MIDNIGHT + timedelta(minutes=minute)


def minute_of(instant: datetime | None) -> int | None:
    return None if instant is None else int((instant - MIDNIGHT).total_seconds() // 60)


class Clocked(InputOperator):
    """Emits the minutes of one look after the other, and estimates a watermark."""

    minutes = OutputPort(int)
    looks: tuple[Minutes, ...] = ()
    ends: bool = False
    """Whether it ends for ever after the last look."""
    unsent_until: int = 0
    """Before this look, it found something that it has not sent."""
    done = State(0)

    @property
    def estimates_watermark(self) -> bool:
        return True

    @property
    def has_unsent(self) -> bool:
        return self.done < self.unsent_until

    def current_watermark(self) -> datetime | None:
        known = [minute for _, minute in self.looks[: self.done] if minute is not None]
        return at(known[-1]) if known else None

    def emit_tuples(self) -> None:
        if self.done < len(self.looks):
            for minute in self.looks[self.done][0]:
                self.minutes.emit(minute)
            self.done += 1
        elif self.ends:
            raise Shutdown


class Untimed(Clocked):
    @property
    def estimates_watermark(self) -> bool:
        return False


class Passing(RowOperator):
    items = InputPort[Any]()
    same = OutputPort[Any]()

    def process(self, item: Any) -> Iterator[Any]:
        yield item


class Sorted(Operator):
    """Keeps minutes until the watermark has passed them, and then sends them in order."""

    uses_watermark = True
    minutes = InputPort(int)
    others = InputPort(int, optional=True)
    in_order = OutputPort(int, main=True)
    late = OutputPort(int)
    seen = State[list[int | None]](list)
    """The watermarks of its windows, without repetitions."""
    kept = State[list[int]](list)
    _watermark: datetime | None = PrivateAttr(default=None)

    def setup(self, context: Context) -> None:
        self._watermark = context.watermark
        minute = minute_of(context.watermark) if context.watermark is None or context.watermark.year < 9999 else 9999
        if self.seen[-1:] != [minute]:
            self.seen.append(minute)

    @minutes.process
    def take(self, item: int) -> None:
        if self._watermark is not None and at(item) < self._watermark:
            self.late.emit(item)
        else:
            self.kept.append(item)

    @others.process
    def take_other(self, item: int) -> None:
        self.take(item)

    def end_window(self) -> None:
        if self._watermark is not None:
            for minute in sorted(each for each in self.kept if at(each) < self._watermark):
                self.kept.remove(minute)
                self.in_order.emit(minute)


class TimedNumbers(Timed):
    """Emits the number of each minute, and estimates the watermark of each element."""

    minutes = OutputPort(int)
    idle_minutes: int | None = None
    known_from: Mapping[str, int] = Field(default_factory=dict)
    """The first minute of an element, by name, for those that are known before they are read."""
    grows: bool = False

    @property
    def sources_grow(self) -> bool:
        return self.grows

    @property
    def idle_after(self) -> timedelta | None:
        return None if self.idle_minutes is None else timedelta(minutes=self.idle_minutes)

    def earliest(self, element: Named) -> datetime | None:
        return at(self.known_from[element[0]]) if element[0] in self.known_from else None

    def process(self, element: Named, tracker: RestrictionTracker[OffsetRange, int]) -> Iterator[tuple[str, int]]:
        for name, number in super().process(element, tracker):
            self.minutes.emit(number)
            yield name, number
