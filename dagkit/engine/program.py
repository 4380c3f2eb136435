"""The program of a plan: what every worker needs to know to run its slot of any stage. Plain, picklable data."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dagkit.api.attributes import OperatorContext, PortContext
from dagkit.api.operators import InputOperator, Operator, Unifier
from dagkit.api.partitioning import PartitionKeys
from dagkit.api.streams import StreamCodec
from dagkit.api.work import SplittableOperator
from dagkit.compiler import Compilation
from dagkit.compiler.fuse import Fused, Wire
from dagkit.compiler.unify import slides
from dagkit.engine.sliding import Sliding
from dagkit.graph import Graph, Node
from dagkit.plan.model import Place, Routing
from dagkit.schema.batch import Batch
from dagkit.schema.routing import routing_code, routing_codes

Port = tuple[str, str]
"""An operator and one of its ports."""


@dataclass(frozen=True, slots=True)
class Keying:
    """By what the items of one input are told apart: its codec, else its key, else the whole item."""

    codec: StreamCodec[Any] | None = None
    key: Callable[[Any], Any] | None = None
    field: str | None = None
    """The field that the key is, where it is one."""

    def code(self, item: Any) -> int:
        if self.codec is not None:
            return self.codec.get_partition(item)
        return routing_code(item if self.key is None else self.key(item))

    def code_of_key(self, key: Any) -> int:
        """The code of a key itself, for state that is kept under the very keys that items are routed by."""
        return routing_code(key)

    def codes(self, batch: Batch[Any]) -> Sequence[int]:
        """The codes of many items."""
        if self.codec is not None:
            return [self.codec.get_partition(item) for item in batch.items()]
        if self.field is not None:
            return routing_codes(batch.column(self.field).values())
        items = batch.items()
        return routing_codes(items if self.key is None else [self.key(item) for item in items])


@dataclass(frozen=True, slots=True)
class Target:
    """The far end of a wire that leaves a stage: where items go, and how each finds its slot."""

    wire: int
    into: Port
    routing: Routing
    slots: int
    level: int
    keying: Keying
    payload: Any = Any
    """The type of what flows, as it was settled."""
    keys: tuple[PartitionKeys, ...] = ()
    """What each slot owns, where items are keyed."""
    unifier: Callable[[], Unifier[Any]] | None = None
    """Makes the operator that merges what several senders sent, before it goes into the port."""
    delayed: bool = False
    """Whether the items come round in the next window."""
    queued: bool = False
    """Whether blocks wait on the driver for readers that may leave some of them for a later window."""

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

    def shares(self, batch: Batch[Any], sender: int, number: int) -> Iterator[tuple[int, Batch[Any]]]:
        """What of a batch each slot gets, where its first item is the `number`-th that this sender sends."""
        match self.routing:
            case Routing.STRAIGHT:
                yield sender, batch
            case Routing.GATHERED:
                yield 0, batch
            case Routing.DEALT:
                items = batch.items()
                for slot in range(self.slots):
                    share = items[(slot - number) % self.slots :: self.slots]
                    if share:
                        yield slot, Batch.of(share)
            case Routing.KEYED:
                yield from self._by_owner(batch)
            case _:
                yield from ((slot, batch) for slot in range(self.slots))

    def _by_owner(self, batch: Batch[Any]) -> Iterator[tuple[int, Batch[Any]]]:
        import numpy as np  # noqa: PLC0415 - whoever only compiles does not load Arrow
        import pyarrow as pa  # noqa: PLC0415

        codes = np.fromiter((code & 0xFFFFFFFF for code in self.keying.codes(batch)), np.int64, len(batch))
        for slot, keys in enumerate(self.keys):
            owned = np.isin(codes & keys.mask, list(keys.keys))
            if owned.all():
                yield slot, batch
            elif owned.any():
                yield slot, batch.where(pa.array(owned))


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
    sliders: Mapping[Port, Sliding]
    """The outputs whose windows overlap."""
    attributes: Mapping[str, Mapping[str, Any]]
    """What holds for each operator: its own attributes and those of the application, by qualified name."""
    outputs: Mapping[Port, Any]
    """The payload of every output of the input operators."""

    @property
    def levels(self) -> int:
        return 1 + max((stage.level for stage in self.stages), default=0)

    def stages_at(self, level: int) -> tuple[StageProgram, ...]:
        return tuple(stage for stage in self.stages if stage.level == level)

    @cached_property
    def stage_of(self) -> Mapping[str, StageProgram]:
        """The stage of every operator on the workers."""
        return {operator: stage for stage in self.stages for operator in stage.operators}

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
    for number, wire in enumerate(numbered(fused)):
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
        windows={node.name: _window_of(graph, node) for node in graph.nodes},
        sliders={
            (node.name, port.name): _sliding(graph, node, port.name)
            for node in graph.nodes
            if slides(graph, node)
            for port in node.output_ports.values()
        },
        keyings=keyings,
        attributes={node.name: _attributes(graph, node) for node in graph.nodes},
        outputs={
            (node.name, port.name): node.payload(port)
            for node in graph.nodes
            if isinstance(node.operator, InputOperator)
            for port in node.output_ports.values()
        },
    )


def _attributes(graph: Graph, node: Node) -> Mapping[str, Any]:
    settings = {**graph.attributes, **node.attributes}
    return {
        attribute.qualified: setting.value
        for attribute, setting in settings.items()
        if isinstance(setting.value, bool | int | float | str | None)
    }


def _window_of(graph: Graph, node: Node) -> int:
    """Streaming windows between `begin_window` and `end_window`: those of a pane, where windows slide."""
    count: int = graph.value(node, OperatorContext.APPLICATION_WINDOW_COUNT)
    return _sliding(graph, node, "").pane if slides(graph, node) else count


def _sliding(graph: Graph, node: Node, port: str) -> Sliding:
    step = graph.value(node, OperatorContext.SLIDE_BY_WINDOW_COUNT)
    assert step is not None, "only what slides has a slider"
    return Sliding(
        length=graph.value(node, OperatorContext.APPLICATION_WINDOW_COUNT),
        step=step,
        port=f"{node.name}.{port}",
        payload=node.payload(node.output_ports[port]) if port else Any,
    )


def numbered(fused: Fused) -> list[Wire]:
    """The wires in the order of their numbers."""
    return sorted(fused.wires, key=lambda wire: (str(wire.source), str(wire.sink)))


def keying_of(node: Node, port: str) -> Keying:
    """By what the items of an input of this node are told apart."""
    declared = node.input_ports[port]
    return Keying(node.port_value(port, PortContext.STREAM_CODEC), declared.key, declared.key_field)


def _target(fused: Fused, number: int, wire: Wire, level: int, keying: Keying) -> Target:
    receiver, port = fused.partitioned[wire.sink.node], wire.sink.port
    keyed, senders = receiver.keyed_on(port), fused.partitioned[wire.source.node].count
    delayed = wire.routing is Routing.DELAYED
    routing = when_it_comes_round(senders, receiver.count, keyed=keyed) if delayed else wire.routing
    slid = slides(fused.graph, fused.graph.by_name[wire.source.node])
    unifier = fused.graph.by_name[wire.source.node].output_ports[wire.source.port].unifier
    return Target(
        wire=number,
        into=(wire.sink.node, port),
        routing=routing,
        slots=receiver.count,
        level=level,
        keying=keying,
        payload=fused.graph.by_name[wire.source.node].payload(wire.source.declared),
        keys=tuple(partition.keys[port] for partition in receiver.partitions) if keyed else (),
        unifier=unifier if slid or (senders > 1 and routing is not Routing.STRAIGHT) else None,
        delayed=delayed,
        queued=_on_driver(fused, wire.source.node) and isinstance(receiver.partitions[0].operator, SplittableOperator),
    )


def _on_driver(fused: Fused, name: str) -> bool:
    return isinstance(fused.graph.by_name[name].operator, InputOperator)


def when_it_comes_round(senders: int, receivers: int, *, keyed: bool) -> Routing:
    """How what a delay held back is routed in the next window."""
    if keyed:
        return Routing.KEYED
    return Routing.STRAIGHT if senders == receivers else Routing.BROADCAST
