"""Run a compiled application window by window, operator by operator, partition by partition.

Nothing is fused. In the order of the plan, each partition of an operator receives all its items of a window before the
next partition runs. Every other backend must have the same results.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from threading import Event
from typing import Any

from dagkit.api.controls import Stamped, controls_in
from dagkit.api.external import external_outputs
from dagkit.api.files import output_files
from dagkit.api.metrics import metrics_of
from dagkit.api.operators import DelayOperator, InputOperator, Operator
from dagkit.api.ports import output_ports
from dagkit.api.running import Context
from dagkit.api.work import work_port
from dagkit.backends.reference.child import run_in_child
from dagkit.backends.reference.one_partition import OnePartition, Placed
from dagkit.backends.reference.plain_reading import Board, PlainReading
from dagkit.compiler import Compilation
from dagkit.compiler.fuse import Fused, Wire
from dagkit.engine.files.entries import serve_outputs
from dagkit.engine.files.publish import put_in_place
from dagkit.engine.files.staging import Part, Staging
from dagkit.engine.program.entrances import code_of, noting_item, operator_of
from dagkit.engine.program.failures import Interrupted, WindowAbandoned, failure_of, spot_of
from dagkit.engine.program.lower import keying_of, numbered, program_of
from dagkit.engine.program.masking import masked_output
from dagkit.engine.program.operator_output import captured
from dagkit.engine.program.program import Keying, Program
from dagkit.engine.work.elements import Elements, elements_of
from dagkit.engine.work.handover import SlotStanding
from dagkit.engine.worker.instances import SavedState, saved
from dagkit.engine.worker.outbox import Sent
from dagkit.engine.worker.protocol import Answer, Cores, Figures, Report, Sample, WindowTask
from dagkit.engine.worker.sliding import Panes, slider_name
from dagkit.engine.worker.tracing import Trace
from dagkit.engine.worker.watchdog import ended_without_progress
from dagkit.graph import Node
from dagkit.plan.model import Routing
from dagkit.ranges import aware
from dagkit.schema.batch import Batch

Watch = Callable[[int, str, str, list[Any]], None]
"""Receives what one output of an operator sent in a window: the window, the operator, the port and the items."""


class ReferenceBackend:
    """The backend that other backends are compared with: simple, and slow."""

    def __init__(
        self,
        compilation: Compilation,
        *,
        watch: Watch | None = None,
        board: Callable[[], Board] | None = None,
    ) -> None:
        self.watch = watch
        """Called after each window with the items of each connected output; not for a window in a child process."""
        self._closed = Event()
        """Set when the window that runs is abandoned."""
        self._board = board
        """Makes the board of a window; None: partitions hand no work over."""
        self.load(compilation)

    def load(self, compilation: Compilation) -> None:
        """Run all later windows with this compilation."""
        self.compilation = compilation
        fused = compilation.steps["fused"]
        assert isinstance(fused, Fused), "an application is compiled to the end before it runs"
        self.fused = fused
        self.program = program_of(compilation)

    def cores(self) -> Cores:
        """Return one core: there is one thread."""
        return Cores()

    def run(self, task: WindowTask) -> Answer:
        """Run one window in the thread of the caller, or in a child process if it may end its process."""
        board = None if self._board is None else self._board()
        window = _Window(self.fused, self.program, task, board, self._closed)
        plan = self.compilation.plan
        order = [operator.name for operator in plan.operators]
        if task.attempt.isolated:
            return run_in_child(lambda: window.run(order), task.window_id, window.closed)
        answer = window.run(order)
        if self.watch is not None:
            window.show(self.watch)
        return answer

    def running(self) -> list[SlotStanding]:
        """Return nothing: partitions report no progress."""
        return []

    def put_in_place(self, files: Mapping[str, Iterable[Part]], application_path: str, *, durable: bool) -> None:
        """Assemble files from their pieces, one after the other."""
        put_in_place(files, application_path, durable=durable)

    def close(self) -> None:
        """End a window that runs in this process before its next record: its run raises WindowAbandoned.

        Kill the child process of a window that runs in one. A later run may use the backend again.
        """
        self._closed.set()
        self._closed = Event()


class _Window:
    """One window that runs."""

    def __init__(self, fused: Fused, program: Program, task: WindowTask, board: Board | None, closed: Event) -> None:
        self.board = board
        self.closed = closed
        """Set when the window is abandoned."""
        self.fused = fused
        self.by_name = fused.graph.by_name
        self.program = program
        self.task = task
        self.trace: Trace | None = None
        self.live: dict[str, list[OnePartition]] = {}
        self.into: dict[str, list[tuple[int, Wire]]] = {}
        self.delayed: list[Sent] = []
        for number, wire in enumerate(numbered(fused)):
            self.into.setdefault(wire.sink.node, []).append((number, wire))
        self.led = {(wire.source.node, wire.source.port) for wire in fused.wires}
        """The outputs that a stream is connected to."""

    def run(self, order: Iterable[str]) -> Answer:
        attempt = self.task.attempt
        self.trace = Trace.into(attempt.traces, "window")
        workers = [name for name in order if not isinstance(self.program.operators[name][0], InputOperator)]
        for name in workers:
            self.live[name] = [self._start(name, index) for index in range(len(self.program.operators[name]))]
        try:
            for name in workers:
                for index, partition in enumerate(self.live[name]):
                    with ended_without_progress(attempt.timeout_millis, partition.progress):
                        self._run_guarded(name, index, partition)
            if self.trace is not None:
                self.trace.end(failed=False)
            return Answer(tuple(self._reports()), tuple(self.delayed))
        finally:
            # The report closed the files of a successful attempt.
            for partition in (each for partitions in self.live.values() for each in partitions):
                if partition.staging is not None:
                    partition.staging.abandon()

    def show(self, watch: Watch) -> None:
        """Pass what each connected output sent to `watch`."""
        for name, port in sorted(self.led):
            sent = [each.item for partition in self.live.get(name, ()) for each in partition.sent[port]]
            watch(self.task.window_id, name, port, sent)

    def _start(self, name: str, index: int) -> OnePartition:
        kept, program, attempt = self._state(name, index).get(name, {}), self.program, self.task.attempt
        configured = program.operators[name][index]
        led = [port for port in output_ports(type(configured)) if (name, port) in self.led]
        stages = output_files(type(configured)) or external_outputs(type(configured))
        place = attempt.staging if stages else None
        staging = None if place is None else Staging(place, index)
        types = program.types.get(name)
        partition = OnePartition.started(
            name, configured, kept, led, staging, types=types, closed=self.closed, trace=self.trace
        )
        serve_outputs(staging, name, partition.operator)
        return partition

    def _place(self, name: str, index: int) -> tuple[int, int]:
        """The level and the number of the slot of one partition."""
        return self.program.stage_of[name].level, index

    def _state(self, name: str, index: int) -> Mapping[str, SavedState]:
        """The state of the slot of one partition before the window."""
        state = self.task.state
        return state.get(self._place(name, index), {})

    def _run_guarded(self, name: str, index: int, partition: OnePartition) -> None:
        """Run one partition. A failure of its code, or of a unifier before it, names its operator."""
        partition.outcome.began = datetime.now(UTC)
        began, cpu_nanos = time.monotonic(), time.thread_time_ns()
        try:
            names = {id(partition.operator): name}
            task = self.task
            with captured(masked_output(task.launch.log, self.program, task.window_id, names, takes_records=False)):
                self._run(self.by_name[name], index, partition)
        except (WindowAbandoned, Interrupted):
            partition.abandon(self.task.window_id)
            raise
        except SystemExit as error:
            # An operator's code exits. On this thread, the launch would end as if it had succeeded.
            partition.abandon(self.task.window_id)
            spot = spot_of(partition.origin.element, partition.origin.offset)
            raise failure_of(error, name, self.task.window_id, index, spot=spot, instance=partition.operator) from error
        except Exception as error:
            partition.abandon(self.task.window_id)
            failed = operator_of(error)
            if failed is None:
                raise
            spot = spot_of(partition.origin.element, partition.origin.offset)
            instance = partition.operator if failed == name else None
            window_id = self.task.window_id
            reading = partition.reading if failed == name else None
            aside = None if reading is None else reading.elements.set_aside_for(reading.item, error)
            raise failure_of(error, failed, window_id, index, spot=spot, instance=instance, aside=aside) from error
        partition.outcome.millis = (time.monotonic() - began) * 1000
        partition.outcome.cpu_nanos = time.thread_time_ns() - cpu_nanos

    def _run(self, node: Node, index: int, partition: OnePartition) -> None:
        operator, window_id = partition.operator, self.task.window_id
        count = self.program.windows[node.name]
        context = replace(self._context_of(node, index), finalizer=partition.finalizer)
        partition.begin(context, self.task.committed, begins=(window_id - 1) % count == 0)
        self._take(node, index, partition)
        # After all items of the window: behind an exchange, a control tuple has no place among them. Delays drop them.
        if not isinstance(operator, DelayOperator):
            partition.take_controls(self._controls_for(node.name, index))
        with code_of(node.name):
            if self.task.last:
                operator.drained()
            if window_id % count == 0:
                operator.end_window()
            partition.outcome.metrics = metrics_of(operator)
            if operator.estimates_watermark and (watermark := operator.current_watermark()) is not None:
                partition.outcome.watermark = aware(watermark)
            operator.before_checkpoint(window_id)
        partition.end()
        emitted = partition.outcome.emitted
        for port in node.output_ports:
            emitted.setdefault(port, len(partition.sent[port]))
            self._slide(node.name, port, index, partition)

    def _take(self, node: Node, index: int, partition: OnePartition) -> None:
        """Deliver the items of each input. Work comes last, so the operator knows all other items of the window."""
        operator = partition.operator
        elements = elements_of(self.program, node.name, operator)
        for port in node.input_ports:
            if isinstance(operator, DelayOperator):
                self._hold(node.name, index, partition)
            elif elements is None or elements.into != f"{node.name}.{port}":
                items = self._arriving(node, port, index)
                partition.outcome.taken[port] = len(items)
                partition.take(port, items, keying_of(node, port))
        if elements is not None:
            self._read(node, index, partition, elements)

    def _controls_for(self, name: str, index: int) -> Iterator[Stamped]:
        """Yield the control tuples that reach a partition in this window by any wire; some arrive several times."""
        for number, wire in self.into.get(name, ()):
            for each in self.task.arriving:
                if (each.wire, each.slot) == (number, index):
                    yield from controls_in(each.batch)
            if wire.routing is not Routing.DELAYED:
                for sender, partition in enumerate(self.live.get(wire.source.node, ())):
                    if wire.routing is not Routing.STRAIGHT or sender == index:
                        yield from partition.controls[wire.source.port]

    def _slide(self, name: str, port: str, index: int, partition: OnePartition) -> None:
        """Keep the sent items of a sliding output in panes, and send the items of the windows that slide now."""
        if (name, port) not in self.program.sliders:
            return
        state = self._state(name, index)
        panes = Panes(self.program.sliders[name, port], state.get(slider_name(name, port), {}))
        for each in partition.sent[port]:
            panes.add(each.item)
        partition.sent[port] = [Placed(item) for item in panes.turn(self.task.window_id)]
        partition.outcome.panes[slider_name(name, port)] = panes.saved()

    def _read(self, node: Node, index: int, partition: OnePartition, elements: Elements) -> None:
        task = self.task
        attempt, work = task.attempt, task.work.get(self._place(node.name, index), ())
        board = self.board if elements.into in attempt.movable else None
        partition.reading = PlainReading(elements, index, task, partition.staging, board=board, trace=self.trace)
        arrived = [each.item for each in self._arriving(node, elements.into.port, index)]
        partition.reading.work(work, arrived)

    def _hold(self, name: str, index: int, partition: OnePartition) -> None:
        """Route the items of a delay to their partitions; they arrive in the next window."""
        items = self._arriving(self.by_name[name], "input", index)
        partition.outcome.taken["input"] = partition.outcome.emitted["output"] = len(items)
        for wires in self.into.values():
            for number, wire in wires:
                if wire.source.node == name:
                    self._send_round(number, wire, items, index)

    def _send_round(self, number: int, wire: Wire, items: list[Placed], sender: int) -> None:
        target = self.program.targets[number]
        for index in range(target.slots):
            share = [each.item for each in self._routed(wire, target.routing, index, items, sender)]
            if share:
                self.delayed.append(Sent(number, index, target.level, delayed=True, batch=Batch.of(share)))

    def _arriving(self, node: Node, port: str, index: int) -> list[Placed]:
        """The items that one partition receives at one input."""
        wires = [(number, wire) for number, wire in self.into.get(node.name, ()) if wire.sink.port == port]
        return [placed for number, wire in wires for placed in self._from(number, wire, node, index)]

    def _from(self, number: int, wire: Wire, node: Node, index: int) -> list[Placed]:
        """The items that one partition receives by one wire, unified if the wire has a unifier."""
        arriving = [s.batch for s in self.task.arriving if (s.wire, s.slot) == (number, index)]
        arrived = [Placed(item) for batch in arriving if not controls_in(batch) for item in batch.items()]
        if wire.source.node in self.live and wire.routing is not Routing.DELAYED:
            senders = [partition.sent[wire.source.port] for partition in self.live[wire.source.node]]
            for sender, sent in enumerate(senders):
                arrived += self._routed(wire, wire.routing, index, sent, sender)
        targets = self.program.targets
        target = targets.get(number)
        if target is None or target.unifier is None or not arrived:
            return arrived
        return self._unified(target.unifier, arrived, node, index)

    def _context_of(self, node: Node, index: int) -> Context:
        task, name = self.task, node.name
        return self.program.context_of(
            name, index, task.window_id, task.launch, seen=task.seen.get(name), began=task.began
        )

    def _routed(self, wire: Wire, routing: Routing, index: int, sent: list[Placed], sender: int) -> list[Placed]:
        """The items of one sender that go to one partition."""
        receiver, port = self.fused.partitioned[wire.sink.node], wire.sink.port
        if routing is Routing.STRAIGHT:
            return sent if sender == index else []
        if routing is Routing.KEYED:
            keys = receiver.partitions[index].keys[port]
            code = noting_item(wire.sink.node, keying_of(self.by_name[wire.sink.node], port).code)
            return [one for one in sent if keys.owns(code(one.item))]
        if routing is Routing.DISTRIBUTED:
            # Each sender begins with another partition, or the first would get the single items of all senders.
            return [each for number, each in enumerate(sent, sender) if number % receiver.count == index]
        return sent

    def _unified(self, make: Callable[[], Operator], arrived: list[Placed], node: Node, index: int) -> list[Placed]:
        """Return the unified items of several senders. If the unifier fails, the failure names the receiver."""
        unifier = OnePartition.started(node.name, make(), {}, ["unified"])
        try:
            unifier.begin(self._context_of(node, index), 0, begins=True)
            unifier.take("parts", arrived, Keying())
            with code_of(node.name):
                unifier.operator.end_window()
            unifier.end()
        except BaseException:
            unifier.abandon(self.task.window_id)
            raise
        return unifier.sent["unified"]

    def _reports(self) -> Iterator[Report]:
        for name, partitions in self.live.items():
            level = self.program.stage_of[name].level
            for slot, partition in enumerate(partitions):
                state = saved(partition.operator, name)
                reading = partition.reading
                yield Report(
                    level=level,
                    slot=slot,
                    state={**({name: state} if state else {}), **partition.outcome.panes},
                    parts=() if partition.staging is None else tuple(partition.staging.parts()),
                    done={} if reading is None else {reading.elements.into: reading.done},
                    busy_millis=partition.outcome.millis,
                    estimated={} if partition.outcome.watermark is None else {name: partition.outcome.watermark},
                    finalizers=tuple(partition.finalizer.written),
                    figures={name: self._figures(name, partition)},
                    began=partition.outcome.began,
                    samples=tuple(self._samples(name, slot, partition)),
                )

    def _samples(self, name: str, slot: int, partition: OnePartition) -> Iterator[Sample]:
        """Samples of what the tapped outputs of a partition sent."""
        for tap in self.task.taps:
            if tap.operator == name:
                for placed in partition.sent[tap.port][:: tap.every][: tap.most]:
                    yield tap.sample(slot, placed.item, spot_of(placed.origin.element, placed.origin.offset).place)

    def _figures(self, name: str, partition: OnePartition) -> Figures:
        stage, reading, outcome = self.program.stage_of[name], partition.reading, partition.outcome
        taken = {port: count for port, count in outcome.taken.items() if (name, port) in self.program.feeders}
        connected = {*stage.links, *stage.targets}
        sent = {port: count for port, count in outcome.emitted.items() if (name, port) in connected}
        if reading is not None:
            taken[work_port(reading.operator)] = reading.done.begun
        read, underway = (0, ()) if reading is None else (reading.done.positions, tuple(reading.done.underway))
        millis = outcome.millis  # a partition runs alone, so all of it is its own
        return Figures(taken, sent, read, outcome.cpu_nanos, millis, millis, outcome.metrics, underway)
