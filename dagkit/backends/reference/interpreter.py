"""Runs a compiled application window by window, operator by operator, partition by partition.

Nothing is fused and nothing is clever: an operator's partitions see all that reaches them in a window, one after the
other, in the order of the plan. Whatever another backend does faster must come to the same.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby, repeat
from typing import Any, NamedTuple

from dagkit.api.controls import Stamped, controls_in
from dagkit.api.files import output_files
from dagkit.api.metrics import metrics_of
from dagkit.api.operators import DelayOperator, InputOperator, Operator
from dagkit.api.ports import output_ports
from dagkit.api.running import Context
from dagkit.api.work import work_port
from dagkit.compiler import Compilation
from dagkit.compiler.fuse import Fused, Wire
from dagkit.engine.entrances import code_of, failing_among, noting_item, operator_of
from dagkit.engine.failures import failure_of, offsets_in, spot_of, tear_down
from dagkit.engine.files.publish import put_in_place
from dagkit.engine.files.staging import Part, Staging, serve_files
from dagkit.engine.program.lower import keying_of, numbered, program_of
from dagkit.engine.program.program import Keying, Program
from dagkit.engine.work.elements import Elements, elements_of
from dagkit.engine.worker.control_tuples import Controls
from dagkit.engine.worker.instances import Receiver, SavedState, Take, bind_output, live, receiver, saved
from dagkit.engine.worker.outbox import Outbox, Sent
from dagkit.engine.worker.protocol import Answer, Cores, Figures, Report, WindowTask
from dagkit.engine.worker.reading import Reading
from dagkit.engine.worker.sliding import Panes, slider_name
from dagkit.graph import Node
from dagkit.plan.model import Routing
from dagkit.schema.batch import Batch


class _Origin(NamedTuple):
    """The input that an item was made from."""

    order: int = 0
    """The start of the range of a block, if the input was one: it gives the item's place in the block's files."""
    element: Any = None
    """The element that a reader read it from, for reports of failures."""
    offset: int | None = None
    """The position of the record in the element, if the reader reports it."""


_UNKNOWN = _Origin()


class _Placed(NamedTuple):
    """An item with its origin."""

    item: Any
    origin: _Origin = _UNKNOWN

    @property
    def together(self) -> tuple[int, int]:
        """Equal for items that may be passed on together."""
        return self.origin.order, id(self.origin.element)


@dataclass
class _Partition:
    """One live instance, and what it sent in this window, by output port."""

    operator: Operator
    sent: dict[str, list[_Placed]] = field(default_factory=dict)
    sent_controls: dict[str, list[Stamped]] = field(default_factory=dict)
    """The control tuples sent, by output port."""
    staging: Staging | None = None
    reading: Reading | None = None
    taking: _Origin = _UNKNOWN
    """The origin of the item that is being processed, if another operator sent it."""
    is_set_up: bool = False
    """Whether the operator must be torn down, even after a failure."""
    began: datetime | None = None
    millis: float = 0.0
    cpu_nanos: int = 0
    taken: dict[str, int] = field(default_factory=dict)
    """The number of items received, by input port."""
    emitted: dict[str, int] = field(default_factory=dict)
    """The number of items sent, by connected output port, before windows slide."""
    metrics: dict[str, Any] = field(default_factory=dict)
    panes: dict[str, SavedState] = field(default_factory=dict)

    @property
    def origin(self) -> _Origin:
        """The origin of the items that it sends now."""
        if self.reading is None:
            return self.taking
        return _Origin(self.reading.order, self.reading.element, self.reading.offset)

    def take(self, port: str, placed: Iterable[_Placed], keying: Keying) -> None:
        """Pass all items to an input. A batch that the input collects holds only items that belong together."""
        into = receiver(self.operator, port, keying)
        for _, together in groupby(placed, lambda sent: sent.together):
            if into.flush is None:
                for sent in together:
                    self._at(sent.origin)
                    into.item(sent.item)
            else:
                self._gather(into.item, into.flush, list(together))
        self._at(_UNKNOWN)

    def _gather(self, take: Take, flush: Callable[[], None], together: Sequence[_Placed]) -> None:
        """Pass on many items at once. If that fails, pass on each alone, to find the item that fails."""

        def pass_on(these: Sequence[_Placed]) -> None:
            for sent in these:
                take(sent.item)
            flush()

        self._at(together[0].origin._replace(offset=None))
        try:
            pass_on(together)
        except Exception as error:
            known = [sent for sent in together if sent.origin.offset is not None]
            failing = failing_among(len(known), lambda index: pass_on(known[index : index + 1]), error)
            if failing is not None:
                self._at(known[failing].origin)
            raise

    def _at(self, origin: _Origin) -> None:
        self.taking = origin
        if self.staging is not None:
            self.staging.order = origin.order


class ReferenceBackend:
    """The simplest correct backend, to compare others with."""

    def __init__(self, compilation: Compilation) -> None:
        self.load(compilation)

    def load(self, compilation: Compilation) -> None:
        """Use this program for all windows from now on."""
        self.compilation = compilation
        fused = compilation.steps["fused"]
        assert isinstance(fused, Fused), "an application is compiled to the end before it runs"
        self.fused = fused
        self.program = program_of(compilation)
        self.order = [operator.name for operator in compilation.plan.operators]

    def cores(self) -> Cores:
        """One slot: there is one thread."""
        return Cores()

    def run(self, assignment: WindowTask) -> Answer:
        """Run one window, in the calling thread."""
        return _Window(self.fused, self.program, assignment).run(self.order)

    def put_in_place(self, files: Mapping[str, Iterable[Part]], application_path: str, *, durable: bool) -> None:
        """Publish files from their pieces, one after the other."""
        put_in_place(files, application_path, durable=durable)

    def close(self) -> None:
        """Do nothing: nothing runs between two windows."""


class _Window:
    """One running window."""

    def __init__(self, fused: Fused, program: Program, assignment: WindowTask) -> None:
        self.fused = fused
        self.program = program
        self.assignment = assignment
        self.live: dict[str, list[_Partition]] = {}
        self.into: dict[str, list[tuple[int, Wire]]] = {}
        self.delayed: list[Sent] = []
        for number, wire in enumerate(numbered(fused)):
            self.into.setdefault(wire.sink.node, []).append((number, wire))
        self.led = {(wire.source.node, wire.source.port) for wire in fused.wires}
        """The connected outputs."""

    def run(self, order: Iterable[str]) -> Answer:
        workers = [name for name in order if not isinstance(self.program.operators[name][0], InputOperator)]
        for name in workers:
            self.live[name] = [self._started(name, index) for index in range(len(self.program.operators[name]))]
        try:
            for name in workers:
                for index, partition in enumerate(self.live[name]):
                    self._guarded(name, index, partition)
            return Answer(tuple(self._reports()), tuple(self.delayed))
        finally:  # only after a failure: an operator that reported is torn down already
            for partition in (one for partitions in self.live.values() for one in partitions):
                if partition.staging is not None:
                    partition.staging.abandon()

    def _started(self, name: str, index: int) -> _Partition:
        stage = self.program.stage_of[name]
        kept = self.assignment.state.get((stage.level, index), {}).get(name, {})
        configured = self.program.operators[name][index]
        partition = _live(
            configured, kept, [port for port in output_ports(type(configured)) if (name, port) in self.led]
        )
        if self.assignment.staging is not None and output_files(type(partition.operator)):
            partition.staging = Staging(self.assignment.staging, index)
        serve_files(partition.staging, name, partition.operator)
        return partition

    def _guarded(self, name: str, index: int, partition: _Partition) -> None:
        """Run one partition. Its errors name the operator."""
        partition.began = datetime.now(UTC)
        began, cpu_nanos = time.monotonic(), time.thread_time_ns()
        try:
            self._run(self.fused.graph.by_name[name], index, partition)
        except Exception as error:
            tear_down([partition.operator] if partition.is_set_up else [], self.assignment.window_id)
            if operator_of(error) is None:
                raise
            spot = spot_of(partition.origin.element, partition.origin.offset)
            window_id = self.assignment.window_id
            raise failure_of(error, name, window_id, index, spot=spot, instance=partition.operator) from error
        partition.millis = (time.monotonic() - began) * 1000
        partition.cpu_nanos = time.thread_time_ns() - cpu_nanos

    def _run(self, node: Node, index: int, partition: _Partition) -> None:
        operator, window_id = partition.operator, self.assignment.window_id
        count = self.program.windows[node.name]
        context = self._context_of(node, index)
        with code_of(node.name):
            operator.setup(context)
            partition.is_set_up = True
            operator.activate(context)
            if self.assignment.committed:
                operator.checkpointed(self.assignment.committed)
                operator.committed(self.assignment.committed)
            if (window_id - 1) % count == 0:
                operator.begin_window(window_id)
        self._take(node, index, partition)
        if not isinstance(operator, DelayOperator):  # a delay ends control tuples
            self._pass_controls(node, index, operator)
        with code_of(node.name):
            if self.assignment.last:
                operator.drained()
            if window_id % count == 0:
                operator.end_window()
            partition.metrics = metrics_of(operator)
            operator.before_checkpoint(window_id)
            operator.deactivate()
            operator.teardown()
            partition.is_set_up = False
        for port in node.output_ports:
            partition.emitted.setdefault(port, len(partition.sent[port]))
            self._slide(node.name, port, index, partition)

    def _take(self, node: Node, index: int, partition: _Partition) -> None:
        """Pass on the items of each input. Elements come last, after all side values of the window."""
        operator = partition.operator
        elements = elements_of(self.program, node.name, operator)
        for port in node.input_ports:
            if isinstance(operator, DelayOperator):
                self._hold(node.name, index, partition)
            elif elements is None or elements.into != f"{node.name}.{port}":
                items = self._arriving(node, port, index)
                partition.taken[port] = len(items)
                partition.take(port, items, keying_of(node, port))
        if elements is not None:
            self._read(node, index, partition, elements)

    def _pass_controls(self, node: Node, index: int, operator: Operator) -> None:
        """Pass on the control tuples of all upstream operators, each once, after the items."""
        controls = Controls(node.name, operator, lambda _: None)
        for number, wire in self.into.get(node.name, ()):
            arriving = [s.batch for s in self.assignment.arriving if (s.wire, s.slot) == (number, index)]
            stamped_controls = [stamped for batch in arriving for stamped in controls_in(batch)]
            if wire.routing is not Routing.DELAYED:
                senders = enumerate(self.live.get(wire.source.node, ()))
                reached = [p for i, p in senders if wire.routing is not Routing.STRAIGHT or i == index]
                stamped_controls += [
                    stamped for sender in reached for stamped in sender.sent_controls.get(wire.source.port, ())
                ]
            for stamped in stamped_controls:
                controls.take(stamped)
        controls.end()

    def _slide(self, name: str, port: str, index: int, partition: _Partition) -> None:
        """If windows overlap, keep the sent items in panes until they slide."""
        if (name, port) not in self.program.sliders:
            return
        state = self.assignment.state.get((self.program.stage_of[name].level, index), {})
        panes = Panes(self.program.sliders[name, port], state.get(slider_name(name, port), {}))
        for sent in partition.sent[port]:
            panes.add(sent.item)
        partition.sent[port] = [_Placed(item) for item in panes.turn(self.assignment.window_id)]
        partition.panes[slider_name(name, port)] = panes.saved()

    def _read(self, node: Node, index: int, partition: _Partition, elements: Elements) -> None:
        work = self.assignment.work.get((self.program.stage_of[node.name].level, index), ())
        reading = Reading(elements, index, self.assignment, work, staging=lambda: partition.staging)
        partition.reading = reading
        for sent in self._arriving(node, elements.into.port, index):
            reading.take(sent.item)
        for _ in reading.work():
            pass

    def _hold(self, name: str, slot: int, partition: _Partition) -> None:
        """Keep the items that a delay received for the next window."""
        items = self._arriving(self.fused.graph.by_name[name], "input", slot)
        partition.taken["input"] = partition.emitted["output"] = len(items)
        outbox = Outbox(slot)
        for target in self.program.stage_of[name].targets.get((name, "output"), ()):
            outbox.channel(target).batch(Batch.of([sent.item for sent in items]))
        self.delayed += outbox.rest()

    def _arriving(self, node: Node, port: str, index: int) -> list[_Placed]:
        """The items of one partition at one input."""
        wires = [(number, wire) for number, wire in self.into.get(node.name, ()) if wire.sink.port == port]
        return [placed for number, wire in wires for placed in self._from(number, wire, node, index)]

    def _from(self, number: int, wire: Wire, node: Node, index: int) -> list[_Placed]:
        """The items of one partition on one wire, unified if several partitions sent them."""
        arriving = [s.batch for s in self.assignment.arriving if (s.wire, s.slot) == (number, index)]
        arrived = [_Placed(item) for batch in arriving if not controls_in(batch) for item in batch.items()]
        if wire.source.node in self.live and wire.routing is not Routing.DELAYED:
            senders = [partition.sent[wire.source.port] for partition in self.live[wire.source.node]]
            for sender, sent in enumerate(senders):
                arrived += self._routed(wire, node, index, sent, sender)
        target = self.program.targets.get(number)
        if target is None or target.unifier is None or not arrived:
            return arrived
        return self._unified(target.unifier, arrived, node, index)

    def _context_of(self, node: Node, index: int) -> Context:
        return self.program.context_of(node.name, index, self.assignment.window_id, self.assignment.home)

    def _routed(self, wire: Wire, node: Node, index: int, sent: list[_Placed], sender: int) -> list[_Placed]:
        """The items of one sender that go to this partition."""
        if wire.routing is Routing.STRAIGHT:
            return sent if sender == index else []
        if wire.routing is Routing.KEYED:
            keys = self.fused.partitioned[node.name].partitions[index].keys[wire.sink.port]
            code = noting_item(node.name, keying_of(node, wire.sink.port).code)
            return [one for one in sent if keys.owns(code(one.item))]
        if wire.routing is Routing.DEALT:
            return [one for number, one in enumerate(sent, sender) if number % len(self.live[node.name]) == index]
        return sent

    def _unified(self, make: Callable[[], Operator], arrived: list[_Placed], node: Node, index: int) -> list[_Placed]:
        """The items of several senders, merged by the unifier."""
        unifier, context = _live(make(), {}, ["unified"]), self._context_of(node, index)
        with code_of(node.name):
            unifier.operator.setup(context)
            unifier.operator.activate(context)
            unifier.operator.begin_window(self.assignment.window_id)
            unifier.take("parts", arrived, Keying())
            unifier.operator.end_window()
            unifier.operator.deactivate()
            unifier.operator.teardown()
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
                    state={**({name: state} if state else {}), **partition.panes},
                    parts=() if partition.staging is None else tuple(partition.staging.parts()),
                    left=() if reading is None else tuple(reading.left),
                    put_off={} if reading is None else reading.put_off,
                    records={} if reading is None else {reading.elements.into: reading.recorder.record()},
                    positions=0 if reading is None else reading.positions,
                    work=0.0 if reading is None else reading.worked,
                    busy_millis=partition.millis,
                    reached=_reached(reading),
                    figures={name: self._figures(name, partition)},
                    began=partition.began,
                )

    def _figures(self, name: str, partition: _Partition) -> Figures:
        stage, reading = self.program.stage_of[name], partition.reading
        taken = {port: count for port, count in partition.taken.items() if (name, port) in self.program.fed}
        begun = {(name, port) for port in partition.emitted} & {*stage.links, *stage.targets}
        sent = {port: count for port, count in partition.emitted.items() if (name, port) in begun}
        if reading is not None:
            taken[work_port(reading.operator)] = reading.begun
        read = 0 if reading is None else reading.positions
        stretches = () if reading is None else tuple(reading.stretches)
        underway = () if reading is None else tuple(reading.underway)
        return Figures(taken, sent, read, partition.cpu_nanos, partition.millis, partition.metrics, stretches, underway)


def _reached(reading: Reading | None) -> dict[str, datetime]:
    if reading is None or reading.reached is None:
        return {}
    return {reading.elements.into: reading.reached}


def _live(configured: Operator, kept: Any, led: Sequence[str]) -> _Partition:
    """A separate instance. It keeps the items of connected outputs, and drops others."""
    partition = _Partition(live(configured, kept))
    for port in output_ports(type(configured)):
        partition.sent[port] = []
        partition.sent_controls[port] = []
    for port in led:
        bind_output(partition.operator, port, [_kept(partition, port)])
    return partition


def _kept(partition: _Partition, port: str) -> Receiver:
    """The receiver of an output: it appends to the list of this window."""

    def keep(item: Any) -> None:
        partition.sent[port].append(_Placed(item, partition.origin))

    def keep_batch(batch: Batch[Any]) -> None:
        order, element, offset = partition.origin
        offsets = offsets_in(batch) or repeat(offset)
        partition.sent[port] += [
            _Placed(i, _Origin(order, element, at)) for i, at in zip(batch.items(), offsets, strict=False)
        ]

    return Receiver(keep, keep_batch, control=partition.sent_controls[port].append)
