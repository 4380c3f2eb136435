"""One slot at work: the stages of one level, for one window. Batches come in; batches and a report go out.

Inside a stage an output is bound straight to the next operator; to a stage of the same level and slot it hands on at
once; what goes further is gathered by the slot that it goes to.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from dagkit.api.controls import controls_in
from dagkit.api.metrics import metrics_of
from dagkit.api.operators import DelayOperator, Operator
from dagkit.api.ports import input_ports, output_ports
from dagkit.api.work import work_port
from dagkit.engine.failures import CodecFailed, OperatorFailed, failure_of, place_of, tear_down, who_failed
from dagkit.engine.files.staging import Staging, serve_files
from dagkit.engine.program.program import Keying, Port, Program, StageProgram, Target
from dagkit.engine.work.item import WorkItem, elements_of
from dagkit.engine.worker.control_tuples import Controls
from dagkit.engine.worker.instances import Receiver, SavedState, bind_output, live, of_items, receiver, saved, to_all
from dagkit.engine.worker.outbox import NOTHING_SENT, Outbox, Sent
from dagkit.engine.worker.protocol import Figures, Report, SlotState, WindowTask
from dagkit.engine.worker.reading import Reading
from dagkit.engine.worker.sliding import Panes, slider_name
from dagkit.plan.model import Routing
from dagkit.schema.batch import Batch


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
        self.home = assignment.home
        self.committed = assignment.committed
        self.stages = [stage for stage in program.stages_at(level) if slot < stage.slots]
        names = [name for stage in self.stages for name in stage.operators]
        self.operators = {name: live(program.operators[name][slot], state.get(name, {})) for name in names}
        self.outbox = Outbox(slot)
        self.staging = None if assignment.staging is None else Staging(assignment.staging, slot)
        self.readings = {
            name: Reading(elements, slot, assignment, work, staging=lambda: self.staging, flush=self._flush)
            for name, operator in self.operators.items()
            if (elements := elements_of(program, name, operator)) is not None
        }
        """Of each splittable operator."""
        self._set_up: list[Operator] = []
        """Those that are to be torn down, whatever happens."""
        self._held: dict[str, list[Any]] = {}
        """What each delay holds back."""
        self._merging: dict[int, tuple[Operator, Receiver]] = {}
        """The unifier of each wire that has one, once its first items came."""
        self._entrances: dict[Port, Receiver] = {}
        self._controls = {name: Controls(name, operator, self._flush_into) for name, operator in self.operators.items()}
        self._last = assignment.last
        self._panes: dict[Port, Panes] = {}
        self._slides: dict[Port, list[Receiver]] = {}
        """Where what slides goes when it does."""
        self._kept = state
        self._leaving: dict[Port, Callable[[], int]] = {}
        """How many items left by each output that a stream begins at."""
        self._millis: dict[str, float] = {}
        """When each operator was through with the window, from its start."""
        self._metrics: dict[str, dict[str, Any]] = {}
        self._began = datetime.now(UTC)
        self._started = time.monotonic()
        self._cpu_nanos = time.thread_time_ns()
        for stage in reversed(self.stages):
            self._bind(stage)
        for name, operator in self.operators.items():
            serve_files(self.staging, name, operator)

    def run(self, arriving: Iterable[tuple[int, Batch[Any]] | None]) -> Iterator[Sent]:
        """Work through what arrives, wire by wire, and give what goes on as it gets ready.

        None arrives where whoever carries batches wants a turn, and is given `NOTHING_SENT`.
        """
        try:
            with self._abandoning():
                yield from self._run(arriving)
        except BaseException as error:
            tear_down(self._set_up, self.window_id)
            if isinstance(error, OperatorFailed) or not isinstance(error, Exception):
                raise
            raise self._failure(error) from error

    def report(self) -> Report:
        """What the window left."""
        with self._abandoning():
            return self._report()

    @contextmanager
    def _abandoning(self) -> Iterator[None]:
        """Where it fails, nothing that was staged counts, and nothing of it is open."""
        try:
            yield
        except BaseException:
            if self.staging is not None:
                self.staging.abandon()
            raise

    def _report(self) -> Report:
        state: dict[str, SavedState] = {name: saved(operator, name) for name, operator in self.operators.items()}
        state |= {slider_name(*port): panes.saved() for port, panes in self._panes.items()}
        return Report(
            level=self.level,
            slot=self.slot,
            state={name: kept for name, kept in state.items() if kept},
            parts=() if self.staging is None else tuple(self.staging.parts()),
            left=tuple(each for reading in self.readings.values() for each in reading.left),
            put_off={end: each for reading in self.readings.values() for end, each in reading.put_off.items()},
            positions=sum(reading.positions for reading in self.readings.values()),
            work=sum(reading.worked for reading in self.readings.values()),
            busy_millis=self._since_start(),
            reached={each.elements.into: each.reached for each in self.readings.values() if each.reached is not None},
            figures=dict(self._figures()),
            began=self._began,
        )

    def _figures(self) -> Iterator[tuple[str, Figures]]:
        cpu_nanos = time.thread_time_ns() - self._cpu_nanos
        for name, operator in self.operators.items():
            reading = self.readings.get(name)
            fed = [port for port in input_ports(type(operator)) if (name, port) in self.program.fed]
            taken = {port: self._entrances[name, port].passed() for port in fed}
            if reading is not None:
                taken[work_port(reading.operator)] = reading.begun
            sent = {port: passed() for (sender, port), passed in self._leaving.items() if sender == name}
            read = 0 if reading is None else reading.positions
            stretches = () if reading is None else tuple(reading.stretches)
            yield name, Figures(taken, sent, read, cpu_nanos, self._millis[name], self._metrics[name], stretches)

    def _since_start(self) -> float:
        return (time.monotonic() - self._started) * 1000

    def _run(self, arriving: Iterable[tuple[int, Batch[Any]] | None]) -> Iterator[Sent]:
        for name, operator in self.operators.items():
            self._begin(name, operator)
        for arrived in arriving:
            if arrived is None:
                yield NOTHING_SENT
                continue
            wire, batch = arrived
            self._take(self.program.targets[wire], batch)
            yield from self.outbox.ready()
        self._flush()
        for name, operator in self.operators.items():
            self._merge_into(name)
            self._flush_into(name)
            if name in self.readings:
                for _ in self.readings[name].work():
                    yield from self.outbox.ready()
            self._end(name, operator)
            yield from self.outbox.ready()
        self._let_go()
        for operator in self.operators.values():
            operator.before_checkpoint(self.window_id)
            operator.deactivate()
            operator.teardown()
            self._set_up.remove(operator)
        yield from self.outbox.rest()

    def _begin(self, name: str, operator: Operator) -> None:
        context = self.program.context_of(name, self.slot, self.window_id, self.home)
        operator.setup(context)
        self._set_up.append(operator)
        operator.activate(context)
        if self.committed:
            operator.checkpointed(self.committed)
            operator.committed(self.committed)
        if (self.window_id - 1) % self.program.windows[name] == 0:
            operator.begin_window(self.window_id)

    def _take(self, target: Target, batch: Batch[Any]) -> None:
        told, name = controls_in(batch), target.into[0]
        for stamped in told if not isinstance(self.operators[name], DelayOperator) else ():  # there they end
            self._controls[name].take(stamped)
        if not told:
            self._entrance(target).batch(batch)

    def _end(self, name: str, operator: Operator) -> None:
        self._controls[name].end()
        if self._last:
            operator.drained()
        if self.window_id % self.program.windows[name] == 0:
            operator.end_window()
        self._slide(name)
        self._millis[name] = self._since_start()
        self._metrics[name] = metrics_of(operator)

    def _entrance(self, target: Target) -> Receiver:
        """What takes what comes on a wire: the input itself, or the unifier before it."""
        if target.unifier is None:
            return self._entrances[target.into]
        if target.wire not in self._merging:
            unifier = live(target.unifier(), {})
            bind_output(unifier, "unified", [self._entrances[target.into]])
            unifier.setup(self.program.context_of(target.into[0], self.slot, self.window_id, self.home))
            unifier.begin_window(self.window_id)
            self._merging[target.wire] = unifier, receiver(unifier, "parts", Keying())
        return self._merging[target.wire][1]

    def _bind(self, stage: StageProgram) -> None:
        """Bind the operators of a stage, the last first, so that each finds the next one bound."""
        for name in reversed(stage.operators):
            operator = self.operators[name]
            for port in output_ports(type(operator)):
                sinks = list(self._sinks(stage, (name, port)))
                if sinks and (name, port) in self.program.sliders:
                    sinks = [self._into_panes((name, port), sinks)]
                if sinks:  # all are sent the same
                    held = self._held_by(name) if isinstance(operator, DelayOperator) else None
                    self._leaving[name, port] = sinks[0].passed if held is None else held.__len__
                bind_output(operator, port, sinks)
            for port in input_ports(type(operator)):
                control = None if isinstance(operator, DelayOperator) else self._controls[name].take
                self._entrances[name, port] = replace(self._into(name, operator, port), control=control)

    def _into(self, name: str, operator: Operator, port: str) -> Receiver:
        if isinstance(operator, DelayOperator):
            return of_items(self._held_by(name).append, self._held_by(name).__len__)
        if name in self.readings and port == work_port(self.readings[name].operator):
            return of_items(self.readings[name].take)
        return receiver(operator, port, self.program.keyings[name, port])

    def _held_by(self, delay: str) -> list[Any]:
        return self._held.setdefault(delay, [])

    def _sinks(self, stage: StageProgram, output: Port) -> Iterator[Receiver]:
        if output in stage.links:
            yield self._entrances[stage.links[output]]
        for target in stage.targets.get(output, ()):
            here = target.level == self.level and target.routing is Routing.STRAIGHT and not target.delayed
            if not here:
                yield self.outbox.channel(target)
            elif target.unifier is None:
                yield self._entrances[target.into]
            else:
                yield self._merged(target)

    def _merged(self, target: Target) -> Receiver:
        """The unifier before an input of this very slot, made when its first items come."""
        return Receiver(
            lambda item: self._entrance(target).item(item),
            lambda batch: self._entrance(target).batch(batch),
            control=self._entrances[target.into].control,
            passed=lambda: self._merging[target.wire][1].passed() if target.wire in self._merging else 0,
        )

    def _merge_into(self, name: str) -> None:
        """What unifiers have for an operator flows in: all that they merge has ended."""
        for wire, (unifier, into) in self._merging.items():
            if self.program.targets[wire].into[0] == name:
                if into.flush is not None:
                    into.flush()
                unifier.end_window()
                unifier.teardown()

    def _into_panes(self, output: Port, sinks: list[Receiver]) -> Receiver:
        kept = self._kept.get(slider_name(*output), {})
        panes = self._panes[output] = Panes(self.program.sliders[output], kept)
        self._slides[output] = sinks
        told = [sink.control for sink in sinks if sink.control is not None]
        return replace(of_items(panes.add, lambda: panes.added), control=to_all(told) if told else None)

    def _slide(self, name: str) -> None:
        """What an operator's windows hold goes on, where they slide with this one."""
        for (operator, port), sinks in self._slides.items():
            if operator == name:
                items = self._panes[operator, port].turn(self.window_id)
                for sink in sinks if items else ():
                    sink.batch(Batch.of(items))

    def _flush(self) -> None:
        """What waits for operators that take batches is handed on, upstream first."""
        for name in self.operators:
            self._flush_into(name)

    def _flush_into(self, name: str) -> None:
        for (operator, _), into in self._entrances.items():
            if operator == name and into.flush is not None:
                into.flush()

    def _let_go(self) -> None:
        """What the delays held back goes out; it comes round in the next window."""
        for name, items in self._held.items():
            for stage in self.stages:
                for target in stage.targets.get((name, "output"), ()):
                    self.outbox.channel(target).batch(Batch.of(items))

    def _failure(self, error: Exception) -> Exception:
        """The error with what finds the record; one of dagkit's own, that no operator raised, stays as it is."""
        if isinstance(error, CodecFailed):
            return error.told(self.window_id, self.slot)
        name = who_failed(error.__traceback__, self.operators)
        if name is None:
            return error
        reading = next((each for each in self.readings.values() if each.element is not None), None)
        place = "" if reading is None else place_of(reading.element, reading.offset)
        return failure_of(error, name, self.window_id, self.slot, place)
