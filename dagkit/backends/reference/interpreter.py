"""Runs a compiled application window by window, operator by operator, partition by partition.

Nothing is fused and nothing is clever: an operator's partitions see all that reaches them in a window, one after the
other, in the order of the plan. Whatever another backend does faster must come to the same.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from dagkit.api.attributes import OperatorContext
from dagkit.api.operators import DelayOperator, InputOperator, Operator
from dagkit.api.ports import output_ports
from dagkit.compiler import Compilation
from dagkit.compiler.fuse import Fused, Wire
from dagkit.engine.live import SavedState, bind_output, live, saved, taking
from dagkit.engine.program import keying_of, when_it_comes_round
from dagkit.graph import Node
from dagkit.plan.model import Routing
from dagkit.schema.routing import routing_code

Items = list[Any]


@dataclass
class _Partition:
    """One live instance, and what it sent in this window, by output port."""

    operator: Operator
    sent: dict[str, Items] = field(default_factory=dict)


class Interpreter:
    """A compiled application at work. `window()` runs one streaming window; state lives on between them."""

    def __init__(self, compilation: Compilation) -> None:
        fused = compilation.steps["fused"]
        assert isinstance(fused, Fused), "an application is compiled to the end before it runs"
        self.fused = fused
        self.order = [operator.name for operator in compilation.plan.operators]
        self.window_id = 0
        self.live = {name: self._instances(name) for name in self.order}
        self.into: dict[str, list[Wire]] = {name: [] for name in self.order}
        for wire in fused.wires:
            self.into[wire.sink.node].append(wire)
        self.held: dict[str, list[Items]] = {}
        """What each delay hands on in the coming window, by partition."""
        for name, partitions in self.live.items():
            for partition in partitions:
                partition.operator.setup(None)
                if isinstance(partition.operator, DelayOperator):
                    self.held.setdefault(name, []).append(list(partition.operator.first_window()))

    def _instances(self, name: str) -> list[_Partition]:
        return [_live(partition.operator) for partition in self.fused.partitioned[name].partitions]

    def window(self) -> None:
        """Run the next streaming window."""
        self.window_id += 1
        handed_on = {name: [list(items) for items in held] for name, held in self.held.items()}
        for name in self.order:
            for index, partition in enumerate(self.live[name]):
                partition.sent = {port: [] for port in self.fused.graph.by_name[name].output_ports}
                if name in handed_on:
                    partition.sent["output"] = handed_on[name][index]
        for name in self.order:
            for index, partition in enumerate(self.live[name]):
                self._run(self.fused.graph.by_name[name], index, partition)

    def close(self) -> None:
        """Tear every operator down."""
        for partitions in self.live.values():
            for partition in partitions:
                partition.operator.teardown()

    def state_of(self, operator: str) -> list[SavedState]:
        """The state of every partition of an operator, as JSON."""
        return [saved(partition.operator) for partition in self.live[operator]]

    def _run(self, node: Node, index: int, partition: _Partition) -> None:
        operator = partition.operator
        if isinstance(operator, DelayOperator):
            self.held[node.name][index] = self._arriving(node, "input", index)
            return
        first, last = self._bounds(node)
        if first:
            operator.begin_window(self.window_id)
        if isinstance(operator, InputOperator):
            operator.emit_tuples()
        for port in node.input_ports:
            _process(operator, port, self._arriving(node, port, index), keying_of(node, port).code)
        if last:
            operator.end_window()

    def _bounds(self, node: Node) -> tuple[bool, bool]:
        """Whether this streaming window opens and closes the operator's application window."""
        count = self.fused.graph.value(node, OperatorContext.APPLICATION_WINDOW_COUNT)
        return (self.window_id - 1) % count == 0, self.window_id % count == 0

    def _arriving(self, node: Node, port: str, index: int) -> Items:
        """What one partition gets at one input: unified where several partitions sent it."""
        items: Items = []
        for wire in self.into[node.name]:
            if wire.sink.port == port:
                senders = [p.sent[wire.source.port] for p in self.live[wire.source.node]]
                parts = [self._routed(wire, node, index, sender, number) for number, sender in enumerate(senders)]
                items += self._unified(wire, parts)
        return items

    def _routed(self, wire: Wire, node: Node, index: int, sent: Items, sender: int) -> Items:
        """What of one sender's items goes to this partition."""
        count = len(self.live[node.name])
        routing = self._next_window(wire) if wire.routing is Routing.DELAYED else wire.routing
        if routing is Routing.STRAIGHT:
            return sent if sender == index else []
        if routing is Routing.DEALT:
            return sent[index::count]
        if routing is Routing.KEYED:
            keys = self.fused.partitioned[node.name].partitions[index].keys[wire.sink.port]
            code = keying_of(node, wire.sink.port).code
            return [item for item in sent if keys.owns(code(item))]
        return sent

    def _next_window(self, wire: Wire) -> Routing:
        """How what was held back is routed when it comes round."""
        receiver = self.fused.partitioned[wire.sink.node]
        return when_it_comes_round(self._senders(wire), receiver.count, keyed=receiver.keyed_on(wire.sink.port))

    def _senders(self, wire: Wire) -> int:
        return len(self.live[wire.source.node])

    def _unified(self, wire: Wire, parts: Iterable[Items]) -> Items:
        """The parts of several senders as one, by the output's unifier where it has one."""
        arrived = [item for part in parts for item in part]
        make = self.fused.graph.by_name[wire.source.node].output_ports[wire.source.port].unifier
        if make is None or self._senders(wire) == 1 or wire.routing is Routing.STRAIGHT:
            return arrived
        unifier = _live(make())
        unifier.sent = {"unified": []}
        unifier.operator.setup(None)
        unifier.operator.begin_window(self.window_id)
        _process(unifier.operator, "parts", arrived, routing_code)
        unifier.operator.end_window()
        unifier.operator.teardown()
        return unifier.sent["unified"]


def _live(configured: Operator) -> _Partition:
    """An instance of its own, whose outputs are kept."""
    partition = _Partition(live(configured, {}))
    for port in output_ports(type(configured)):
        bind_output(partition.operator, port, [_Kept(partition, port)])
    return partition


@dataclass(frozen=True, slots=True)
class _Kept:
    """Where an output sends: the list of this window."""

    partition: _Partition
    port: str

    def __call__(self, item: Any) -> None:
        self.partition.sent[self.port].append(item)


def _process(operator: Operator, port: str, items: Items, code: Callable[[Any], int]) -> None:
    take = taking(operator, port, code)
    for item in items:
        take(item)
