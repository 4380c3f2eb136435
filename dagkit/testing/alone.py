"""Runs one operator without an engine: calls its callbacks, collects its outputs, saves and restores its state.

alone = Alone(Tokenize(min_length=4))
with alone.window():
    alone.send("to be or not to be: that")
assert alone.sent() == ["that"]
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Generic, TypeVar

from dagkit.api.attributes import OperatorContext
from dagkit.api.external import external_outputs
from dagkit.api.files import output_files
from dagkit.api.metrics import metrics_of, start_over
from dagkit.api.operators import InputOperator, Operator, main_outlet, sending
from dagkit.api.ports import input_ports, output_ports
from dagkit.api.running import Context, Until
from dagkit.api.work import SplittableOperator, is_sourced, work_port
from dagkit.engine.program.program import Keying
from dagkit.engine.worker.instances import Receiver, SavedState, bind_output, live, receiver, saved
from dagkit.engine.worker.lifecycle import Life, look
from dagkit.ground.urls import local_path
from dagkit.ranges import Deferred, OffsetRange, RestrictionTracker, split_near
from dagkit.schema.batch import Batch

OperatorT = TypeVar("OperatorT", bound=Operator)


class MemoryFile:
    """A file in memory, for a test to inspect."""

    def __init__(self, block: int | None) -> None:
        self.block = block
        self.content = bytearray()
        self.writes = 0

    def write(self, content: Any, /) -> None:
        self.content += content
        self.writes += 1


class MemoryFiles:
    """The files that an operator wrote, by name."""

    def __init__(self, now: Callable[[], datetime] | None = None) -> None:
        self._now = now
        self.wakes: dict[str, datetime] = {}
        """When the operator wants a window, by file."""
        self.opened: dict[str, MemoryFile] = {}
        self.finished: set[str] = set()
        self.together: dict[str, bytearray] = {}
        """The files that `write_at` writes, by key."""

    def open(self, name: str, *, block: int | None = None) -> MemoryFile:
        assert name not in self.finished, f"{name} is finished, and opened again"
        file = self.opened.setdefault(name, MemoryFile(block))
        assert file.block == block, f"{name} belongs to block {file.block}, and is opened for {block}"
        return file

    def finish(self, name: str) -> None:
        self.finished.add(name)
        self.wakes.pop(name, None)

    def write_at(self, key: str, offset: int, content: Any, /) -> None:
        whole = self.together.setdefault(key, bytearray())
        whole.extend(bytes(max(0, offset - len(whole))))
        whole[offset : offset + len(content)] = content

    def copy_at(self, key: str, offset: int, path: str, length: int) -> int:
        content = Path(local_path(path)).read_bytes()[offset : offset + length]
        self.write_at(key, offset, content)
        return len(content)

    def adopt(self, name: str, key: str, length: int, *, replace: bool = False) -> None:
        assert len(self.together[key]) == length, f"{key} has {len(self.together[key])} bytes"
        if replace and name in self.finished:
            del self.opened[name]
            self.finished.remove(name)
        self.open(name).write(self.together.pop(key))
        self.finish(name)

    @property
    def began(self) -> datetime | None:
        """The time of the clock given to `Alone`; None if there is none."""
        return None if self._now is None else self._now()

    def wake(self, name: str, at: datetime) -> None:
        self.wakes[name] = at

    def contents(self) -> dict[str, bytes]:
        """The content of each file."""
        return {name: bytes(file.content) for name, file in self.opened.items()}


class MemoryEntries:
    """The entries that an operator staged for an external system."""

    def __init__(self) -> None:
        self.added: list[bytes] = []

    def add(self, entry: Any, /) -> None:
        self.added.append(bytes(entry))


class Alone(Generic[OperatorT]):
    """Runs a copy of one operator. Keeps its items until `sent` returns them. The given operator is not changed."""

    def __init__(
        self,
        operator: OperatorT,
        *,
        state: SavedState | None = None,
        partition: int = 0,
        partitions: int = 1,
        attributes: Mapping[str, Any] | None = None,
        until: Until = Until.STOPPED,
        now: Callable[[], datetime] | None = None,
        window_id: int = 1,
        connected: Iterable[str] | None = None,
        watermark: datetime | None = None,
    ) -> None:
        if isinstance(operator, type):
            raise TypeError(f"{operator.__name__} is a class, not an operator: pass {operator.__name__}(…)")
        faults = [str(fault) for fault in operator.faults]
        assert not faults, f"{type(operator).__name__} cannot run: {'; '.join(faults)}"
        self.operator: OperatorT = live(operator, state or {})  # type: ignore[assignment] # an instance of the same class
        self.files: dict[str, MemoryFiles] = {name: MemoryFiles(now) for name in output_files(type(operator))}
        """The files written, by the name of their declaration."""
        self.entries = {name: MemoryEntries() for name in external_outputs(type(operator))}
        """What it staged for external systems, by the name of the declaration."""
        self.window_id = window_id
        self.deferred: Deferred[OffsetRange] | None = None
        """What the operator deferred in the last call of `work`."""
        self.watermark: datetime | None = None
        """The event time that the element of the last call of `work` reached, if the operator estimates watermarks."""
        self.ended = False
        """Whether an input operator raised Shutdown."""
        self._origin: tuple[Any, int | None] = (None, None)
        """The origin of the items that are sent now."""
        self._found_window = 0
        """The window of the last look."""
        self._sent: dict[str, list[Any]] = {}
        self._batches: dict[str, list[list[Any]]] = {}
        self._controls: list[Any] = []
        self._into: dict[str, Receiver] = {}
        outputs = output_ports(type(operator))
        for port in outputs if connected is None else connected:
            self._listen(port)
        worked = work_port(operator) if isinstance(operator, SplittableOperator) else None
        for port, declared in input_ports(type(operator)).items():
            if port != worked:
                keying = Keying(None, *declared.key_in(self.operator))
                self._into[port] = receiver(self.operator, port, keying)
        self.operator._services.update(self.files | self.entries)  # noqa: SLF001 - as the engine does
        self.operator._services["item_origin"] = lambda: self._origin  # noqa: SLF001 - as the engine does
        context = Context(
            application="alone",
            operator=type(operator).__name__,
            partition=partition,
            partitions=partitions,
            window_id=window_id,
            attributes=attributes or {},
            until=until,
            now=now,
            watermark=watermark,
        )
        self._again: dict[str, Any] = {
            "partition": partition,
            "partitions": partitions,
            "attributes": attributes,
            "until": until,
            "now": now,
            "connected": connected,
        }
        self._life = Life(self.operator, context.value(OperatorContext.APPLICATION_WINDOW_COUNT))
        self._life.set_up(context)

    def _listen(self, port: str) -> None:
        items = self._sent[port] = []
        batches = self._batches[port] = []

        def take_batch(batch: Batch[Any]) -> None:
            copied = list(batch.items())
            batches.append(copied)
            items.extend(copied)

        bind_output(self.operator, port, [Receiver(items.append, take_batch, control=self._controls.append)])

    @contextmanager
    def window(self, *, last: bool = False) -> Iterator[int]:
        """Run one window with the items sent to the operator inside the `with`. The last window calls `drained`."""
        start_over(self.operator)
        # As on workers, where the instance that runs the next window learns of the commit.
        self._life.commit(self.window_id - 1)
        self._life.begin(self.window_id)
        yield self.window_id
        for into in self._into.values():
            if into.flush is not None:
                into.flush()
        self._life.end(self.window_id, last=last)
        self._life.save(self.window_id)
        self.window_id += 1

    def send(self, *items: Any, to: str | None = None, origin: tuple[Any, int | None] = (None, None)) -> None:
        """Send items one by one to the only input or the named one; `origin` is their `item_origin`."""
        self._origin = origin
        try:
            for item in items:
                self._receiver(to).item(item)
        finally:
            self._origin = (None, None)

    def send_batch(self, batch: "Batch[Any] | Sequence[Any]", *, to: str | None = None) -> None:
        """Send many items at once, as a batch."""
        self._receiver(to).batch(batch if isinstance(batch, Batch) else Batch.of(batch))

    def look(self) -> None:
        """Run one look of an input operator. After a look without results, the next one has the same window."""
        name = type(self.operator).__name__
        assert isinstance(self.operator, InputOperator), f"{name} is no input operator"
        assert not self.ended, f"{name} has ended, and cannot look again"
        if self.window_id != self._found_window:
            self._life.commit(self._found_window)
            start_over(self.operator)
        self._found_window = self.window_id
        before = self._emitted()
        self.ended = look(self.operator, self._life, self.window_id, lambda: self._emitted() > before)
        if self._emitted() > before:
            self.window_id += 1

    def work(
        self,
        element: Any,
        within: Any = None,
        *,
        split_after: int | None = None,
        split_at: Any = None,
    ) -> "Any":
        """Let a splittable operator process an element, or the range `within` it; return the residual of a split.

        The work is split after the operator has yielded `split_after` times, 0: before it begins; at `split_at`, or by
        default after everything that is claimed. If it cannot be split there, it is processed to its end, and the
        result is None. `deferred` holds what the operator deferred, and `watermark` how far event time came.
        """
        operator = self.operator
        assert isinstance(operator, SplittableOperator), f"{type(operator).__name__} is not splittable"
        restriction = operator.initial_restriction(element) if within is None else within
        if isinstance(restriction, tuple) and type(operator).restriction_type is OffsetRange:
            restriction = OffsetRange(*restriction)
        tracker = operator.tracker(element, restriction)
        times = operator.watermark(element, None)
        send = sending(operator, "process")
        residual: Any = None
        if split_after == 0:
            residual = split(tracker, split_at)
        for count, made in enumerate(operator.process(element, tracker) or (), 1):
            send(made if isinstance(made, Batch) else iter((made,)))
            if count == split_after:
                residual = split(tracker, split_at)
        tracker.check_done()
        self.deferred = tracker.deferred()
        self.watermark = None if times is None else times.current_watermark()
        if residual is None:
            return None
        return element.part(residual.start, residual.stop) if is_sourced(element) else residual

    @property
    def outputs(self) -> list[str]:
        """The names of the connected outputs."""
        return list(self._sent)

    def _emitted(self) -> int:
        return sum(map(len, self._sent.values())) + len(self._controls)

    def sent(self, port: str | None = None) -> list[Any]:
        """The items sent since the last call, from the main output or the named one."""
        name = self._output(port)
        items = list(self._sent[name])
        self._sent[name].clear()
        self._batches[name].clear()
        return items

    def batches(self, port: str | None = None) -> list[list[Any]]:
        """The batches sent since the last call of `sent`."""
        return list(self._batches[self._output(port)])

    def written(self) -> dict[str, bytes]:
        """The content of each file, for an operator with one declaration of files."""
        (files,) = self.files.values()
        return files.contents()

    @property
    def metrics(self) -> dict[str, Any]:
        """The metrics as they would be reported now."""
        return metrics_of(self.operator)

    @property
    def state(self) -> SavedState:
        """The state as it would be saved now."""
        return saved(self.operator)

    def restarted(self, *, watermark: datetime | None = None) -> "Alone[OperatorT]":
        """The operator as in another process: with its saved state and its files only, and with this watermark."""
        self._life.tear_down()
        again = Alone(self.operator, state=self.state, window_id=self.window_id, watermark=watermark, **self._again)
        again.files, again.entries = self.files, self.entries
        again.operator._services.update(self.files | self.entries)  # noqa: SLF001 - as the engine does
        return again

    def _receiver(self, port: str | None) -> Receiver:
        if port is None:
            (port,) = self._into
        return self._into[port]

    def _output(self, port: str | None) -> str:
        if port is not None:
            return port
        main = main_outlet(self.operator)
        assert main is not None, f"{type(self.operator).__name__} has no main output; name one"
        return main.port.name


def split(tracker: RestrictionTracker[Any, Any], position: Any = None) -> Any:
    """Split a tracker at a position, or after everything that is claimed. Return the residual; None if it is too late.

    A tracker of bytes splits exactly there; one that knows the starts of records splits at the next.
    """
    if position is None:
        taken = tracker.try_split(0.0)
        return None if taken is None else taken.residual
    whole = tracker.current_restriction()
    if not isinstance(whole, OffsetRange):
        taken = tracker.try_split_at(position)
        return None if taken is None else taken.residual
    reached = whole.start + int(tracker.current_progress().completed) if tracker.is_started() else whole.start - 1
    if not reached < position < whole.stop:
        return None
    # A fraction of 0 keeps only what is claimed. The half makes up for rounding in trackers that know fractions only.
    distance, length = position - reached, whole.stop - reached
    fraction = 0.0 if distance == 1 else min(1.0, (distance + 0.5) / length)
    taken = split_near(tracker, position, fraction)
    return None if taken is None else taken.residual
