"""Unifying: the operators that merge what the partitions of a source send, before the partitions of its sinks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dagkit.api.attributes import OperatorContext, PortContext
from dagkit.compiler.partition import Partitioning
from dagkit.graph import End, Graph, Node, Stream
from dagkit.plan.model import PlannedEnd, PlannedUnifier
from dagkit.plan.portable import portable_attributes

MERGE_KIND = "dagkit.merge/1"
SLIDER_KIND = "dagkit.slider/1"


def unifiers(graph: Graph, stream: Stream, partitioned: Mapping[str, Partitioning]) -> tuple[PlannedUnifier, ...]:
    """The unifiers of one stream: sliders, then the inner unifiers of cascades, then those that feed the sinks."""
    assert stream.source is not None, "a checked graph has no stream without a source"
    source = graph.by_name[stream.source.node]
    sinks = [sink for sink in sorted(stream.sinks, key=str) if not _mirrors(graph, sink)]
    making = _Making(source, stream.source.port)
    inputs = [f"{source.name}[{index}]" for index in range(partitioned[source.name].count)]
    if slides(graph, source):
        inputs = [making.slider(entry) for entry in inputs]
    if len(inputs) > 1 and sinks:
        for sinks_alike in _by_codec(graph, sinks):
            making.before(
                graph, sinks_alike, partitioned, making.cascade(inputs), shared=len(sinks_alike) == len(sinks)
            )
    return tuple(making.made)


def slides(graph: Graph, node: Node) -> bool:
    """Whether the operator's application windows overlap, so that each item counts in several."""
    count = graph.value(node, OperatorContext.APPLICATION_WINDOW_COUNT)
    step = graph.value(node, OperatorContext.SLIDE_BY_WINDOW_COUNT)
    return step is not None and 0 < step < count


def cascade_groups(inputs: Sequence[str], limit: int) -> tuple[list[Sequence[str]], list[str]]:
    """One level of a cascade: the full groups that each get a unifier, and the rest, which goes to the next level."""
    full = len(inputs) // limit * limit
    return [inputs[start : start + limit] for start in range(0, full, limit)], list(inputs[full:])


@dataclass
class _Making:
    """The unifiers made so far behind one output port."""

    source: Node
    port: str

    def __post_init__(self) -> None:
        source = self.source
        make = source.output_ports[self.port].unifier_in(source.operator)
        made = make() if make is not None else None
        self.kind = type(made).declared_kind() if made is not None else MERGE_KIND
        self.limit = source.port_value(self.port, PortContext.UNIFIER_LIMIT, output=True)
        self.attributes: Mapping[str, Any] = portable_attributes(source.unifiers.get(self.port, {}))
        self.made: list[PlannedUnifier] = []

    def _name(self, suffix: str) -> str:
        return f"{self.source.name}.{self.port}#{suffix}"

    def slider(self, partition: str) -> str:
        index = partition.removeprefix(self.source.name)
        unifier = PlannedUnifier(name=self._name(f"slider{index}"), kind=SLIDER_KIND, level=0, inputs=(partition,))
        self.made.append(unifier)
        return unifier.name

    def cascade(self, inputs: Sequence[str]) -> list[str]:
        """Add inner unifiers until no unifier needs more inputs than the limit. Return the inputs that remain."""
        remaining, level = list(inputs), 0
        # With a limit of 1 there would be as many unifiers as inputs, at each level.
        while len(remaining) > self.limit > 1:
            groups, rest = cascade_groups(remaining, self.limit)
            remaining = [self._inner(level, group) for group in groups] + rest
            level += 1
        return remaining

    def _inner(self, level: int, group: Sequence[str]) -> str:
        number = sum(1 for u in self.made if u.serves is None and u.kind != SLIDER_KIND)
        name = self._name(f"unifier.{number}")
        self.made.append(
            PlannedUnifier(name=name, kind=self.kind, level=level, inputs=tuple(group), attributes=self.attributes)
        )
        return name

    def before(
        self,
        graph: Graph,
        sinks: Sequence[End],
        partitioned: Mapping[str, Partitioning],
        inputs: Sequence[str],
        *,
        shared: bool,
    ) -> None:
        """Add the last unifiers: one for all sinks if it routes items itself, else one for each partition of a sink."""
        level = 1 + max((u.level for u in self.made if u.name in inputs), default=-1)
        final_made = False
        for sink in sinks:
            partitions = partitioned[sink.node]
            serves = PlannedEnd(operator=sink.node, port=sink.port)
            keyed = partitions.keyed_on(sink.port) and partitions.count > 1
            if shared and (not keyed or _single_final(graph, self.source, self.port, sink)):
                if not final_made:
                    self._final(level, inputs, serves, None, "unifier")
                final_made = True
            else:
                for index in range(partitions.count):
                    self._final(level, inputs, serves, index, f"unifier to {sink}[{index}]")

    def _final(self, level: int, inputs: Sequence[str], serves: PlannedEnd, partition: int | None, suffix: str) -> None:
        self.made.append(
            PlannedUnifier(
                name=self._name(suffix),
                kind=self.kind,
                level=level,
                inputs=tuple(inputs),
                serves=serves,
                partition=partition,
                attributes=self.attributes,
            )
        )


def _mirrors(graph: Graph, sink: End) -> bool:
    return graph.by_name[sink.node].port_value(sink.port, PortContext.PARTITION_PARALLEL)


def _single_final(graph: Graph, source: Node, port: str, sink: End) -> bool:
    """The value of UNIFIER_SINGLE_FINAL: that of the sink's input, or else that of the source's output."""
    at_sink = graph.by_name[sink.node].inputs.get(sink.port, {})
    if PortContext.UNIFIER_SINGLE_FINAL in at_sink:
        return bool(at_sink[PortContext.UNIFIER_SINGLE_FINAL].value)
    return source.port_value(port, PortContext.UNIFIER_SINGLE_FINAL, output=True)


def _by_codec(graph: Graph, sinks: Sequence[End]) -> Iterator[list[End]]:
    """The sinks of one stream, grouped by codec. Each codec has its own unifiers."""
    groups: list[tuple[Any, list[End]]] = []
    for sink in sinks:
        codec = graph.by_name[sink.node].port_value(sink.port, PortContext.STREAM_CODEC)
        # Compared one by one, because an author's codec need not be hashable.
        group = next((members for known, members in groups if known is codec or known == codec), None)
        if group is None:
            groups.append((codec, [sink]))
        else:
            group.append(sink)
    yield from (members for _, members in groups)
