"""Laws of the graph's shape: streams have two ends, items can be read, roots make items, loops are delayed."""

from collections.abc import Iterator
from typing import get_args, get_origin

from dagkit.api.attributes import OperatorContext
from dagkit.api.operators import Operator
from dagkit.errors import Diagnostic
from dagkit.graph import Graph, Node
from dagkit.schema import assignable, spelled


def an_application_has_operators(graph: Graph) -> Iterator[Diagnostic]:
    """An empty graph does nothing: its operators were probably forgotten."""
    if not graph.nodes:
        yield Diagnostic(
            "application-empty",
            f"{graph.application} has no operators",
            "call dag.add_operator in populate_dag",
            graph.where,
        )


def every_stream_has_a_source(graph: Graph) -> Iterator[Diagnostic]:
    """No item would ever flow in a stream without a source."""
    for stream in graph.streams:
        if stream.source is None and not stream.cut_short:
            yield Diagnostic(
                "stream-unfed",
                f"stream {stream.name!r} has no source",
                "name an output port as its source, or remove the stream",
                stream.where,
            )


def every_stream_has_a_sink(graph: Graph) -> Iterator[Diagnostic]:
    """Nothing would read the items of a stream without a sink."""
    for stream in graph.streams:
        if not stream.sinks and not stream.cut_short:
            yield Diagnostic(
                "stream-unread",
                f"stream {stream.name!r} has no sink",
                "connect it to an input port, or remove the stream",
                stream.where,
            )


def sent_items_can_be_read(graph: Graph) -> Iterator[Diagnostic]:
    """The payload of a source must fit the payload of each sink."""
    for stream, source, sink in graph.edges():
        sent = graph.by_name[source.node].payload(source.declared)
        read = graph.by_name[sink.node].payload(sink.declared)
        if not assignable(sent, read):
            yield Diagnostic(
                "port-type-mismatch",
                f"stream {stream.name!r} joins {source} ({spelled(sent)}) to {sink} ({spelled(read)})",
                _how_to_join(graph, source.node, sent, sink.node, read),
                sink.where,
            )


def sent_items_suit_the_properties(graph: Graph) -> Iterator[Diagnostic]:
    """A property may narrow what a generic port can take."""
    for stream, source, sink in graph.edges():
        operator = graph.by_name[sink.node].operator
        if not isinstance(operator, Operator) or operator.faults:
            continue
        sent = graph.by_name[source.node].payload(source.declared)
        help_ = operator.refused_payload(sink.port, sent)
        if help_ is not None:
            yield Diagnostic(
                "port-type-mismatch",
                f"stream {stream.name!r} joins {source} ({spelled(sent)}) to {sink}, which cannot take that",
                help_,
                sink.where,
            )


def _how_to_join(graph: Graph, source: str, sent: object, sink: str, read: object) -> str:
    """Suggest an operator between the two, and other ports of either that would fit."""
    hints = [f"put an operator that turns {spelled(sent)} into {spelled(read)} between them{_such_as(sent, read)}"]
    node = graph.by_name[source]
    fitting = [p.name for p in node.output_ports.values() if assignable(node.payload(p), read)]
    if fitting:
        hints.append(f"connect {source}.{fitting[0]}")
    node = graph.by_name[sink]
    fitting = [p.name for p in node.input_ports.values() if assignable(sent, node.payload(p))]
    if fitting:
        hints.append(f"connect it to {sink}.{fitting[0]}")
    written = type(node.operator).__name__
    if read in get_args(sent) and spelled(read) in written.partition("[")[2]:
        hints.append(f"write {spelled(sent)} for {spelled(read)} in {written}, if {sink} works on the value inside")
    return ", or ".join(hints)


def _such_as(sent: object, read: object) -> str:
    """The operator that takes the value out of a record, as readers send it."""
    has_value = "value" in getattr(get_origin(sent), "__dataclass_fields__", ())
    if not has_value or not any(assignable(argument, read) for argument in get_args(sent)):
        return ""
    return f", such as Map[{spelled(sent)}, {spelled(read)}](lambda record: record.value)"


def every_root_is_an_input_operator(graph: Graph) -> Iterator[Diagnostic]:
    """An operator without connected inputs must make items itself, or it would wait forever."""
    for node in _roots(graph):
        waits = any(port.required for port in node.input_ports.values())
        if not (node.is_input or waits or node.unsure):
            yield Diagnostic(
                "root-not-input",
                f"nothing feeds {node.name}, and {type(node.operator).__name__} is not an InputOperator",
                "connect a stream to it, or derive its class from InputOperator",
                node.where,
            )


def input_operators_are_fed_by_nothing(graph: Graph) -> Iterator[Diagnostic]:
    """An input operator makes items on the driver, before any operator has sent one. Delays are not input operators.

    Apex accepts a stream into an input operator, and then never calls its `emit_tuples`.
    """
    for stream in graph.streams:
        for sink in stream.sinks:
            node = graph.by_name[sink.node]
            kind = type(node.operator).__name__
            if node.is_input:
                yield Diagnostic(
                    "root-fed",
                    f"stream {stream.name!r} feeds {sink}, and {kind} is an InputOperator",
                    f"leave {sink} unconnected, or derive {kind} from Operator to read streams",
                    sink.where,
                )


def every_operator_is_reached(graph: Graph) -> Iterator[Diagnostic]:
    """An operator that no input operator leads to would run every window without items."""
    reached = _reached(graph)
    for node in graph.nodes:
        if node.name not in reached:
            yield Diagnostic(
                "operator-unreached",
                f"no input operator leads to {node.name}",
                "connect it to an input operator, directly or through other operators",
                node.where,
            )


def _reached(graph: Graph) -> set[str]:
    """The operators downstream of a root, or of a fault with a code of its own: no source, or an undelayed loop."""
    reached = {sink.node for stream in graph.streams if stream.source is None for sink in stream.sinks}
    reached |= {node.name for node in graph.nodes if node.unsure or node.is_input}
    reached |= {node.name for node in _roots(graph)} | {name for loop in _undelayed_loops(graph) for name in loop}
    ahead = list(reached)
    while ahead:
        new = set(graph.network.successors(ahead.pop())) - reached
        reached |= new
        ahead += new
    return reached


def every_loop_holds_a_delay(graph: Graph) -> Iterator[Diagnostic]:
    """In a loop without a delay, an operator would need its own output before it makes it."""
    for loop in _undelayed_loops(graph):
        start = next(node for node in graph.nodes if node.name in loop)
        around = _path_around(graph, start.name, loop)
        yield Diagnostic(
            "loop-undelayed",
            f"the operators {' > '.join(around)} form a loop without a delay",
            "put a DelayOperator between two of them, so that an item returns in the next window",
            start.where,
        )


def every_delay_leads_back(graph: Graph) -> Iterator[Diagnostic]:
    """A delay must lead back to an operator upstream of it, and delay by one window."""
    for node in graph.nodes:
        if node.is_delay:
            yield from _misplaced(graph, node)


def _misplaced(graph: Graph, delay: Node) -> Iterator[Diagnostic]:
    import networkx as nx  # noqa: PLC0415 - most commands compile nothing

    count = graph.value(delay, OperatorContext.APPLICATION_WINDOW_COUNT)
    if count != 1:
        yield Diagnostic(
            "delay-misplaced",
            f"{delay.name} delays by one window, but its APPLICATION_WINDOW_COUNT is {count}",
            "leave APPLICATION_WINDOW_COUNT of a delay at 1",
            delay.where,
        )
    if graph.has_gaps:
        return  # the path back may contain the missing end
    upstream = nx.ancestors(graph.forward, delay.name)
    for _, source, sink in graph.edges():
        if source.node == delay.name and sink.node not in upstream and sink.node != delay.name:
            yield Diagnostic(
                "delay-misplaced",
                f"{delay.name} leads to {sink.node}, which does not lead back to {delay.name}",
                f"connect it to an operator upstream of {delay.name}, or connect the two without a delay",
                sink.where,
            )


def _roots(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes if not graph.connected_inputs(node.name)]


def _undelayed_loops(graph: Graph) -> list[set[str]]:
    """The loops without a delay, as sets of names. An operator that feeds itself is one, even if it is a delay."""
    import networkx as nx  # noqa: PLC0415 - most commands compile nothing

    parts = [part for part in nx.strongly_connected_components(graph.forward) if len(part) > 1]
    within = set().union(*parts) if parts else set()
    selves = [{name} for name in dict.fromkeys(nx.nodes_with_selfloops(graph.network)) if name not in within]
    return [*parts, *selves]


def _path_around(graph: Graph, start: str, loop: set[str]) -> list[str]:
    """The names along one path around the loop, from `start` back to itself."""
    import networkx as nx  # noqa: PLC0415 - most commands compile nothing

    if len(loop) == 1:
        return [start, start]
    part = graph.forward.subgraph(loop)
    back = min((nx.shortest_path(part, follower, start) for follower in part.successors(start)), key=len)
    return [start, *back]
