"""Laws of places: which operators may share a thread, a process or a host, and which must not."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from dagkit.api.affinity import AffinityRule, AffinityRulesSet, AffinityType
from dagkit.api.attributes import DagContext, Locality, OperatorContext, PortContext
from dagkit.errors import Diagnostic, Severity, Where, did_you_mean
from dagkit.graph import Graph, Node
from dagkit.ground.patterns import HELP, is_whole, refusal

if TYPE_CHECKING:
    import networkx as nx

# No window reads a locality. The laws are kept because Apex refuses such graphs: an application would otherwise be
# refused only when it is taken back there.
_TIGHTNESS = (Locality.THREAD_LOCAL, Locality.CONTAINER_LOCAL, Locality.NODE_LOCAL, Locality.RACK_LOCAL)
Pair = tuple[str, str]


def one_thread_serves_one_source(graph: Graph) -> Iterator[Diagnostic]:
    """Operators share a thread by calling each other, so several inputs can share one only with a common caller."""
    owners = _thread_owners(graph)
    for node in graph.nodes:
        streams = [stream for _, stream in graph.connected_inputs(node.name)]
        threaded = [stream for stream in streams if stream.locality is Locality.THREAD_LOCAL]
        if len(streams) < 2 or not threaded:
            continue
        sources = [graph.by_name[stream.source.node] for stream in streams if stream.source is not None]
        reason = _why_not_one_thread(node, sources, len(threaded) == len(streams), owners)
        if reason:
            yield Diagnostic(
                "locality-invalid",
                f"{node.name} cannot share a thread with what feeds it: {reason}",
                f"remove THREAD_LOCAL from stream {threaded[0].name!r}",
                threaded[0].locality_origin.where or threaded[0].where,
            )


def _why_not_one_thread(node: Node, sources: Sequence[Node], all_threaded: bool, owners: dict[str, str]) -> str | None:  # noqa: FBT001
    if node.is_delay:
        return "a delay passes items on in the next window"
    if any(source.is_delay for source in sources):
        return "one of its inputs comes from a delay"
    if not all_threaded:
        return "it has several input streams, and not all of them are THREAD_LOCAL"
    if len({owners[source.name] for source in sources}) > 1:
        return "its input streams do not begin at one operator"
    return None


def _thread_owners(graph: Graph) -> dict[str, str]:
    """For each operator, the upstream operator whose thread it runs in by THREAD_LOCAL streams, or itself."""
    import networkx as nx  # noqa: PLC0415 - most commands compile nothing

    owners: dict[str, str] = {}
    # A loop without a delay has no order; `every_loop_holds_a_delay` reports it.
    order = nx.topological_sort(graph.forward) if nx.is_directed_acyclic_graph(graph.forward) else ()
    for name in order:
        streams = [stream for _, stream in graph.connected_inputs(name)]
        above = {owners.get(s.source.node, s.source.node) for s in streams if s.source is not None}
        shares = streams and all(s.locality is Locality.THREAD_LOCAL for s in streams) and len(above) == 1
        owners[name] = above.pop() if shares else name
    return {node.name: owners.get(node.name, node.name) for node in graph.nodes}


def localities_have_an_effect(graph: Graph, counts: Mapping[str, int]) -> Iterator[Diagnostic]:
    """Operators that run in different processes, or exchange items, share neither a thread nor a container.

    This law needs the counts of partitions, so `dagkit.compiler.partition` checks it.
    """
    for stream, source, sink in graph.edges():
        if (
            stream.locality not in (Locality.THREAD_LOCAL, Locality.CONTAINER_LOCAL)
            or graph.by_name[source.node].is_delay
        ):
            continue
        reason = None
        if graph.by_name[source.node].is_input:
            reason = f"{source.node} runs on the driver, and {sink.node} on the workers"
        elif not graph.by_name[sink.node].port_value(sink.port, PortContext.PARTITION_PARALLEL) and (
            counts[source.node] > 1 or counts[sink.node] > 1
        ):
            reason = f"items change partitions between {source.node} and {sink.node}"
        if reason is not None:
            yield Diagnostic(
                "locality-ignored",
                f"{stream.locality} of stream {stream.name!r} has no effect here: {reason}",
                "remove it if the application runs only on dagkit",
                stream.locality_origin.where or stream.where,
                Severity.ADVISORY,
            )


def affinity_names_operators_that_exist(graph: Graph) -> Iterator[Diagnostic]:
    """A rule about an operator that does not exist has no effect."""
    for rule in _rules(graph):
        for name in rule.operators:
            if name not in graph.by_name:
                help_ = did_you_mean(name, graph.by_name)
                yield Diagnostic(
                    "affinity-invalid",
                    f"an affinity rule names {name!r}; there is no such operator",
                    help_,
                    _line(graph),
                )
        why_not = None if rule.operator_regex is None else refusal(rule.operator_regex)
        if why_not is not None:
            yield Diagnostic(
                "affinity-invalid",
                f"the affinity rule's {rule.operator_regex!r} is not a regular expression: {why_not}",
                HELP,
                _line(graph),
            )
        elif rule.operator_regex is not None and len(_members(graph, rule)) < 2:
            yield Diagnostic(
                "affinity-ignored",
                f"the affinity rule for {rule.operator_regex!r} matches fewer than two operators, and is ignored",
                "fix the pattern, or remove the rule",
                _line(graph),
                Severity.WARNING,
            )


def affinity_agrees_with_the_streams(graph: Graph) -> Iterator[Diagnostic]:
    """Operators that a stream or another rule keeps together cannot be kept apart."""
    import networkx as nx  # noqa: PLC0415 - most commands compile nothing

    for rule, pair in _pairs(graph, AffinityType.ANTI_AFFINITY):
        if rule.relax_locality:
            continue
        together = _together(graph, rule.locality)
        if together.has_node(pair[0]) and together.has_node(pair[1]) and nx.has_path(together, *pair):
            yield _conflict(
                graph, pair, f"must run apart ({rule.locality}), but streams or other rules keep them together"
            )


def hosts_agree_with_affinity(graph: Graph) -> Iterator[Diagnostic]:
    """Operators that are pinned to hosts must obey the affinity rules there."""
    hosts = {node.name: graph.value(node, OperatorContext.LOCALITY_HOST) for node in graph.nodes}
    for _, pair in _pairs(graph, AffinityType.ANTI_AFFINITY):
        if hosts[pair[0]] and hosts[pair[0]] == hosts[pair[1]]:
            yield _conflict(graph, pair, f"must run apart, but both are pinned to host {hosts[pair[0]]!r}")
    for rule, pair in _pairs(graph, AffinityType.AFFINITY):
        # Two hosts may be in one rack.
        if _pinned_apart(hosts, pair) and not rule.relax_locality and rule.locality is not Locality.RACK_LOCAL:
            yield _conflict(
                graph, pair, f"must run together, but are pinned to hosts {hosts[pair[0]]!r} and {hosts[pair[1]]!r}"
            )
    for stream, source, sink in graph.edges():
        pair = (source.node, sink.node)
        if _pinned_apart(hosts, pair) and stream.locality not in (None, Locality.RACK_LOCAL):
            yield _conflict(
                graph, pair, f"are joined {stream.locality} by stream {stream.name!r}, but pinned to different hosts"
            )


def thread_affinity_joins_connected_operators(graph: Graph) -> Iterator[Diagnostic]:
    """Only operators that a stream connects can share a thread."""
    for rule, pair in _pairs(graph, AffinityType.AFFINITY):
        joined = graph.network.has_edge(*pair) or graph.network.has_edge(*reversed(pair))
        if rule.locality is Locality.THREAD_LOCAL and not (joined or graph.has_gaps):
            yield _conflict(graph, pair, "must share a thread, but no stream joins them")


def _rules(graph: Graph) -> Sequence[AffinityRule]:
    rules = graph.application_value(DagContext.AFFINITY_RULES_SET)
    return rules.affinity_rules if isinstance(rules, AffinityRulesSet) else ()


def _members(graph: Graph, rule: AffinityRule) -> list[str]:
    """The operators that a rule applies to."""
    if rule.operator_regex is None:
        return [name for name in rule.operators if name in graph.by_name]
    return [node.name for node in graph.nodes if is_whole(rule.operator_regex, node.name)]


def _pairs(graph: Graph, wanted: AffinityType) -> Iterator[tuple[AffinityRule, Pair]]:
    for rule in _rules(graph):
        if rule.type is wanted:
            members = _members(graph, rule)
            if rule.operator_regex is None or len(members) > 1:
                yield from ((rule, pair) for pair in combinations(members, 2))


def _together(graph: Graph, locality: Locality) -> "nx.Graph[str]":
    """The pairs of operators that streams and rules keep at least as near as this locality."""
    import networkx as nx  # noqa: PLC0415 - most commands compile nothing

    near = _TIGHTNESS[: _TIGHTNESS.index(min(locality, Locality.NODE_LOCAL, key=_TIGHTNESS.index)) + 1]
    together: nx.Graph[str] = nx.Graph()
    together.add_edges_from(
        (source.node, sink.node) for stream, source, sink in graph.edges() if stream.locality in near
    )
    together.add_edges_from(
        pair for rule, pair in _pairs(graph, AffinityType.AFFINITY) if rule.locality in near and not rule.relax_locality
    )
    return together


def _pinned_apart(hosts: dict[str, str | None], pair: Pair) -> bool:
    return bool(hosts[pair[0]] and hosts[pair[1]] and hosts[pair[0]] != hosts[pair[1]])


def _conflict(graph: Graph, pair: Pair, reason: str) -> Diagnostic:
    return Diagnostic(
        "affinity-conflicting",
        f"{pair[0]} and {pair[1]} {reason}",
        "change the affinity rule, the locality of the stream, or the host",
        _line(graph) or graph.by_name[pair[0]].where,
    )


def _line(graph: Graph) -> Where | None:
    setting = graph.attributes.get(DagContext.AFFINITY_RULES_SET)
    return setting.origin.where if setting else None
