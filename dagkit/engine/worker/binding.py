"""Bind the ports of one level's operators in one slot to each other, to unifiers and panes, and to the outbox.

Inside a stage an output calls the next operator directly, and so does an output to a stage of the same level and slot.
The outbox gathers items for other levels and slots by their target slot.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dagkit.api.controls import Delivery, Stamped, controls_in
from dagkit.api.operators import DelayOperator, Operator
from dagkit.api.ports import input_ports, output_ports
from dagkit.api.work import work_port
from dagkit.engine.program.entrances import code_of
from dagkit.engine.program.failures import Spot, offsets_in
from dagkit.engine.program.program import Keying, Port, Program, StageProgram, Target
from dagkit.engine.worker.instances import Receiver, SavedState, bind_output, live, of_items, receiver, to_all
from dagkit.engine.worker.lifecycle import Life
from dagkit.engine.worker.origins import Origins
from dagkit.engine.worker.outbox import Outbox
from dagkit.engine.worker.protocol import Sample, SlotState, Tap, WindowTask
from dagkit.engine.worker.reading import Reading
from dagkit.engine.worker.sliding import Panes, slider_name
from dagkit.plan.model import Routing
from dagkit.schema.batch import Batch


class Controls:
    """The control tuples that reach one operator in one window."""

    def __init__(self, name: str, operator: Operator, flush: Callable[[str], None], origins: Origins) -> None:
        self._name = name
        self._process = origins.within(name, operator.process_control)
        self._operator = operator
        self._flush = flush
        self._seen: set[str] = set()
        self._waiting: list[Stamped] = []

    def take(self, stamped: Stamped) -> None:
        """Deliver a control tuple, at once or at the end; ignore a second copy from another partition."""
        if stamped.stamp in self._seen:
            return
        self._seen.add(stamped.stamp)
        if stamped.control.delivery is Delivery.END_WINDOW:
            self._waiting.append(stamped)
        else:
            self._deliver(stamped)

    def end(self) -> None:
        """Deliver the control tuples that waited until all items were processed."""
        waiting, self._waiting = self._waiting, []
        for stamped in waiting:
            self._deliver(stamped)

    def _deliver(self, stamped: Stamped) -> None:
        self._flush(self._name)  # items that came before it are processed before it
        with code_of(self._name):
            is_handled = self._process(stamped.control)
        if not is_handled:
            for sink in self._operator._control_sinks.values():  # noqa: SLF001 - outputs are bound there
                sink(stamped)


class Tapping:
    """The samples of one output in one slot."""

    def __init__(self, tap: Tap, slot: int, spot: Callable[[int | None], Spot] = lambda _: Spot()) -> None:
        """Take a function that returns the place of a record, given its position in the element, if that is known."""
        self.output: Port = (tap.operator, tap.port)
        self.samples: list[Sample] = []
        self._tap = tap
        self._slot = slot
        self._spot = spot
        self._passed = 0

    @property
    def receiver(self) -> Receiver:
        """The receiver that is bound to the output beside the operators that it sends to."""
        return Receiver(lambda item: self.take([item]), self._take_batch)

    def take(self, items: Iterable[Any], positions: Iterable[int | None] | None = None) -> None:
        """Keep the items whose turn it is; positions are those of the items, if they are known."""
        if self._is_full:
            return
        places = iter(positions) if positions is not None else None
        for item in items:
            position = None if places is None else next(places, None)
            if self._passed % self._tap.every == 0 and not self._is_full:
                self.samples.append(self._tap.sample(self._slot, item, self._spot(position).place))
            self._passed += 1

    def _take_batch(self, batch: Batch[Any]) -> None:
        if not self._is_full:
            self.take(batch.items(), offsets_in(batch))

    @property
    def _is_full(self) -> bool:
        return len(self.samples) >= self._tap.most


class Unifiers:
    """The unifiers before the inputs of one slot, each created when its first items arrive."""

    def __init__(self, program: Program, slot: int, window: WindowTask, origins: Origins) -> None:
        self._program = program
        self._slot = slot
        self._window = window
        self._origins = origins
        self._made: dict[int, tuple[Life, Receiver]] = {}
        """By wire."""

    @property
    def lives(self) -> list[Life]:
        """The unifiers that have been created."""
        return [life for life, _ in self._made.values()]

    def before(self, target: Target, into: Receiver) -> Receiver:
        """The receiver of the unifier of a wire, which sends into this input."""
        if target.wire not in self._made:
            assert target.unifier is not None, "only the items of several senders are merged"
            name, unifier = target.into[0], live(target.unifier(), {})
            bind_output(unifier, "unified", [into])
            parts = self._origins.around(name, receiver(unifier, "parts", Keying(), name))
            parts = self._origins.into(parts, unifier, "parts", Keying()) if target.placed else parts
            life, window = Life(unifier, name=name), self._window
            self._made[target.wire] = life, parts
            life.set_up(self._program.context_of(name, self._slot, window.window_id, window.launch))
            life.begin(window.window_id)
        return self._made[target.wire][1]

    def deferred(self, target: Target, into: Receiver) -> Receiver:
        """The same, for senders of this slot: the unifier is created when the first of them sends."""
        return Receiver(
            lambda item: self.before(target, into).item(item),
            lambda batch: self.before(target, into).batch(batch),
            control=into.control,
            passed=lambda: self._made[target.wire][1].passed() if target.wire in self._made else 0,
        )

    def end_before(self, name: str) -> None:
        """End the unifiers before an operator, so that their results reach it; all their senders have ended."""
        for wire, (life, parts) in self._made.items():
            if self._program.targets[wire].into[0] == name:
                if parts.flush is not None:
                    parts.flush()
                life.end(self._window.window_id)
                life.tear_down()


class Binding:
    """The operators of one level in one slot, each able to send to the next."""

    def __init__(
        self,
        program: Program,
        level: int,
        outbox: Outbox,
        window: WindowTask,
        *,
        operators: Mapping[str, Operator],
        readings: Mapping[str, Reading],
        kept: SlotState,
        taps: Sequence[Tapping],
    ) -> None:
        self.program = program
        self.outbox = outbox
        self.operators = operators
        self.readings = readings
        self.taps = taps
        self.unifiers = Unifiers(program, outbox.slot, window, outbox.origins)
        self.stages = [stage for stage in program.stages_at(level) if outbox.slot < stage.slots]
        self.leaving: dict[Port, Callable[[], int]] = {}
        """Counts the items that left by each connected output."""
        self._held: dict[str, list[Any]] = {}
        """The items that each delay operator holds."""
        self._receivers: dict[Port, Receiver] = {}
        self._controls = {
            name: Controls(name, operator, self.flush_into, outbox.origins) for name, operator in operators.items()
        }
        self._panes: dict[Port, Panes] = {}
        """Those of each sliding output."""
        # Downstream first: a stage sends straight to the receivers of later stages in this slot.
        for stage in reversed(self.stages):
            self._bind(stage, kept)

    def take(self, target: Target, batch: Batch[Any], element: Any) -> None:
        """Deliver a batch that arrived on a wire, and whose items were read from an element."""
        controls, name = controls_in(batch), target.into[0]
        for stamped in controls if not isinstance(self.operators[name], DelayOperator) else ():  # delays drop them
            self._controls[name].take(stamped)
        if not controls:
            origins = self.outbox.origins
            origins.arrive(batch, element, self._receiver_of(target).batch)

    def end_controls(self, name: str) -> None:
        """Deliver the control tuples that waited until all items of an operator were processed."""
        self._controls[name].end()

    def passed(self, port: Port) -> int:
        """How many items an input has received so far."""
        return self._receivers[port].passed()

    def slide(self, name: str, window_id: int) -> None:
        """Send the items of an operator's sliding windows, if they slide with this window."""
        for (operator, _), panes in self._panes.items():
            if operator == name:
                panes.slide(window_id)

    def flush(self) -> None:
        """Deliver the items that wait for operators that take batches, upstream first."""
        for name in self.operators:
            self.flush_into(name)

    def flush_into(self, name: str) -> None:
        """Deliver the items that wait for one operator."""
        for (operator, _), into in self._receivers.items():
            if operator == name and into.flush is not None:
                into.flush()

    def let_go(self) -> None:
        """Send the items that delays hold; they arrive in the next window."""
        for name, items in self._held.items():
            for stage in self.stages:
                for target in stage.targets.get((name, "output"), ()):
                    self.outbox.channel(target).batch(Batch.of(items))

    def saved(self) -> dict[str, SavedState]:
        """The panes of every output that slides."""
        return {slider_name(*port): panes.saved() for port, panes in self._panes.items()}

    def _receiver_of(self, target: Target) -> Receiver:
        """The receiver of a wire: the input itself, or the unifier before it."""
        into = self._receivers[target.into]
        return into if target.unifier is None else self.unifiers.before(target, into)

    def _bind(self, stage: StageProgram, kept: SlotState) -> None:
        """Bind the operators of a stage, last first, so that each operator's successor is bound already."""
        for name in reversed(stage.operators):
            operator = self.operators[name]
            for port in output_ports(type(operator)):
                sinks = list(self._sinks(stage, (name, port)))
                if sinks:
                    # An output that feeds nothing stays unconnected, so that a tap changes no count of items.
                    sinks += [tapping.receiver for tapping in self.taps if tapping.output == (name, port)]
                if sinks and (name, port) in self.program.sliders:
                    sinks = [self._into_panes((name, port), sinks, kept)]
                if sinks:  # all are sent the same
                    held = self._held_by(name) if isinstance(operator, DelayOperator) else None
                    self.leaving[name, port] = sinks[0].passed if held is None else held.__len__
                bind_output(operator, port, sinks)
            for port in input_ports(type(operator)):
                control = None if isinstance(operator, DelayOperator) else self._controls[name].take
                self._receivers[name, port] = replace(self._into(name, operator, port), control=control)

    def _into(self, name: str, operator: Operator, port: str) -> Receiver:
        if isinstance(operator, DelayOperator):
            return of_items(self._held_by(name).append, self._held_by(name).__len__)
        reading = self.readings.get(name)
        if reading is not None and port == work_port(reading.operator):
            return of_items(reading.take, lambda: reading.taken)
        keying = self.program.keyings[name, port]
        origins = self.outbox.origins
        into = origins.around(name, receiver(operator, port, keying, name))
        return origins.into(into, operator, port, keying) if (name, port) in self.program.placed else into

    def _held_by(self, delay: str) -> list[Any]:
        return self._held.setdefault(delay, [])

    def _sinks(self, stage: StageProgram, output: Port) -> Iterator[Receiver]:
        if output in stage.links:
            yield self._receivers[stage.links[output]]
        for target in stage.targets.get(output, ()):
            here = target.level == stage.level and target.routing is Routing.STRAIGHT and not target.delayed
            if not here:
                yield self.outbox.channel(target)
            elif target.unifier is None:
                yield self._receivers[target.into]
            else:
                yield self.unifiers.deferred(target, self._receivers[target.into])

    def _into_panes(self, output: Port, sinks: list[Receiver], kept: SlotState) -> Receiver:
        saved = kept.get(slider_name(*output), {})
        panes = self._panes[output] = Panes(self.program.sliders[output], saved, sinks)
        controls = [sink.control for sink in sinks if sink.control is not None]
        return replace(of_items(panes.add, lambda: panes.added), control=to_all(controls) if controls else None)
