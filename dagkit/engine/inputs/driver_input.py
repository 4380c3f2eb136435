"""Input operators on the driver: the ledger records their discoveries before a window uses them."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from threading import Thread
from typing import Any

from dagkit.api.controls import Stamped
from dagkit.api.external import Unavailable
from dagkit.api.files import why_not_forgotten
from dagkit.api.metrics import metrics_of, start_over
from dagkit.api.operators import InputOperator
from dagkit.api.outage import Outage
from dagkit.api.ports import output_ports
from dagkit.api.running import Context, Until
from dagkit.api.work import is_sourced
from dagkit.engine.inputs.discoveries import Discovery, DiscoveryCodec, Emitted
from dagkit.engine.program.address import Address
from dagkit.engine.program.failures import Interrupted, failure_of
from dagkit.engine.program.masking import masked_output
from dagkit.engine.program.operator_output import LogPlace, captured
from dagkit.engine.program.program import Program, Target
from dagkit.engine.work.elements import Elements
from dagkit.engine.work.item import WorkItem
from dagkit.engine.worker.instances import SavedState, bind_output, live, of_items, restore, saved
from dagkit.engine.worker.lifecycle import Life, look
from dagkit.engine.worker.outbox import Outbox, Sent
from dagkit.engine.worker.protocol import Figures
from dagkit.ranges import BundleFinalizer, aware


class Background:
    """Runs work on threads of its own, and wakes the loop when it ends.

    The threads are daemons: work that hangs, such as listing a folder of a server that is gone, delays no exit.
    """

    def __init__(self, name: str, wake: Callable[[], None]) -> None:
        self._name = name
        self._wake = wake
        self._running: list[Future[Any]] = []
        self.begun = 0
        """How often work was begun."""

    def start(self, work: Callable[[], Any]) -> "Future[Any]":
        """Begin the work. Its result, or what it raised, is in the future once it has ended."""
        future: Future[Any] = Future()
        self._running.append(future)
        self.begun += 1
        Thread(target=self._run, args=(work, future), name=self._name, daemon=True).start()
        return future

    @property
    def is_running(self) -> bool:
        """Whether any work has not ended yet."""
        self._running = [future for future in self._running if not future.done()]
        return bool(self._running)

    def _run(self, work: Callable[[], Any], future: "Future[Any]") -> None:
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - the operator raises it on the thread of the loop
            future.set_exception(error)
        else:
            future.set_result(result)
        # After the result is there: the loop asks for it once it is awake.
        self._wake()


class _Looks:
    """The items and callbacks of an input operator's looks, and their figures."""

    def __init__(self, operator: InputOperator, ports: Sequence[str]) -> None:
        self._operator = operator
        self._ports = ports
        self.emitted: list[Emitted] = []
        """The items of the present look."""
        self.finalizer = BundleFinalizer()
        """The callbacks of the present look."""
        self._finalizers: dict[int, BundleFinalizer] = {}
        """The callbacks of the looks for each window, until the window is committed."""
        self._figures: dict[int, Figures] = {}
        """The figures of the looks for each window, until the window is committed."""
        for port in ports:
            keep = self._keep(port)
            bind_output(operator, port, [replace(of_items(keep), control=keep)])

    def _keep(self, port: str) -> Callable[[Any], None]:
        def keep(item: Any) -> None:
            self.emitted.append(Emitted(port, item))

        return keep

    @contextmanager
    def measured(self, window_id: int) -> Iterator[None]:
        """Within the block, the operator looks for a window. A look that raises counts for nothing."""
        self.emitted = []
        # Metrics count for a window, which may have several looks.
        if window_id not in self._figures:
            start_over(self._operator)
        began, cpu_nanos = time.monotonic(), time.thread_time_ns()
        try:
            yield
        except BaseException:
            self.emitted = []
            self.finalizer.taken()  # they would acknowledge items that are not sent
            raise
        for callback in self.finalizer.taken():
            self._finalizers.setdefault(window_id, BundleFinalizer()).register(callback)
        millis, before = (time.monotonic() - began) * 1000, self._figures.get(window_id, Figures())
        emitted = Counter(emission.port for emission in self.emitted if not isinstance(emission.item, Stamped))
        sent = {port: before.sent.get(port, 0) + emitted[port] for port in self._ports}
        cpu_nanos = before.cpu_nanos + time.thread_time_ns() - cpu_nanos
        millis += before.millis
        metrics = metrics_of(self._operator)
        self._figures[window_id] = Figures({}, sent, 0, cpu_nanos, millis, millis, metrics)

    def take(self) -> tuple[Emitted, ...]:
        """Remove and return the items of the look."""
        # A million blocks would otherwise stay in memory until the next look.
        emitted, self.emitted = tuple(self.emitted), []
        return emitted

    def figures(self, window_id: int) -> Figures:
        """Return the figures for a committed window; drop those of earlier windows."""
        found = self._figures.get(window_id, Figures())
        self._figures = {later: figures for later, figures in self._figures.items() if later > window_id}
        return found

    def commit(self, window_id: int) -> None:
        """Call the callbacks of the windows up to this one."""
        for earlier in sorted(number for number in self._finalizers if number <= window_id):
            self._finalizers.pop(earlier).finalize()


class DriverInput:
    """One live input operator."""

    def __init__(
        self,
        program: Program,
        name: str,
        state: SavedState,
        *,
        ended: bool,
        context: Context,
        wake: Callable[[], None],
        watermark: datetime | None = None,
        log: LogPlace | None = None,
    ) -> None:
        self.name = name
        self._life = Life(live(program.operators[name][0], state, program.types.get(name)))
        operator = self.operator
        self._output = partial(masked_output, log, program, operators={id(operator): name}, takes_records=False)
        """Makes the output of a window, for what it prints. The log of the driver takes its log records anyway."""
        self.recorded = state
        """Its state in the ledger."""
        self.ended = ended
        self.next_look: datetime | None = None
        self.in_vain = False
        self._outage = Outage(name)
        self._background = Background(f"input {name}", wake)
        self._now: Callable[[], datetime] = context.now or _no_clock
        self.watermark = watermark
        """The watermark that it estimated after its last look."""
        sent = program.sources[name]
        self._looks = _Looks(operator, [port for port in output_ports(type(operator)) if sent.get(port)])
        finalizer = self._looks.finalizer
        try:
            with self._named(context.window_id):
                self._life.set_up(replace(context, start=self._background.start, finalizer=finalizer))
        except BaseException:
            self.abandon(context.window_id)
            raise

    @property
    def operator(self) -> InputOperator:
        operator = self._life.operator
        assert isinstance(operator, InputOperator), "only input operators run on the driver"
        return operator

    def due(self, now: datetime) -> bool:
        return not (self.ended or self.is_busy) and (self.next_look is None or self.next_look <= now)

    @property
    def is_busy(self) -> bool:
        """Whether its work in the background runs; it looks again after that."""
        return self._background.is_running

    @property
    def has_unsent(self) -> bool:
        """Whether it found input that it has not emitted yet."""
        return not self.ended and self.operator.has_unsent

    @property
    def has_unrecorded(self) -> bool:
        """Whether the ledger must record its state, although it emitted nothing."""
        return self.operator.has_unrecorded and self.state != self.recorded

    def look(self, window_id: int, spin_millis: int) -> Discovery:
        """Let the operator emit the available items."""
        operator, looks, begun_before = self.operator, self._looks, self._background.begun
        with self._named(window_id):
            try:
                with looks.measured(window_id):
                    self.ended |= look(operator, self._life, window_id, lambda: bool(looks.emitted))
            except Unavailable as away:
                self._look_later(away)
                return Discovery(self.name, ())
            self._outage.is_over()
            again = operator.looks_again_in_millis()
            watermark = operator.current_watermark() if operator.estimates_watermark else None
            self.watermark = self.watermark if watermark is None else aware(watermark)
        # A look that began work in the background is not in vain: once that work ends, it wakes the loop.
        found_nothing = not looks.emitted and self._background.begun == begun_before
        self.in_vain = found_nothing and not operator.holds_launch
        self.next_look = None
        if found_nothing and not self.ended:
            self.next_look = self._now() + timedelta(milliseconds=spin_millis if again is None else again)
        return Discovery(self.name, looks.take())

    def _look_later(self, away: Unavailable) -> None:
        """Undo a look whose source is away, and look again after a pause, unless it is away for too long."""
        # The items of the look are not sent, so the state must not count them as sent.
        restore(self.operator, self.recorded)
        self.in_vain = False
        self.next_look = self._now() + timedelta(seconds=self._outage.failed(away.problem, away.retry_after))
        limit = self.operator.outage_limit_seconds
        if limit is not None and self._outage.seconds >= limit:
            raise away

    def figures(self, window_id: int) -> Figures:
        """Return the figures for a committed window; drop those of earlier windows."""
        return self._looks.figures(window_id)

    def forget(self, path: str, request: str, window_id: int) -> str:
        """Let the operator forget a file; return why this is impossible, or ""."""
        with self._named(window_id):
            reason = why_not_forgotten(self.operator, path, request)
        self.next_look = None
        return reason

    def commit(self, window_id: int) -> None:
        """Notify the operator that a window is committed, and call its callbacks."""
        with self._named(window_id):
            self._life.commit(window_id)
        self._looks.commit(window_id)

    def end(self, window_id: int) -> None:
        """Tear down the operator."""
        with self._named(window_id):
            self._life.tear_down()

    def abandon(self, window_id: int) -> None:
        """Tear down the operator after the run has failed; exceptions are only logged."""
        self._life.abandon(window_id)

    @contextmanager
    def _named(self, window_id: int) -> Iterator[None]:
        """Convert what the operator's code raises to a failure that names the operator, and capture what it prints."""
        try:
            with captured(self._output(window_id=window_id)):
                yield
        except Interrupted:
            raise
        except (Exception, SystemExit) as error:  # on this thread, the code of an operator would end the launch
            raise failure_of(error, self.name, window_id, instance=self.operator) from error

    @property
    def state(self) -> SavedState:
        return saved(self.operator, self.name)


def _no_clock() -> datetime:
    raise AssertionError("an input operator is set up with a clock")


def delivered(program: Program, discoveries: Sequence[Discovery]) -> list[Sent]:
    """Return the items of discoveries that go to the workers at once; the others join the queue."""
    sent: list[Sent] = []
    for name in sorted({discovery.operator for discovery in discoveries}):
        outbox = Outbox(0)
        channels = {port: [(t, outbox.channel(t)) for t in targets] for port, targets in program.sources[name].items()}
        for emitted in (
            emission for discovery in discoveries if discovery.operator == name for emission in discovery.emitted
        ):
            for target, channel in channels.get(emitted.port, ()):
                if _waits(target, emitted):
                    continue
                if isinstance(emitted.item, Stamped) and channel.control is not None:
                    channel.control(emitted.item)
                else:
                    channel.item(emitted.item)
        sent += outbox.rest()
    return sent


def queued(
    program: Program, writing: DiscoveryCodec, elements: Mapping[Address, Elements], discovery: Discovery
) -> list[WorkItem]:
    """Return the work of a discovery for the queue, once for each splittable operator that gets it."""
    return [
        item
        for index, emitted in enumerate(discovery.emitted)
        for target in program.sources[discovery.operator].get(emitted.port, ())
        if _waits(target, emitted)
        for item in _work_of(elements[target.address], writing, discovery, index)
    ]


def _work_of(elements: Elements, writing: DiscoveryCodec, discovery: Discovery, index: int) -> Iterator[WorkItem]:
    """Number a stretch of a source by itself, under its name in the root chain; number other items by their place."""
    item = discovery.emitted[index].item
    if is_sourced(item):
        written = writing.written_as(discovery, index, elements.payload)
        return elements.work_of(item, (item.number,), writing.source(discovery.operator, item.source), written=written)
    # By its place in the ledger: after a crash, the promise of a window names it by the same number.
    return elements.work_of(item, (discovery.seq, index))


def _waits(target: Target, emitted: Emitted) -> bool:
    return target.queued and not isinstance(emitted.item, Stamped)


def context_of(program: Program, name: str, *, until: Until, now: Callable[[], datetime], window_id: int) -> Context:
    """The context that an input operator is set up with."""
    # the driver runs one instance, regardless of the plan
    return replace(program.context_of(name, 0, window_id), partitions=1, until=until, now=now)
