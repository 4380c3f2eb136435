"""Graph, Node and Stream: frozen values. A pass takes a graph and returns another."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from dagkit.api.application import Module
from dagkit.api.attributes import Attribute, Locality
from dagkit.api.component import Component
from dagkit.api.configuration import DEFAULT, Origin, Setting
from dagkit.api.operators import DelayOperator, InputOperator
from dagkit.api.ports import InputPort, OutputPort, input_ports, output_ports
from dagkit.errors import Where
from dagkit.schema import Bindings, substitute

if TYPE_CHECKING:
    import networkx as nx

T = TypeVar("T")

SEPARATOR = "$"
"""Separates the name of a module from the name of an operator in it."""


Settings = Mapping[Attribute[Any], Setting]


@dataclass(frozen=True, slots=True)
class End:
    """A port of a node that a stream is connected to."""

    node: str
    port: str
    declared: InputPort[Any] | OutputPort[Any] = field(compare=False, repr=False)
    """The port object that the author named. It differs from the node's port of that name if a subclass hides it."""
    where: Where = field(compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.node}.{self.port}"


@dataclass(frozen=True)
class Node:
    """One placed operator or module, with the attributes set on it."""

    name: str
    operator: Component
    where: Where
    attributes: Settings = field(default_factory=dict)
    inputs: Mapping[str, Settings] = field(default_factory=dict)
    """Attributes of input ports, by port."""
    outputs: Mapping[str, Settings] = field(default_factory=dict)
    unifiers: Mapping[str, Settings] = field(default_factory=dict)
    """Operator attributes of the unifier behind an output port, by port."""
    property_origins: Mapping[str, Origin] = field(default_factory=dict)
    """The origin of each property that configuration set, by dotted path."""
    bindings: Bindings = field(default_factory=dict)
    """The types that the operator's type variables stand for, inferred from the streams into it."""
    unsure: bool = field(default=False, compare=False)
    """Whether a stream named a port that the node does not have. A port that looks unconnected may have been meant."""

    @cached_property
    def input_ports(self) -> Mapping[str, InputPort[Any]]:
        return input_ports(type(self.operator))

    @cached_property
    def output_ports(self) -> Mapping[str, OutputPort[Any]]:
        return output_ports(type(self.operator))

    @property
    def is_module(self) -> bool:
        return isinstance(self.operator, Module)

    @property
    def is_input(self) -> bool:
        return isinstance(self.operator, InputOperator)

    @property
    def is_delay(self) -> bool:
        return isinstance(self.operator, DelayOperator)

    def payload(self, port: InputPort[Any] | OutputPort[Any]) -> Any:
        """The payload type of a port of this node, with known type variables replaced."""
        return substitute(port.payload, self.bindings)

    def port_value(self, port: str, attribute: Attribute[T], *, output: bool = False) -> T:
        """A port attribute's value, or its default."""
        settings = (self.outputs if output else self.inputs).get(port, {})
        return settings[attribute].value if attribute in settings else attribute.default


@dataclass(frozen=True, slots=True)
class Stream:
    """Its sources and its sinks. A second source is a fault, which the rules report."""

    name: str
    sources: tuple[End, ...]
    sinks: tuple[End, ...]
    where: Where = field(compare=False)
    locality: Locality | None = None
    locality_origin: Origin = DEFAULT
    cut_short: bool = field(default=False, compare=False)
    """Whether an end was left out because it leads nowhere. That fault is reported; rules must not report it again."""

    @property
    def source(self) -> End | None:
        """The source, the first one if there are several; None if there is none."""
        return self.sources[0] if self.sources else None

    @property
    def ends(self) -> tuple[End, ...]:
        """Every end that names an existing port, sources first."""
        return (*self.sources, *self.sinks)


@dataclass(frozen=True)
class Graph:
    """The application: its nodes and streams in the order of declaration, and its own attributes."""

    application: str
    nodes: tuple[Node, ...] = ()
    streams: tuple[Stream, ...] = ()
    attributes: Settings = field(default_factory=dict)
    where: Where | None = None

    @cached_property
    def by_name(self) -> Mapping[str, Node]:
        return {node.name: node for node in self.nodes}

    @cached_property
    def _feeding(self) -> Mapping[tuple[str, str], tuple[Stream, ...]]:
        return _by_port((sink, stream) for stream in self.streams for sink in stream.sinks)

    @cached_property
    def _drawing(self) -> Mapping[tuple[str, str], tuple[Stream, ...]]:
        return _by_port((source, stream) for stream in self.streams for source in stream.sources)

    @cached_property
    def _inputs_in_order(self) -> Mapping[str, tuple[tuple[str, Stream], ...]]:
        into: dict[str, list[tuple[str, Stream]]] = {}
        for stream in self.streams:
            for sink in stream.sinks:
                into.setdefault(sink.node, []).append((sink.port, stream))
        return {name: tuple(pairs) for name, pairs in into.items()}

    def streams_into(self, node: str, port: str) -> tuple[Stream, ...]:
        """The streams that feed this input. More than one is a fault."""
        return self._feeding.get((node, port), ())

    def streams_from(self, node: str, port: str) -> tuple[Stream, ...]:
        """The streams that this output feeds. More than one is a fault."""
        return self._drawing.get((node, port), ())

    def connected_inputs(self, node: str) -> tuple[tuple[str, Stream], ...]:
        """The connected inputs of a node with their streams, in the order in which they were connected."""
        return self._inputs_in_order.get(node, ())

    def senders(self, node: str) -> tuple[str, ...]:
        """The operators that send to an operator, in the order in which its inputs were connected."""
        return tuple(dict.fromkeys(end.node for _, stream in self.connected_inputs(node) for end in stream.sources))

    def edges(self) -> Iterator[tuple[Stream, End, End]]:
        """Every pair of a source and a sink, stream by stream."""
        for stream in self.streams:
            if stream.source is not None:
                for sink in stream.sinks:
                    yield stream, stream.source, sink

    @property
    def has_gaps(self) -> bool:
        """Whether an end of any stream was left out, so that paths through the graph may be missing."""
        return any(stream.cut_short for stream in self.streams)

    def value(self, node: Node, attribute: Attribute[T]) -> T:
        """An operator attribute's value: the node's own, else the application's, else the default."""
        value: T = self.setting(node, attribute).value
        return value

    def setting(self, node: Node, attribute: Attribute[Any]) -> Setting:
        """An operator attribute's value, with its origin."""
        return self.set_on(node, attribute) or Setting(attribute.default, DEFAULT)

    def set_on(self, node: Node, attribute: Attribute[Any]) -> Setting | None:
        """An operator attribute's setting: the node's own, else the application's; None if neither is set."""
        return node.attributes.get(attribute) or self.attributes.get(attribute)

    def application_value(self, attribute: Attribute[T]) -> T:
        """An application attribute's value, or its default."""
        return self.attributes[attribute].value if attribute in self.attributes else attribute.default

    @cached_property
    def network(self) -> "nx.MultiDiGraph[str]":
        """The graph for networkx: one edge for each pair of a source and a sink, keyed by stream and ports."""
        import networkx as nx  # noqa: PLC0415 - takes half as long as a whole `dagkit validate`

        network: nx.MultiDiGraph[str] = nx.MultiDiGraph()
        network.add_nodes_from(node.name for node in self.nodes)
        network.add_edges_from(
            (source.node, sink.node, (stream.name, source.port, sink.port)) for stream, source, sink in self.edges()
        )
        return network

    @cached_property
    def forward(self) -> "nx.DiGraph[str]":
        """The network without the edges that leave delay operators. It is acyclic in a graph that compiles."""
        import networkx as nx  # noqa: PLC0415 - as above

        forward: nx.DiGraph[str] = nx.DiGraph()
        forward.add_nodes_from(node.name for node in self.nodes)
        forward.add_edges_from(
            (source.node, sink.node) for _, source, sink in self.edges() if not self.by_name[source.node].is_delay
        )
        return forward

    def with_nodes(self, nodes: Mapping[str, Node]) -> "Graph":
        """The same graph with these nodes replacing the nodes of the same names."""
        return replace(self, nodes=tuple(nodes.get(node.name, node) for node in self.nodes))


def _by_port(ends: Iterable[tuple[End, Stream]]) -> Mapping[tuple[str, str], tuple[Stream, ...]]:
    """The streams of each port."""
    found: dict[tuple[str, str], tuple[Stream, ...]] = {}
    for end, stream in ends:
        found[end.node, end.port] = (*found.get((end.node, end.port), ()), stream)
    return found
