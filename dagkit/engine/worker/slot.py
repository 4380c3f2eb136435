"""Run the stages of one level in one slot for one window, from batches to batches and a report."""

import time
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from dagkit.api.metrics import metrics_of
from dagkit.api.ports import input_ports
from dagkit.api.work import work_port
from dagkit.engine.files.entries import serve_outputs
from dagkit.engine.files.staging import Staging
from dagkit.engine.program.address import Address
from dagkit.engine.program.entrances import code_of, operator_of
from dagkit.engine.program.failures import CodecFailed, OperatorFailed, Spot, failure_of, spot_of
from dagkit.engine.program.masking import masked_output
from dagkit.engine.program.operator_output import captured
from dagkit.engine.program.program import Program
from dagkit.engine.work.elements import elements_of
from dagkit.engine.work.handover import BoardLink
from dagkit.engine.work.item import WorkItem
from dagkit.engine.worker.binding import Binding, Tapping
from dagkit.engine.worker.busy import BusyTime
from dagkit.engine.worker.instances import SavedState, live, saved
from dagkit.engine.worker.lifecycle import Life, ReportedFinalizer
from dagkit.engine.worker.origins import Origins
from dagkit.engine.worker.outbox import NOTHING_SENT, Arrived, Outbox, Sent
from dagkit.engine.worker.protocol import Figures, Report, SlotState, WindowTask
from dagkit.engine.worker.reading import Reading
from dagkit.engine.worker.slot_link import SlotLink
from dagkit.engine.worker.tracing import Trace
from dagkit.engine.worker.watchdog import ended_without_progress
from dagkit.ranges import aware


@dataclass(frozen=True, slots=True)
class _Ended:
    """One operator that ended the window."""

    millis: float
    """How long after the begin of the slot."""
    metrics: Mapping[str, Any]
    watermark: datetime | None
    """The watermark that it estimated, if it is not splittable."""


class _Activity:
    """The progress of a slot since it began the window, and its time."""

    def __init__(self, operators: Iterable[str], readings: Iterable[Reading]) -> None:
        self.began = datetime.now(UTC)
        self._started = time.monotonic()
        self._cpu_nanos = time.thread_time_ns()
        """The processor time of the thread when it began."""
        self._steps = 0
        """How many batches arrived, and how many operators have ended the window."""
        self._waits = False
        """Whether the slot waits for others."""
        self._readings = list(readings)
        self.busy = BusyTime(operators, self.busy_millis)
        self.ended: dict[str, _Ended] = {}
        """The operators that have ended the window, by name."""

    def millis(self) -> float:
        """The time since the begin."""
        return (time.monotonic() - self._started) * 1000

    def cpu_nanos(self) -> int:
        """The processor time since the begin."""
        return time.thread_time_ns() - self._cpu_nanos

    def busy_millis(self) -> float:
        """How long the slot has worked, without the time in which it waited for work of others."""
        return self.millis() - sum(reading.in_hand.idle_millis for reading in self._readings)

    def work_for(self, operator: str) -> None:
        """Note for which operator the slot works, while the code of none is on the stack; "" if it is not known."""
        self.busy.operator = operator

    def step(self) -> None:
        """Note that a batch arrived, or that an operator ends the window."""
        self._steps += 1

    def progress(self) -> tuple[Hashable, ...]:
        """A value that changes while the slot processes items, or waits for others; called by another thread."""
        # A new object equals no other, so each look sees progress while the slot waits.
        waits = (object(),) if self._waits else ()
        return self._steps, *waits, *(reading.progress() for reading in self._readings)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """The block waits for others: no record of this slot takes long."""
        self._waits = True
        try:
            yield
        finally:
            self._waits = False


class SlotRun:
    """The stages of one level in one slot, for one window."""

    def __init__(
        self,
        program: Program,
        level: int,
        slot: int,
        task: WindowTask,
        state: SlotState,
        *,
        work: Sequence[WorkItem] = (),
    ) -> None:
        self.program = program
        self.task = task
        self.level = level
        operators = {
            # The state was copied when it was sent to this slot; the driver keeps its own.
            name: live(program.operators[name][slot], state.get(name, {}), program.types.get(name), takes_saved=True)
            for stage in program.stages_at(level)
            if slot < stage.slots
            for name in stage.operators
        }
        attempt = task.attempt
        self.staging = None if attempt.staging is None else Staging(attempt.staging, slot)
        self.trace = Trace.into(attempt.traces, f"{level}-{slot}")
        self.readings = {
            name: Reading(
                elements,
                slot,
                task,
                work,
                staging=self.staging,
                flush=self._flush,
                link=self._link(task, elements.into, slot),
                trace=self.trace,
            )
            for name, operator in operators.items()
            if (elements := elements_of(program, name, operator)) is not None
        }
        """The reading of each splittable operator."""
        origins = Origins(self._origin, self.trace)
        self.outbox = Outbox(slot, origins)
        self._finalizer = ReportedFinalizer()
        self._lives = {name: Life(operator, program.windows[name], name) for name, operator in operators.items()}
        self._activity = _Activity(operators, self.readings.values())
        names = {id(operator): name for name, operator in operators.items()}
        self._output = masked_output(task.launch.log, program, task.window_id, names)
        self.binding = Binding(
            program,
            level,
            self.outbox,
            task,
            operators=operators,
            readings=self.readings,
            kept=state,
            taps=[Tapping(tap, slot, self._spot) for tap in task.taps],
        )
        for name, operator in operators.items():
            serve_outputs(self.staging, name, operator)
            operator._services["item_origin"] = origins.now  # noqa: SLF001 - the engine knows what is read

    @property
    def slot(self) -> int:
        return self.outbox.slot

    def _link(self, task: WindowTask, into: Address, slot: int) -> BoardLink | None:
        """The link of an input to the board, if the window has one."""
        attempt = task.attempt
        if attempt.board is None:
            return None
        return SlotLink(attempt.board, into, slot, hands_over=into in attempt.movable, shares=self._shares)

    def _shares(self) -> Mapping[str, float]:
        activity = self._activity
        return activity.busy.shares()

    def run(self, arriving: Iterable[Arrived | None]) -> Iterator[Sent]:
        """Process arriving batches wire by wire, and yield results as they get ready.

        The caller passes None to get control back: the answer is `NOTHING_SENT`.
        """
        task, activity = self.task, self._activity
        try:
            with (
                captured(self._output),
                self.trace or nullcontext(),
                self._abandoning(),
                ended_without_progress(task.attempt.timeout_millis, self._activity.progress),
                activity.busy.sampling(),
            ):
                for sent in self._run(self._awaited(arriving)):
                    with activity.waiting():  # for the reader of the output
                        yield sent
        except BaseException as error:
            unifiers = self.binding.unifiers
            for life in [*self._lives.values(), *unifiers.lives]:
                life.abandon(task.window_id)
            if isinstance(error, OperatorFailed) or not isinstance(error, Exception):
                raise
            raise self._failure(error) from error

    def _awaited(self, arriving: Iterable[Arrived | None]) -> Iterator[Arrived | None]:
        """The batches that arrive, and the slot waits for each."""
        batches = iter(arriving)
        while True:
            with self._activity.waiting():
                try:
                    batch = next(batches)
                except StopIteration:
                    return
            yield batch

    def report(self) -> Report:
        """Return the report of the window."""
        with self._abandoning():
            return self._report()

    @contextmanager
    def _abandoning(self) -> Iterator[None]:
        """If the block raises, abandon everything that was staged and close its files."""
        try:
            yield
        except BaseException:
            if self.staging is not None:
                self.staging.abandon()
            raise

    def _report(self) -> Report:
        state: dict[str, SavedState] = {name: saved(life.operator, name) for name, life in self._lives.items()}
        state |= self.binding.saved()
        activity = self._activity
        watermarks = {name: ended.watermark for name, ended in activity.ended.items()}
        busy_millis = activity.busy_millis()
        return Report(
            level=self.level,
            slot=self.slot,
            state={name: kept for name, kept in state.items() if kept},
            parts=() if self.staging is None else tuple(self.staging.parts()),
            done={reading.elements.into: reading.done for reading in self.readings.values()},
            busy_millis=busy_millis,
            figures=dict(self._figures(busy_millis)),
            began=activity.began,
            estimated={name: watermark for name, watermark in watermarks.items() if watermark is not None},
            finalizers=tuple(self._finalizer.written),
            samples=tuple(sample for tapping in self.binding.taps for sample in tapping.samples),
            printed=() if self._output is None else tuple(self._output.reported),
        )

    def _figures(self, busy_millis: float) -> Iterator[tuple[str, Figures]]:
        activity, leaving = self._activity, self.binding.leaving
        cpu_nanos, busy = activity.cpu_nanos(), activity.busy.divided(busy_millis)
        for name, life in self._lives.items():
            reading, ended = self.readings.get(name), activity.ended[name]
            fed = [port for port in input_ports(type(life.operator)) if (name, port) in self.program.feeders]
            taken = {port: self.binding.passed((name, port)) for port in fed}
            if reading is not None:
                taken[work_port(reading.operator)] = reading.done.begun
            sent = {port: passed() for (sender, port), passed in leaving.items() if sender == name}
            read, underway = (0, ()) if reading is None else (reading.done.positions, tuple(reading.done.underway))
            yield name, Figures(taken, sent, read, cpu_nanos, ended.millis, busy[name], ended.metrics, underway)

    def _run(self, arriving: Iterable[Arrived | None]) -> Iterator[Sent]:
        task, activity, unifiers = self.task, self._activity, self.binding.unifiers
        for name, life in self._lives.items():
            activity.work_for(name)
            life.set_up(
                self.program.context_of(
                    name,
                    self.slot,
                    task.window_id,
                    task.launch,
                    seen=task.seen.get(name),
                    finalizer=self._finalizer,
                    began=task.began,
                )
            )
            life.commit(task.committed)
            life.begin(task.window_id)
        activity.work_for("")  # it is not known yet for which operator the first batch is received
        for arrived in arriving:
            if arrived is None:
                yield NOTHING_SENT
                continue
            activity.step()
            target = self.program.targets[arrived.wire]
            activity.work_for(target.into[0])
            self.binding.take(target, arrived.batch, arrived.element)
            yield from self.outbox.ready()
        self.binding.flush()
        for name in self._lives:
            activity.work_for(name)
            unifiers.end_before(name)
            self.binding.flush_into(name)
            # Its work begins when all items of the window have arrived: side values come first on every backend, and no
            # operator reads inside the call of another.
            if name in self.readings:
                for _ in self.readings[name].work():
                    yield from self.outbox.ready()
            self._end(name)
            yield from self.outbox.ready()
        self.binding.let_go()
        for name, life in self._lives.items():
            activity.work_for(name)
            life.save(task.window_id)
            life.tear_down()
        yield from self.outbox.rest()

    def _end(self, name: str) -> None:
        self._activity.step()
        if self.trace is not None:
            self.trace.note(None)
        self.binding.end_controls(name)
        self._lives[name].end(self.task.window_id, last=self.task.last)
        self.binding.slide(name, self.task.window_id)
        millis, operator = self._activity.millis(), self._lives[name].operator
        with code_of(name):
            metrics = metrics_of(operator)
            watermark = operator.current_watermark() if operator.estimates_watermark else None
            self._activity.ended[name] = _Ended(millis, metrics, None if watermark is None else aware(watermark))

    def _origin(self) -> Any:
        """The element that is read, whose items the operators of this slot process at once."""
        return next((each.origin for each in self.readings.values() if each.now.element is not None), None)

    def _flush(self) -> None:
        self.binding.flush()

    def _failure(self, error: Exception) -> Exception:
        """Add the location of the record to an operator's error; return other errors unchanged."""
        if isinstance(error, CodecFailed):
            return error.in_window(self.task.window_id, self.slot)
        name = operator_of(error)
        if name is None:
            return error
        life, reading = self._lives.get(name), self.readings.get(name)
        aside = None if reading is None else reading.elements.set_aside_for(reading.item, error)
        failed = failure_of(
            error, name, self.task.window_id, self.slot, spot=self._spot(), instance=life and life.operator, aside=aside
        )
        failure = failed.failure
        if failure.record and not failure.spot.place and self.program.reads:
            failed.help += "; `dagkit launch --reference` names the file and the byte where such a record was read"
        return failed

    def _spot(self, position: int | None = None) -> Spot:
        """The place of the present item, or of the one at a position in the same element."""
        origins = self.outbox.origins
        element, known = origins.now()
        reading = next((each for each in self.readings.values() if each.now.element is element is not None), None)
        found = known if reading is None or reading.now.offset is None else reading.now.offset
        return spot_of(element, found if position is None else position)
