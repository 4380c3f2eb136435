"""Laws of ports: required ports are connected, each to one stream, and no connected port is hidden."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from dagkit.api.adapters import Typed, adapter_of
from dagkit.api.attributes import PortContext
from dagkit.api.ports import InputPort, OutputPort
from dagkit.api.work import SplittableOperator
from dagkit.errors import Diagnostic
from dagkit.graph import SEPARATOR, End, Graph, Node, Stream
from dagkit.ranges import ByteKeyRange, OffsetRange
from dagkit.schema import assignable, spelled

_MOST = 3
"""How many outputs are suggested for one input."""


def every_required_input_is_fed(graph: Graph) -> Iterator[Diagnostic]:
    """A required input without a stream would keep its window open forever."""
    # Each unfed input is compared with all of these. Without a bound, suggestions would take quadratic time in a large
    # graph.
    open_outputs = list(islice(_open_outputs(graph), 100))
    for node in graph.nodes:
        for port in node.input_ports.values():
            if port.required and not (node.unsure or graph.streams_into(node.name, port.name)):
                yield Diagnostic(
                    "input-unconnected",
                    f"no stream feeds {node.name}.{port.name}",
                    f"{_candidates(graph, open_outputs, node, port)}{_or_optional(node, port)}",
                    node.where,
                )


def every_required_output_is_read(graph: Graph) -> Iterator[Diagnostic]:
    """An author declares an output optional=False if its items must not be dropped."""
    for node in graph.nodes:
        for port in node.output_ports.values():
            if port.required and not (node.unsure or graph.streams_from(node.name, port.name)):
                yield Diagnostic(
                    "output-unconnected",
                    f"no stream reads {node.name}.{port.name}, which must be connected",
                    f"connect {node.name}.{port.name} to an operator{_or_optional(node, port)}",
                    node.where,
                )


def _open_outputs(graph: Graph) -> Iterator[tuple[Node, OutputPort[Any]]]:
    for node in graph.nodes:
        for port in node.output_ports.values():
            if not graph.streams_from(node.name, port.name):
                yield node, port


def _or_optional(node: Node, port: InputPort[Any] | OutputPort[Any]) -> str:
    """A second way to repair it, if the author's own class declares the port."""
    owner = next(cls for cls in type(node.operator).__mro__ if port.name in vars(cls))
    is_library = owner.__module__.partition(".")[0] in ("dagkit", "dagkit_operators")
    return "" if is_library else ", or make the port optional=True"


def _candidates(
    graph: Graph, open_outputs: Sequence[tuple[Node, OutputPort[Any]]], node: Node, port: InputPort[Any]
) -> str:
    """Suggest unconnected outputs of the same module that fit and make no loop, or else the type to connect.

    An output of the very type comes first, and then the one whose operator was added nearest to this one.
    """
    import networkx as nx  # noqa: PLC0415 - most commands compile nothing

    wanted, after = node.payload(port), {node.name, *nx.descendants(graph.forward, node.name)}
    module, places = node.name.rpartition(SEPARATOR)[0], {other.name: at for at, other in enumerate(graph.nodes)}
    fitting = [
        (other.payload(output) != wanted, abs(places[other.name] - places[node.name]), f"{other.name}.{output.name}")
        for other, output in open_outputs
        if other.name.rpartition(SEPARATOR)[0] == module
        and other.name not in after
        and assignable(other.payload(output), wanted)
    ]
    if not fitting:
        return f"connect an output of {spelled(wanted)} to it"
    return f"connect {' or '.join(name for _, _, name in sorted(fitting)[:_MOST])} to it"


def every_port_is_on_one_stream(graph: Graph) -> Iterator[Diagnostic]:
    """One output feeds one stream, which may have many sinks; one input reads one stream.

    Of two ends in one file, the fault is at the later line, whichever stream was declared first.
    """
    for stream in graph.streams:
        for source in stream.sources[1:]:
            yield Diagnostic(
                "port-taken",
                f"stream {stream.name!r} already has the source {stream.source}; {source} is a second one",
                f"give {source} its own stream",
                source.where,
            )
    seen: dict[tuple[str, str, bool], Stream] = {}
    connected = [(stream, end) for stream in graph.streams for end in filter(None, (stream.source, *stream.sinks))]
    files = {file: rank for rank, file in enumerate(dict.fromkeys(end.where.file for _, end in connected))}
    for stream, end in sorted(connected, key=lambda pair: (files[pair[1].where.file], pair[1].where.line or 0)):
        key = end.node, end.port, isinstance(end.declared, InputPort)
        if key in seen:
            yield _taken(end, seen[key])
        seen.setdefault(key, stream)


def _taken(end: End, first: Stream) -> Diagnostic:
    if isinstance(end.declared, InputPort):
        help_ = "merge the streams first, as StreamMerger of dagkit_operators does, or feed another input"
    else:
        help_ = f"add the sink to stream {first.name!r} instead: one stream may have many"
    return Diagnostic("port-taken", f"{end} is already on stream {first.name!r}", help_, end.where)


def connected_ports_are_not_hidden(graph: Graph) -> Iterator[Diagnostic]:
    """If a subclass declares a port again, the base class's port is no longer a port of the operator."""
    for stream in graph.streams:
        for end in stream.ends:
            node = graph.by_name[end.node]
            ports = node.input_ports if isinstance(end.declared, InputPort) else node.output_ports
            if ports.get(end.port) is not end.declared:
                yield Diagnostic(
                    "port-hidden",
                    f"stream {stream.name!r} is connected to {end.declared.declared_in}.{end.port}, "
                    f"which {type(node.operator).__name__} hides with a port of its own",
                    f"connect it to {end.node}.{end.port} as {type(node.operator).__name__} declares it",
                    end.where,
                )


def ports_that_need_a_schema_have_one(graph: Graph) -> Iterator[Diagnostic]:
    """A port that is declared schema_required must know the class of its items."""
    for node in graph.nodes:
        inputs = [(p, False) for p in node.input_ports.values() if graph.streams_into(node.name, p.name)]
        outputs = [(p, True) for p in node.output_ports.values() if graph.streams_from(node.name, p.name)]
        for port, is_output in (*inputs, *outputs):
            if port.schema_required and node.port_value(port.name, PortContext.TUPLE_CLASS, output=is_output) is None:
                yield Diagnostic(
                    "port-schema-missing",
                    f"{node.name}.{port.name} needs to know the class of its items, and TUPLE_CLASS is not set",
                    f"set PortContext.TUPLE_CLASS on {node.name}.{port.name}",
                    node.where,
                )


def every_restriction_can_be_written(graph: Graph) -> Iterator[Diagnostic]:
    """The ledger saves unfinished work as JSON, so the type of a restriction needs a JSON form."""
    for node, kind, declared in _own_restrictions(graph):
        adapter = adapter_of(declared)
        if isinstance(adapter, Typed) and not adapter.has_schema:
            yield Diagnostic(
                "restriction-unwritable",
                f"{kind.__name__} of {node.name} works on restrictions of type {spelled(declared)}, which has no JSON "
                "form, so the ledger could not save unfinished work",
                f"make {spelled(declared)} a dataclass or a pydantic model of values that have one",
                node.where,
            )


def every_restriction_has_a_tracker(graph: Graph) -> Iterator[Diagnostic]:
    """Only the author of a restriction type knows how to claim and split its values."""
    for node, kind, declared in _own_restrictions(graph):
        if kind.tracker is SplittableOperator.tracker:
            yield Diagnostic(
                "restriction-untracked",
                f"{kind.__name__} of {node.name} works on restrictions of type {spelled(declared)}, but has no tracker "
                "for them",
                f"write `def tracker(self, element, restriction)` in {kind.__name__}; it returns a RestrictionTracker",
                node.where,
            )


def _own_restrictions(graph: Graph) -> Iterator[tuple[Node, type[SplittableOperator[Any, Any]], Any]]:
    """The operators whose restrictions are of a type of the author. Ranges have a JSON form and a tracker."""
    for node in graph.nodes:
        if isinstance(node.operator, SplittableOperator):
            kind = type(node.operator)
            if kind.restriction_type not in (OffsetRange, ByteKeyRange):
                yield node, kind, kind.restriction_type
