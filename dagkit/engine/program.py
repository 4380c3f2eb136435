"""The program of a plan: what every worker needs to know to run its slot of any stage. Plain, picklable data."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dagkit.api.attributes import OperatorContext, PortContext
from dagkit.api.operators import Operator, Unifier
from dagkit.api.partitioning import PartitionKeys
from dagkit.api.streams import StreamCodec
from dagkit.compiler import Compilation
from dagkit.compiler.fuse import Fused, Wire
from dagkit.graph import Node
from dagkit.plan.model import Place, Routing
from dagkit.schema.routing import routing_code

Port = tuple[str, str]
"""An operator and one of its ports."""


@dataclass(frozen=True, slots=True)
class Keying:
    """By what the items of one input are told apart: its codec, else its key, else the whole item."""

    codec: StreamCodec[Any] | None = None
    key: Callable[[Any], Any] | None = None

    def code(self, item: Any) -> int:
        if self.codec is not None:
            return self.codec.get_partition(item)
        return routing_code(item if self.key is None else self.key(item))


@dataclass(frozen=True, slots=True)
class Target:
    """The far end of a wire that leaves a stage: where items go, and how each finds its slot."""

    wire: int
    into: Port
    routing: Routing
    slots: int
    level: int
    keying: Keying
    keys: tuple[PartitionKeys, ...] = ()
    """What each slot owns, where items are keyed."""
    unifier: Callable[[], Unifier[Any]] | None = None
    """Makes the operator that merges what several senders sent, before it goes into the port."""
    delayed: bool = False
    """Whether the items come round in the next window."""

    def slots_of(self, item: Any, sender: int, number: int) -> Sequence[int]:
        """Which slots get the item, the `number`-th that this sender sends on this wire."""
        match self.routing:
            case Routing.STRAIGHT:
                return (sender,)
            case Routing.GATHERED:
                return (0,)
            case Routing.DEALT:
                return (number % self.slots,)
            case Routing.KEYED:
                code = self.keying.code(item)
                return [slot for slot, keys in enumerate(self.keys) if keys.owns(code)]
            case _:
                return range(self.slots)


@dataclass(frozen=True, slots=True)
class StageProgram:
    """One stage: its operators in order, the outputs that lead to the next one, and those that lead out."""

    name: str
    operators: tuple[str, ...]
    level: int
    slots: int
    links: Mapping[Port, Port]
    targets: Mapping[Port, tuple[Target, ...]]


@dataclass(frozen=True)
class Program:
    """All stages of an application, its operators slot by slot, and how their windows are counted."""

    application: str
    stages: tuple[StageProgram, ...]
    """Those of the workers, upstream first."""
    sources: Mapping[str, Mapping[str, tuple[Target, ...]]]
    """The input operators, which run on the driver, and where each of their outputs leads."""
    operators: Mapping[str, tuple[Operator, ...]]
    windows: Mapping[str, int]
    """Streaming windows in an application window, by operator."""
    keyings: Mapping[Port, Keying]
    """Of every input there is."""

    @property
    def levels(self) -> int:
        return 1 + max((stage.level for stage in self.stages), default=0)

    def stages_at(self, level: int) -> tuple[StageProgram, ...]:
        return tuple(stage for stage in self.stages if stage.level == level)

    def slots_at(self, level: int) -> int:
        """As many as the widest stage of the level has."""
        return max((stage.slots for stage in self.stages_at(level)), default=1)

    @cached_property
    def targets(self) -> Mapping[int, Target]:
        """Every wire that leaves a stage, by number."""
        leaving = [ends for stage in self.stages for ends in stage.targets.values()]
        leaving += [ends for outputs in self.sources.values() for ends in outputs.values()]
        return {target.wire: target for ends in leaving for target in ends}


def program_of(compilation: Compilation) -> Program:
    """The program of a compiled application."""
    fused = compilation.steps["fused"]
    assert isinstance(fused, Fused), "an application is compiled to the end before it runs"
    graph, plan = fused.graph, compilation.plan
    keyings = {(node.name, port): keying_of(node, port) for node in graph.nodes for port in node.input_ports}
    home = {operator: stage for stage in plan.stages for operator in stage.operators}
    links: dict[str, dict[Port, Port]] = {}
    targets: dict[str, dict[Port, tuple[Target, ...]]] = {}
    for number, wire in enumerate(sorted(fused.wires, key=lambda wire: (str(wire.source), str(wire.sink)))):
        source, sink = (wire.source.node, wire.source.port), (wire.sink.node, wire.sink.port)
        stage = home[source[0]]
        if stage is home[sink[0]]:
            links.setdefault(stage.name, {})[source] = sink
        else:
            leaving = targets.setdefault(stage.name, {})
            target = _target(fused, number, wire, home[sink[0]].level, keyings[sink])
            leaving[source] = (*leaving.get(source, ()), target)
    return Program(
        application=graph.application,
        stages=tuple(
            StageProgram(
                stage.name,
                stage.operators,
                stage.level,
                stage.slots,
                links.get(stage.name, {}),
                targets.get(stage.name, {}),
            )
            for stage in plan.stages
            if stage.place is Place.WORKERS
        ),
        sources={
            name: {port: ends for (source, port), ends in targets.get(stage.name, {}).items() if source == name}
            for stage in plan.stages
            if stage.place is Place.DRIVER
            for name in stage.operators
        },
        operators={name: tuple(p.operator for p in known.partitions) for name, known in fused.partitioned.items()},
        windows={node.name: graph.value(node, OperatorContext.APPLICATION_WINDOW_COUNT) for node in graph.nodes},
        keyings=keyings,
    )


def keying_of(node: Node, port: str) -> Keying:
    """By what the items of an input of this node are told apart."""
    return Keying(node.port_value(port, PortContext.STREAM_CODEC), node.input_ports[port].key)


def _target(fused: Fused, number: int, wire: Wire, level: int, keying: Keying) -> Target:
    receiver, port = fused.partitioned[wire.sink.node], wire.sink.port
    keyed, senders = receiver.keyed_on(port), fused.partitioned[wire.source.node].count
    delayed = wire.routing is Routing.DELAYED
    routing = when_it_comes_round(senders, receiver.count, keyed=keyed) if delayed else wire.routing
    unifier = fused.graph.by_name[wire.source.node].output_ports[wire.source.port].unifier
    return Target(
        wire=number,
        into=(wire.sink.node, port),
        routing=routing,
        slots=receiver.count,
        level=level,
        keying=keying,
        keys=tuple(partition.keys[port] for partition in receiver.partitions) if keyed else (),
        unifier=unifier if senders > 1 and routing is not Routing.STRAIGHT else None,
        delayed=delayed,
    )


def when_it_comes_round(senders: int, receivers: int, *, keyed: bool) -> Routing:
    """How what a delay held back is routed in the next window."""
    if keyed:
        return Routing.KEYED
    return Routing.STRAIGHT if senders == receivers else Routing.BROADCAST
