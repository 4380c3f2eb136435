"""The work that operators took in a committed window, with its elements.

A root chain holds the elements that input operators found. The ledger does not hold those that an operator in the
middle of the graph sends: it names their sources and ranges. Such an element still waits in the checkpoint before the
window, or it was sent in the window itself. Then the operators above run again, each with its state before the window.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from dagkit.api.operators import Operator
from dagkit.api.ports import output_ports
from dagkit.api.state import declared_state
from dagkit.api.work import SplittableOperator
from dagkit.backends.reference.one_partition import OnePartition, Placed
from dagkit.backends.reference.plain_reading import PlainReading
from dagkit.compiler import Compilation
from dagkit.compiler.fuse import Fused, Wire
from dagkit.engine.program.entrances import code_of
from dagkit.engine.program.lower import keying_of, program_of
from dagkit.engine.program.program import Program
from dagkit.engine.record.checkpoint import Checkpoint
from dagkit.engine.record.history import history
from dagkit.engine.record.written_file import consumed_of, found_in_root, work_in_roots
from dagkit.engine.work.elements import Elements, elements_of
from dagkit.engine.work.item import WorkItem
from dagkit.engine.worker.instances import SavedState
from dagkit.engine.worker.protocol import WindowTask
from dagkit.errors import RunFailure
from dagkit.ledger import Ledger, Work
from dagkit.plan.model import Routing


class NotFoundAgain(Exception):
    """Work or items of a past window cannot be found again; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class PastWindow:
    """A committed window: its work, and the checkpoint with which it began."""

    window: int
    work: Work
    before: Checkpoint


def past_windows(ledger: Ledger, wanted: Collection[int]) -> Iterator[PastWindow]:
    """Yield these windows of a ledger, oldest first."""
    before = Checkpoint()
    for entry in history(ledger):
        if entry.checkpoint.window in wanted:
            yield PastWindow(entry.checkpoint.window, entry.checkpoint.work, before)
        before = entry.checkpoint


@dataclass(frozen=True, slots=True)
class RunAgain:
    """The operators of an application, to run some of them again without any effect."""

    program: Program
    fused: Fused

    @classmethod
    def of(cls, compilation: Compilation) -> "RunAgain":
        """The operators of a compiled application."""
        fused = compilation.steps["fused"]
        assert isinstance(fused, Fused), "the application is compiled to the end"
        return cls(program_of(compilation), fused)

    def operator(self, name: str) -> Operator:
        """The operator of this name, as it is configured."""
        return self.program.operators[name][0]

    def into(self, name: str) -> list[Wire]:
        """The wires that lead to an operator."""
        return [wire for wire in self.fused.wires if wire.sink.node == name]

    def elements(self, name: str) -> Elements:
        """The elements of a splittable operator."""
        elements = elements_of(self.program, name, self.operator(name))
        assert elements is not None, "the input of a reader is connected"
        return elements

    def partition(self, name: str, kept: SavedState) -> OnePartition:
        """A partition of an operator with this state, which keeps what it sends."""
        configured = self.operator(name)
        fed = {wire.source.port for wire in self.fused.wires if wire.source.node == name}
        return OnePartition.started(
            name, configured, kept, [port for port in output_ports(type(configured)) if port in fed]
        )

    def begin(self, partition: OnePartition, window: int, *, begins: bool = True) -> None:
        """Set up a partition for a window; with `begins`, begin the window."""
        context = self.program.context_of(partition.name, 0, window)
        partition.begin(replace(context, known_items=None), 0, begins=begins)  # the window may have had others

    def take(self, partition: OnePartition, wire: Wire, placed: Sequence[Placed]) -> None:
        """Deliver items to a partition."""
        graph = self.fused.graph
        keying = keying_of(graph.by_name[partition.name], wire.sink.port)
        partition.take(wire.sink.port, placed, keying)

    def process(self, partition: OnePartition, window: int, work: WorkItem) -> None:
        """Let a partition of a splittable operator process work."""
        elements = elements_of(self.program, partition.name, partition.operator)
        assert elements is not None, "the input of a reader is connected"
        partition.reading = PlainReading(elements, 0, WindowTask(window), None)
        partition.reading.work([work], [])

    def end(self, partition: OnePartition) -> None:
        """End the window of a partition."""
        with code_of(partition.name):
            partition.operator.end_window()
        partition.end()


class WindowAgain:
    """The work that operators took in one committed window."""

    def __init__(self, operators: RunAgain, ledger: Ledger, past: PastWindow) -> None:
        self._operators, self._ledger, self._past = operators, ledger, past
        self._sent: dict[str, dict[str, list[Placed]]] = {}
        """Items that operators sent in the window, made again, by operator and port."""
        self.failures: list[RunFailure] = []
        """Why some of the work is missing, as of files that are gone."""

    def taken(self, name: str) -> Iterator[WorkItem]:
        """The work of a splittable operator of which the window may have consumed a part, as it was found."""
        operators, before = self._operators, self._past.before
        elements, program = operators.elements(name), operators.program
        yield from work_in_roots(self._ledger, program, elements)
        above = [wire for wire in operators.into(name) if wire.source.node not in program.sources]
        if above:
            yield from (item for item in before.queue if item.into == elements.into)
        numbers = count()
        for wire in above:
            for item in self._made(wire):
                try:
                    yield from elements.work_of(item, (self._past.window, 0, next(numbers)))
                except RunFailure as failure:  # as of a file that is gone
                    self.failures.append(failure)

    def _made(self, wire: Wire) -> list[Any]:
        """The items that an operator in the middle of the graph sent by a wire."""
        name = wire.source.node
        if wire.routing is Routing.DELAYED:
            raise NotFoundAgain(f"a delay lies before {wire.sink.node}")
        if name not in self._sent:
            self._sent[name] = self._run(name).sent
        return [placed.item for placed in self._sent[name][wire.source.port]]

    def _run(self, name: str) -> OnePartition:
        operators, window = self._operators, self._past.window
        operator = operators.operator(name)
        if isinstance(operator, SplittableOperator):
            return self._split(name)
        if declared_state(type(operator)):
            raise NotFoundAgain(f"{name} keeps state, so that what it sent depends on earlier windows")
        partition = operators.partition(name, {})
        operators.begin(partition, window)
        for wire in operators.into(name):
            source = wire.source.node
            is_emitted = source in operators.program.sources
            items = list(self._emitted(wire)) if is_emitted else self._made(wire)
            operators.take(partition, wire, [Placed(item) for item in items])
        operators.end(partition)
        return partition

    def _split(self, name: str) -> OnePartition:
        """Let a splittable operator process its work of the window again."""
        operators, before = self._operators, self._past.before
        states = before.operators.state.get(name, ())
        partition = operators.partition(name, states[0] if len(states) == 1 else {})
        operators.begin(partition, self._past.window)
        for item in sorted(self._consumed(name), key=lambda item: item.order):
            try:
                operators.process(partition, self._past.window, item)
            except RunFailure as failure:  # as of a file that is gone: others may be there
                self.failures.append(failure)
        operators.end(partition)
        return partition

    def _emitted(self, wire: Wire) -> Iterator[Any]:
        """The items that an input operator sent by a wire, in all windows."""
        for found in found_in_root(self._ledger, self._operators.program, wire.source.node):
            if found.emitted.port == wire.source.port:
                yield found.emitted.item

    def _consumed(self, name: str) -> Iterator[WorkItem]:
        """The work of an operator from where the window began with it. What has an end is given to its end."""
        elements = self._operators.elements(name)
        for item in self.taken(name):
            parts = list(consumed_of(self._past.work, elements.into, item))
            if parts and item.is_shares:
                yield item
            elif parts:
                end = item.end if item.has_end else max(end for _, end in parts)
                yield item.part(min(start for start, _ in parts), end)
