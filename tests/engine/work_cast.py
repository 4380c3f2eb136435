"""Operators whose elements are anything but blocks, some of them without an end, for applications in tests."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

from dagkit import (
    Context,
    Dag,
    InputOperator,
    InputPort,
    Operator,
    OperatorContext,
    OutputFiles,
    OutputPort,
    RowOperator,
    SplittableOperator,
    State,
    StatelessPartitioner,
)
from dagkit.engine.run.loop import Loop
from dagkit.ranges import (
    OFFSET_INFINITY,
    MonotonicWatermarkEstimator,
    OffsetRange,
    RestrictionTracker,
    WatermarkEstimator,
)
from tests.engine.cast import arrived

MIDNIGHT = datetime(2024, 1, 1, tzinfo=UTC)
Named = tuple[str, int]
"""A name, and how many numbers bear it; none where it is below zero: their number has no end."""
Looks = tuple[tuple[Named, ...], ...]
"""The names that each look emits."""


class Names(InputOperator):
    """Emits names, those of one look after the other."""

    names = OutputPort[Named]()
    looks: Looks = ()
    at = State(0)

    def emit_tuples(self) -> None:
        if self.at < len(self.looks):
            for name in self.looks[self.at]:
                self.names.emit(name)
            self.at += 1


class Twice(RowOperator):
    name = InputPort[Named]()
    names = OutputPort[Named]()

    def process(self, item: Named) -> Iterator[Named]:
        name, count = item
        yield name + "a", count
        yield name + "b", count


class Numbered(SplittableOperator[Named]):
    """Emits each number of a name, once; of a name whose numbers have no end, as many as there are by now."""

    names = InputPort[Named](main=True)
    numbers = OutputPort[tuple[str, int]](main=True)
    odd = OutputPort[tuple[str, int]]()
    by_now: int = 0
    """Where the numbers end that have no end."""
    defers_at: tuple[int, ...] = ()
    """Before these numbers the rest is put off, once: the next window goes on."""
    unanswered_at: int | None = None
    """Before this number of endless work its source does not answer, once; at `by_now`, each time."""

    def initial_restriction(self, element: Named) -> OffsetRange:
        return OffsetRange(0, element[1] if element[1] >= 0 else OFFSET_INFINITY)

    def truncate(self, element: Named, restriction: OffsetRange) -> OffsetRange | None:
        return restriction.truncate(None if self.by_now <= restriction.start else self.by_now)

    def process(self, element: Named, tracker: RestrictionTracker[OffsetRange, int]) -> Iterator[tuple[str, int]]:
        start = number = tracker.current_restriction().start
        tracker.see_end(self.by_now)
        while True:
            if element[1] < 0 and number >= self.by_now:
                tracker.defer_remainder(timedelta(seconds=1), unanswered=number == self.unanswered_at)
                return
            if element[1] < 0 and start < number == self.unanswered_at:
                tracker.defer_remainder(timedelta(seconds=1), unanswered=True)
                return
            if number in self.defers_at and number > start:
                tracker.defer_remainder(timedelta(seconds=1))
                return
            if not tracker.try_claim(number):
                return
            if number % 2:
                self.odd.emit((element[0], number))
            yield element[0], number
            number += 1


class Greeted(Numbered):
    """Emits the newest greeting with each name."""

    greetings = InputPort(str, optional=True)
    greeting = State("")

    @greetings.process
    def greet(self, item: str) -> None:
        self.greeting = item

    def process(self, element: Named, tracker: RestrictionTracker[OffsetRange, int]) -> Iterator[tuple[str, int]]:
        for name, number in super().process(element, tracker):
            yield self.greeting + name, number


class Timed(Numbered):
    """Emits with each number how many minutes after midnight it was."""

    def watermark(self, element: Named, reached: datetime | None) -> WatermarkEstimator:
        self._times = MonotonicWatermarkEstimator(reached)
        return self._times

    def process(self, element: Named, tracker: RestrictionTracker[OffsetRange, int]) -> Iterator[tuple[str, int]]:
        for name, number in super().process(element, tracker):
            self._times.observe_timestamp(MIDNIGHT + timedelta(minutes=number))
            yield name, number


class Telling(Numbered):
    """Reports to the source how far it came, once that is there for good."""

    kind = "cast.telling/1"
    heard: ClassVar[list[dict[str, int]]] = []
    """The positions that the source received."""
    reached = State[dict[str, int]](dict)

    def process(self, element: Named, tracker: RestrictionTracker[OffsetRange, int]) -> Iterator[tuple[str, int]]:
        for name, number in super().process(element, tracker):
            self.reached[name] = number
            yield name, number

    def committed(self, window_id: int) -> None:
        Telling.heard.append(dict(self.reached))


class Kept(Operator):
    """Writes what arrives in a window to a file of the window, and remembers nothing."""

    items = InputPort[Any]()
    files = OutputFiles(lambda kept: kept.folder)
    folder: str

    def setup(self, context: Context) -> None:
        self._name = f"{context.window_id}-{context.partition}"
        self._is_open = False

    def process(self, item: Any) -> None:
        self._is_open = True
        self.files.open(self._name).write(f"{item[0]} {item[1]}\n".encode())

    def end_window(self) -> None:
        if self._is_open:
            self.files.finish(self._name)


class Collected(Operator):
    """Keeps what arrives, for the test to look at."""

    items = InputPort[Any]()
    odd = InputPort[Any](optional=True)
    arrived = State[list[Any]](list)
    others = State[list[Any]](list)

    @items.process
    def take(self, item: Any) -> None:
        self.arrived.append(item)

    @odd.process
    def take_other(self, item: Any) -> None:
        self.others.append(item)


def numbers_of_names(
    looks: Looks,
    *,
    by_now: int = 0,
    defers_at: tuple[int, ...] = (),
    readers: int = 2,
    senders: int = 0,
    kind: Callable[..., Numbered] = Numbered,
    out: Path | None = None,
) -> Any:
    """Names, doubled by so many senders unless there are none, and numbered; collected, or written into a folder."""

    def draw(dag: Dag, conf: object) -> None:
        names = dag.add_operator("names", Names(looks=looks))
        numbered = dag.add_operator("numbered", kind(by_now=by_now, defers_at=defers_at))
        dag.set_operator_attribute(numbered, OperatorContext.PARTITIONER, StatelessPartitioner(readers))
        if senders:
            twice = dag.add_operator("twice", Twice())
            dag.set_operator_attribute(twice, OperatorContext.PARTITIONER, StatelessPartitioner(senders))
            dag.add_stream("names", names.names, twice.name)
            dag.add_stream("doubled", twice.names, numbered.names)
        else:
            dag.add_stream("names", names.names, numbered.names)
        if out is not None:
            dag.add_stream("numbers", numbered.numbers, dag.add_operator("write", Kept(folder=str(out))).items)
            return
        collect = dag.add_operator("collect", Collected())
        dag.add_stream("numbers", numbered.numbers, collect.items)
        dag.add_stream("odd", numbered.odd, collect.odd)

    return draw


def numbers(loop: Loop) -> list[tuple[str, int]]:
    return sorted(tuple(item["~tuple"]) for item in arrived(loop))


def numbers_expected(looks: Looks, by_now: int, *, doubled: bool) -> list[tuple[str, int]]:
    names = [(name + letter, count) for look in looks for name, count in look for letter in ("ab" if doubled else [""])]
    return sorted((name, number) for name, count in names for number in range(by_now if count < 0 else count))
