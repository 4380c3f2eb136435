"""Run the stages of one level in one slot for one window, from batches to batches and a report."""

import time
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
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
from dagkit.engine.program.operator_output import captured
from dagkit.engine.program.program import Program
from dagkit.engine.work.elements import elements_of
from dagkit.engine.work.handover import BoardLink
from dagkit.engine.work.item import WorkItem
from dagkit.engine.worker.binding import Binding
from dagkit.engine.worker.finalizers import ReportedFinalizer
from dagkit.engine.worker.instances import SavedState, live, saved
from dagkit.engine.worker.lifecycle import Life
from dagkit.engine.worker.logged import output_of
from dagkit.engine.worker.origins import Origins
from dagkit.engine.worker.outbox import NOTHING_SENT, Arrived, Outbox, Sent
from dagkit.engine.worker.protocol import Figures, Report, SlotState, WindowTask
from dagkit.engine.worker.reading import Reading
from dagkit.engine.worker.slot_link import SlotLink
from dagkit.engine.worker.tapped import Tapping
from dagkit.engine.worker.tracing import Trace
from dagkit.engine.worker.watchdog import ended_without_progress
from dagkit.ranges import aware


class SlotRun:
    """The stages of one level in one slot, for one window."""

    def __init__(
        self,
        program: Program,
        level: int,
        slot: int,
        assignment: WindowTask,
        state: SlotState,
        *,
        work: Sequence[WorkItem] = (),
    ) -> None:
        self.program = program
        self.level = level
        self.slot = slot
        self.window_id = assignment.window_id
        self.launched, self.began = assignment.launched, assignment.began
        self.home = assignment.home
        self.application_path = assignment.application_path
        self.committed = assignment.committed
        self.seen = assignment.seen
        self.finalizer = ReportedFinalizer()
        names = [name for stage in program.stages_at(level) if slot < stage.slots for name in stage.operators]
        self.operators = {
            name: live(program.operators[name][slot], state.get(name, {}), program.types.get(name), takes_saved=True)
            for name in names
        }
        self.staging = None if assignment.staging is None else Staging(assignment.staging, slot)
        self.trace = Trace.into(assignment.traces, f"{level}-{slot}")
        self.readings = {
            name: Reading(
                elements,
                slot,
                assignment,
                work,
                staging=lambda: self.staging,
                flush=self._flush,
                link=_link(assignment, elements.into, slot),
                trace=self.trace,
            )
            for name, operator in self.operators.items()
            if (elements := elements_of(program, name, operator)) is not None
        }
        """The reading of each splittable operator."""
        self.origins = Origins(self._origin, self.trace)
        self.outbox = Outbox(slot, self.origins)
        self._lives = {name: Life(operator, program.windows[name], name) for name, operator in self.operators.items()}
        self._last = assignment.last
        self._timeout_millis = assignment.timeout_millis
        self._waits = False
        self._steps = 0
        """How many batches arrived, and how many operators have ended the window."""
        self._millis: dict[str, float] = {}
        """How long after its start each operator finished the window."""
        self._metrics: dict[str, dict[str, Any]] = {}
        self._estimated: dict[str, datetime] = {}
        """The watermarks that operators other than splittable ones estimated."""
        self._began = datetime.now(UTC)
        self._started = time.monotonic()
        self._cpu_nanos = time.thread_time_ns()
        self._output = output_of(assignment, program, {id(one): name for name, one in self.operators.items()})
        self._taps = [Tapping(tap, slot, self._spot) for tap in assignment.taps]
        self.binding = Binding(
            program,
            level,
            self.outbox,
            assignment,
            operators=self.operators,
            readings=self.readings,
            kept=state,
            taps=self._taps,
            origins=self.origins,
        )
        for name, operator in self.operators.items():
            serve_outputs(self.staging, name, operator)
            operator._services["item_origin"] = self.origins.now  # noqa: SLF001 - the engine knows what is read

    def run(self, arriving: Iterable[Arrived | None]) -> Iterator[Sent]:
        """Process arriving batches wire by wire, and yield results as they get ready.

        The caller passes None to get control back: the answer is `NOTHING_SENT`.
        """
        try:
            with (
                captured(self._output),
                self._tracing(),
                self._abandoning(),
                ended_without_progress(self._timeout_millis, self._progress),
            ):
                for sent in self._run(self._awaited(arriving)):
                    with self._waiting():  # for the reader of the output
                        yield sent
        except BaseException as error:
            for life in [*self._lives.values(), *self.binding.unifiers()]:
                life.abandon(self.window_id)
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
        waits = (object(),) if self._waits else ()
        return self._steps, *waits, *(reading.progress() for reading in self.readings.values())

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        """The block waits for others: no record of this slot takes long."""
        self._waits = True
        try:
            yield
        finally:
            self._waits = False

    def _awaited(self, arriving: Iterable[Arrived | None]) -> Iterator[Arrived | None]:
        """The batches that arrive, and the slot waits for each."""
        batches = iter(arriving)
        while True:
            with self._waiting():
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
        in_hand = [each.in_hand for each in self.readings.values() if each.in_hand is not None]
        return Report(
            level=self.level,
            slot=self.slot,
            state={name: kept for name, kept in state.items() if kept},
            parts=() if self.staging is None else tuple(self.staging.parts()),
            left=tuple(each for reading in self.readings.values() for each in reading.left),
            put_off={end: each for reading in self.readings.values() for end, each in reading.put_off.items()},
            records={each.elements.into: each.recorder.record() for each in self.readings.values()},
            positions=sum(reading.positions for reading in self.readings.values()),
            work=sum(reading.worked for reading in self.readings.values()),
            busy_millis=self._since_start() - sum(each.idle_millis for each in in_hand),
            reached={each.elements.into: each.reached for each in self.readings.values() if each.reached},
            figures=dict(self._figures()),
            began=self._began,
            estimated=self._estimated,
            finalizers=tuple(self.finalizer.written),
            is_linked=any(each.is_linked for each in in_hand),
            gave=tuple(handover for each in in_hand for handover in each.gave),
            took=tuple(token for each in in_hand for token in each.took),
            samples=tuple(sample for tapping in self._taps for sample in tapping.samples),
        )

    def _figures(self) -> Iterator[tuple[str, Figures]]:
        cpu_nanos = time.thread_time_ns() - self._cpu_nanos
        for name, operator in self.operators.items():
            reading = self.readings.get(name)
            fed = [port for port in input_ports(type(operator)) if (name, port) in self.program.fed]
            taken = {port: self.binding.passed((name, port)) for port in fed}
            if reading is not None:
                taken[work_port(reading.operator)] = reading.begun
            sent = {port: passed() for (sender, port), passed in self.binding.leaving.items() if sender == name}
            read = 0 if reading is None else reading.positions
            stretches = () if reading is None else tuple(reading.stretches)
            underway = () if reading is None else tuple(reading.underway)
            millis, metrics = self._millis[name], self._metrics[name]
            yield name, Figures(taken, sent, read, cpu_nanos, millis, metrics, stretches, underway)

    def _since_start(self) -> float:
        return (time.monotonic() - self._started) * 1000

    def _run(self, arriving: Iterable[Arrived | None]) -> Iterator[Sent]:
        for name, life in self._lives.items():
            life.set_up(
                self.program.context_of(
                    name,
                    self.slot,
                    self.window_id,
                    self.home,
                    application_path=self.application_path,
                    seen=self.seen.get(name),
                    finalizer=self.finalizer,
                    launched=self.launched,
                    began=self.began,
                )
            )
            life.commit(self.committed)
            life.begin(self.window_id)
        for arrived in arriving:
            if arrived is None:
                yield NOTHING_SENT
                continue
            self._steps += 1
            self.binding.take(self.program.targets[arrived.wire], arrived.batch, arrived.element)
            yield from self.outbox.ready()
        self.binding.flush()
        for name in self.operators:
            self.binding.merge_into(name)
            self.binding.flush_into(name)
            if name in self.readings:
                for _ in self.readings[name].work():
                    yield from self.outbox.ready()
            self._end(name)
            yield from self.outbox.ready()
        self.binding.let_go()
        for life in self._lives.values():
            life.save(self.window_id)
            life.tear_down()
        yield from self.outbox.rest()

    def _end(self, name: str) -> None:
        self._steps += 1
        if self.trace is not None:
            self.trace.note(None)
        self.binding.end_controls(name)
        self._lives[name].end(self.window_id, last=self._last)
        self.binding.slide(name)
        self._millis[name] = self._since_start()
        operator = self.operators[name]
        with code_of(name):
            self._metrics[name] = metrics_of(operator)
            watermark = operator.current_watermark() if operator.estimates_watermark else None
            if watermark is not None:
                self._estimated[name] = aware(watermark)

    def _origin(self) -> Any:
        """The element that is read, whose items the operators of this slot process at once."""
        return next((each.origin for each in self.readings.values() if each.element is not None), None)

    def _flush(self) -> None:
        self.binding.flush()

    def _failure(self, error: Exception) -> Exception:
        """Add the location of the record to an operator's error; return other errors unchanged."""
        if isinstance(error, CodecFailed):
            return error.in_window(self.window_id, self.slot)
        name = operator_of(error)
        if name is None:
            return error
        instance, reading = self.operators.get(name), self.readings.get(name)
        aside = None if reading is None else reading.elements.set_aside_for(reading.item, error)
        failed = failure_of(error, name, self.window_id, self.slot, spot=self._spot(), instance=instance, aside=aside)
        if failed.failure.record and not failed.failure.place and self.program.reads:
            failed.help += "; `dagkit launch --reference` names the file and the byte where such a record was read"
        return failed

    def _spot(self, position: int | None = None) -> Spot:
        """The place of the present item, or of the one at a position in the same element."""
        element, known = self.origins.now()
        reading = next((each for each in self.readings.values() if each.element is element is not None), None)
        found = known if reading is None or reading.offset is None else reading.offset
        return spot_of(element, found if position is None else position)


def _link(assignment: WindowTask, into: Address, slot: int) -> BoardLink | None:
    """The link of a slot to the board, if the window has one."""
    board = assignment.board
    return None if board is None else SlotLink(board, into, slot, hands_over=into in assignment.movable)
