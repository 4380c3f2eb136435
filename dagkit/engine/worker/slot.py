"""Run the stages of one level in one slot for one window, from batches to batches and a report."""

import time
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
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


@dataclass(slots=True)
class _Activity:
    """What a slot has done since it began the window, and the time that this took."""

    began: datetime = field(default_factory=lambda: datetime.now(UTC))
    started: float = field(default_factory=time.monotonic)
    cpu_nanos: int = field(default_factory=time.thread_time_ns)
    """The processor time of the thread when it began."""
    steps: int = 0
    """How many batches arrived, and how many operators have ended the window."""
    waits: bool = False
    """Whether the slot waits for others."""

    def millis(self) -> float:
        """The time since the begin."""
        return (time.monotonic() - self.started) * 1000

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """The block waits for others: no record of this slot takes long."""
        self.waits = True
        try:
            yield
        finally:
            self.waits = False


@dataclass(frozen=True, slots=True)
class _Ended:
    """One operator that ended the window."""

    millis: float
    """How long after the begin of the slot."""
    metrics: Mapping[str, Any]
    watermark: datetime | None
    """The watermark that it estimated, if it is not splittable."""


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
        self.operators = {
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
                link=_link(task, elements.into, slot),
                trace=self.trace,
            )
            for name, operator in self.operators.items()
            if (elements := elements_of(program, name, operator)) is not None
        }
        """The reading of each splittable operator."""
        origins = Origins(self._origin, self.trace)
        self.outbox = Outbox(slot, origins)
        self._finalizer = ReportedFinalizer()
        self._lives = {name: Life(operator, program.windows[name], name) for name, operator in self.operators.items()}
        self._ended: dict[str, _Ended] = {}
        self._activity = _Activity()
        names = {id(operator): name for name, operator in self.operators.items()}
        self._output = masked_output(task.launch.log, program, task.window_id, names)
        self._busy = BusyTime(self.operators, self._busy_millis)
        self.binding = Binding(
            program,
            level,
            self.outbox,
            task,
            operators=self.operators,
            readings=self.readings,
            kept=state,
            taps=[Tapping(tap, slot, self._spot) for tap in task.taps],
            origins=origins,
        )
        for name, operator in self.operators.items():
            serve_outputs(self.staging, name, operator)
            operator._services["item_origin"] = origins.now  # noqa: SLF001 - the engine knows what is read

    @property
    def level(self) -> int:
        return self.binding.level

    @property
    def slot(self) -> int:
        return self.outbox.slot

    def run(self, arriving: Iterable[Arrived | None]) -> Iterator[Sent]:
        """Process arriving batches wire by wire, and yield results as they get ready.

        The caller passes None to get control back: the answer is `NOTHING_SENT`.
        """
        try:
            with (
                captured(self._output),
                self._tracing(),
                self._abandoning(),
                ended_without_progress(self.task.attempt.timeout_millis, self._progress),
                self._busy.sampling(),
            ):
                for sent in self._run(self._awaited(arriving)):
                    with self._activity.waiting():  # for the reader of the output
                        yield sent
        except BaseException as error:
            for life in [*self._lives.values(), *self.binding.unifiers()]:
                life.abandon(self.task.window_id)
            if isinstance(error, OperatorFailed) or not isinstance(error, Exception):
                raise
            raise self._failure(error) from error

    @contextmanager
    def _tracing(self) -> Iterator[None]:
        """End the trace; if the block raises, with the place where it did."""
        failed = False
        try:
            yield
        except Exception:
            failed = True
            raise
        finally:
            if self.trace is not None:
                self.trace.end(failed=failed)

    def _progress(self) -> tuple[Hashable, ...]:
        """A value that changes while the slot processes items, or waits for others; called by another thread."""
        waits = (object(),) if self._activity.waits else ()
        return self._activity.steps, *waits, *(reading.progress() for reading in self.readings.values())

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
        state: dict[str, SavedState] = {name: saved(operator, name) for name, operator in self.operators.items()}
        state |= self.binding.saved()
        watermarks = {name: ended.watermark for name, ended in self._ended.items()}
        busy_millis = self._busy_millis()
        return Report(
            level=self.level,
            slot=self.slot,
            state={name: kept for name, kept in state.items() if kept},
            parts=() if self.staging is None else tuple(self.staging.parts()),
            done={reading.elements.into: reading.done for reading in self.readings.values()},
            busy_millis=busy_millis,
            figures=dict(self._figures(busy_millis)),
            began=self._activity.began,
            estimated={name: watermark for name, watermark in watermarks.items() if watermark is not None},
            finalizers=tuple(self._finalizer.written),
            samples=tuple(sample for tapping in self.binding.taps for sample in tapping.samples),
            printed=() if self._output is None else tuple(self._output.reported),
        )

    def _busy_millis(self) -> float:
        """How long the slot has worked, without the time in which it waited for work of others."""
        return self._activity.millis() - sum(reading.in_hand.idle_millis for reading in self.readings.values())

    def _figures(self, busy_millis: float) -> Iterator[tuple[str, Figures]]:
        cpu_nanos, busy = time.thread_time_ns() - self._activity.cpu_nanos, self._busy.divided(busy_millis)
        for name, operator in self.operators.items():
            reading, ended = self.readings.get(name), self._ended[name]
            fed = [port for port in input_ports(type(operator)) if (name, port) in self.program.fed]
            taken = {port: self.binding.passed((name, port)) for port in fed}
            if reading is not None:
                taken[work_port(reading.operator)] = reading.done.begun
            sent = {port: passed() for (sender, port), passed in self.binding.leaving.items() if sender == name}
            read, underway = (0, ()) if reading is None else (reading.done.positions, tuple(reading.done.underway))
            yield name, Figures(taken, sent, read, cpu_nanos, ended.millis, busy[name], ended.metrics, underway)

    def _run(self, arriving: Iterable[Arrived | None]) -> Iterator[Sent]:
        task = self.task
        for name, life in self._lives.items():
            self._busy.operator = name
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
        self._busy.operator = ""  # it is not known yet for which operator the first batch is received
        for arrived in arriving:
            if arrived is None:
                yield NOTHING_SENT
                continue
            self._activity.steps += 1
            target = self.program.targets[arrived.wire]
            self._busy.operator = target.into[0]
            self.binding.take(target, arrived.batch, arrived.element)
            yield from self.outbox.ready()
        self.binding.flush()
        for name in self.operators:
            self._busy.operator = name
            self.binding.merge_into(name)
            self.binding.flush_into(name)
            if name in self.readings:
                for _ in self.readings[name].work():
                    yield from self.outbox.ready()
            self._end(name)
            yield from self.outbox.ready()
        self.binding.let_go()
        for name, life in self._lives.items():
            self._busy.operator = name
            life.save(task.window_id)
            life.tear_down()
        yield from self.outbox.rest()

    def _end(self, name: str) -> None:
        self._activity.steps += 1
        if self.trace is not None:
            self.trace.note(None)
        self.binding.end_controls(name)
        self._lives[name].end(self.task.window_id, last=self.task.last)
        self.binding.slide(name)
        millis, operator = self._activity.millis(), self.operators[name]
        with code_of(name):
            metrics = metrics_of(operator)
            watermark = operator.current_watermark() if operator.estimates_watermark else None
            self._ended[name] = _Ended(millis, metrics, None if watermark is None else aware(watermark))

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
        instance, reading = self.operators.get(name), self.readings.get(name)
        aside = None if reading is None else reading.elements.set_aside_for(reading.item, error)
        failed = failure_of(
            error, name, self.task.window_id, self.slot, spot=self._spot(), instance=instance, aside=aside
        )
        failure = failed.failure
        if failure.record and not failure.spot.place and self.program.reads:
            failed.help += "; `dagkit launch --reference` names the file and the byte where such a record was read"
        return failed

    def _spot(self, position: int | None = None) -> Spot:
        """The place of the present item, or of the one at a position in the same element."""
        element, known = self.binding.origins.now()
        reading = next((each for each in self.readings.values() if each.now.element is element is not None), None)
        found = known if reading is None or reading.now.offset is None else reading.now.offset
        return spot_of(element, found if position is None else position)


def _link(task: WindowTask, into: Address, slot: int) -> BoardLink | None:
    """The link of a slot to the board, if the window has one."""
    attempt = task.attempt
    return None if attempt.board is None else SlotLink(attempt.board, into, slot, hands_over=into in attempt.movable)
