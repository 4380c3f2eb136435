"""One slot at work: the stages of one level, for one window. Items come in; items and a report go out.

Inside a stage an output is bound straight to the next operator; to a stage of the same level and slot it hands items
on at once; what goes further is gathered by the slot that it goes to.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dagkit.api.operators import DelayOperator, Operator
from dagkit.api.ports import input_ports, output_ports
from dagkit.engine.live import SavedState, Take, bind_output, live, saved, taking
from dagkit.engine.program import Port, Program, StageProgram, Target
from dagkit.plan.model import Routing
from dagkit.schema.routing import routing_code

Items = list[Any]
SlotState = Mapping[str, SavedState]
"""The state of one slot, by operator."""

FLUSH_ITEMS = 8192
"""Items that wait for one slot before they go on."""


@dataclass(frozen=True, slots=True)
class Sent:
    """Items that go to one slot: of a later level, or of the next window."""

    wire: int
    slot: int
    level: int
    delayed: bool
    items: Items


@dataclass(frozen=True, slots=True)
class Report:
    """What the driver learns of a slot when its window is over."""

    level: int
    slot: int
    state: SlotState = field(default_factory=dict)


class SlotRun:
    """The stages of one level in one slot, for one window."""

    def __init__(self, program: Program, level: int, slot: int, window_id: int, state: SlotState) -> None:
        self.program = program
        self.level = level
        self.slot = slot
        self.window_id = window_id
        self.stages = [stage for stage in program.stages_at(level) if slot < stage.slots]
        names = [name for stage in self.stages for name in stage.operators]
        self.operators = {name: live(program.operators[name][slot], state.get(name, {})) for name in names}
        self.outbox = Outbox(slot)
        self._held: dict[str, Items] = {}
        """What each delay holds back."""
        self._merging: dict[int, Operator] = {}
        """The unifier of each wire that has one, once its first items came."""
        self._taking: dict[Port, Take] = {}
        for stage in reversed(self.stages):
            self._bind(stage)

    def run(self, arriving: Iterable[tuple[int, Items]]) -> Iterator[Sent]:
        """Work through what arrives, wire by wire, and give what goes on as it gets ready."""
        for name, operator in self.operators.items():
            operator.setup(None)
            if (self.window_id - 1) % self.program.windows[name] == 0:
                operator.begin_window(self.window_id)
        for wire, items in arriving:
            take = self._entrance(self.program.targets[wire])
            for item in items:
                take(item)
            yield from self.outbox.ready()
        for unifier in self._merging.values():
            unifier.end_window()
            unifier.teardown()
        for name, operator in self.operators.items():
            if self.window_id % self.program.windows[name] == 0:
                operator.end_window()
            yield from self.outbox.ready()
        self._let_go()
        for operator in self.operators.values():
            operator.teardown()
        yield from self.outbox.rest()

    def report(self) -> Report:
        """The state that the window left."""
        state = {name: saved(operator) for name, operator in self.operators.items()}
        return Report(self.level, self.slot, {name: kept for name, kept in state.items() if kept})

    def _entrance(self, target: Target) -> Take:
        """What takes the items of a wire: the input itself, or the unifier before it."""
        if target.unifier is None:
            return self._taking[target.into]
        if target.wire not in self._merging:
            unifier = live(target.unifier(), {})
            bind_output(unifier, "unified", [self._taking[target.into]])
            unifier.setup(None)
            unifier.begin_window(self.window_id)
            self._merging[target.wire] = unifier
        return taking(self._merging[target.wire], "parts", routing_code)

    def _bind(self, stage: StageProgram) -> None:
        """Bind the operators of a stage, the last first, so that each finds the next one bound."""
        for name in reversed(stage.operators):
            operator = self.operators[name]
            for port in output_ports(type(operator)):
                bind_output(operator, port, list(self._sinks(stage, (name, port))))
            for port in input_ports(type(operator)):
                self._taking[name, port] = self._take(name, operator, port)

    def _take(self, name: str, operator: Operator, port: str) -> Take:
        if isinstance(operator, DelayOperator):
            return self._held.setdefault(name, []).append
        return taking(operator, port, self.program.keyings[name, port].code)

    def _sinks(self, stage: StageProgram, output: Port) -> Iterator[Take]:
        if output in stage.links:
            yield self._taking[stage.links[output]]
        for target in stage.targets.get(output, ()):
            here = target.level == self.level and target.routing is Routing.STRAIGHT and not target.delayed
            yield self._taking[target.into] if here else self.outbox.slit(target)

    def _let_go(self) -> None:
        """What the delays held back goes out; it comes round in the next window."""
        for name, items in self._held.items():
            for stage in self.stages:
                for target in stage.targets.get((name, "output"), ()):
                    drop = self.outbox.slit(target)
                    for item in items:
                        drop(item)


class Outbox:
    """Items on their way out, by wire and slot."""

    def __init__(self, slot: int) -> None:
        self.slot = slot
        self._waiting: dict[tuple[int, int], Items] = {}
        self._targets: dict[int, Target] = {}
        self._full: list[Sent] = []

    def slit(self, target: Target) -> Take:
        """Where the items for one target are dropped in."""
        self._targets[target.wire] = target
        number = 0

        def drop(item: Any) -> None:
            nonlocal number
            for slot in target.slots_of(item, self.slot, number):
                items = self._waiting.setdefault((target.wire, slot), [])
                items.append(item)
                if len(items) >= FLUSH_ITEMS:
                    self._close(target.wire, slot)
            number += 1

        return drop

    def ready(self) -> Iterator[Sent]:
        """What is full, and need not wait."""
        full, self._full = self._full, []
        yield from full

    def rest(self) -> Iterator[Sent]:
        """All that is still there."""
        for wire, slot in list(self._waiting):
            self._close(wire, slot)
        yield from self.ready()

    def _close(self, wire: int, slot: int) -> None:
        target = self._targets[wire]
        self._full.append(Sent(wire, slot, target.level, target.delayed, self._waiting.pop((wire, slot))))
