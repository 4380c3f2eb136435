"""Fusing: group operators into stages, and record each cut between stages with its reason."""

from collections.abc import Mapping
from dataclasses import dataclass

from dagkit.api.attributes import PortContext
from dagkit.compiler.partition import Partitioning, takes_work
from dagkit.compiler.unify import slides
from dagkit.graph import End, Graph, Stream
from dagkit.plan.model import Cut, CutKind, Place, PlannedEnd, Routing, Stage


@dataclass(frozen=True, slots=True)
class Wire:
    """One source and one sink, with the routing of items between their partitions."""

    stream: Stream
    source: End
    sink: End
    routing: Routing


@dataclass(frozen=True)
class Fused:
    """The resolved graph, partitioned and cut into stages."""

    graph: Graph
    partitioned: Mapping[str, Partitioning]
    wires: tuple[Wire, ...]
    stages: tuple[Stage, ...]
    cuts: tuple[Cut, ...]


def fuse(graph: Graph, partitioned: Mapping[str, Partitioning]) -> Fused:
    """Make a stage of each linear chain whose partitions send straight on. Cut every other wire, with a reason."""
    wires = tuple(
        Wire(stream, source, sink, _routing(graph, partitioned, source, sink)) for stream, source, sink in graph.edges()
    )
    cuts = tuple(cut for wire in wires if (cut := _why_cut(graph, partitioned, wire)) is not None)
    names = _stage_names(_chains(graph, wires, cuts))
    stages = tuple(_stage(graph, partitioned, name, chain) for chain, name in names.items())
    return Fused(graph, partitioned, wires, _levelled(graph, stages, cuts), cuts)


def _routing(graph: Graph, partitioned: Mapping[str, Partitioning], source: End, sink: End) -> Routing:
    sender, receiver = partitioned[source.node], partitioned[sink.node]
    if graph.by_name[source.node].is_delay:
        return Routing.DELAYED
    if graph.by_name[sink.node].port_value(sink.port, PortContext.PARTITION_PARALLEL):
        return Routing.STRAIGHT
    is_work = takes_work(graph.by_name[sink.node], sink.port)
    # The driver itself sends what an input operator finds, so it may choose any partition unless keys decide.
    if graph.by_name[source.node].is_input and (
        is_work or not any(partition.keys for partition in receiver.partitions)
    ):
        return Routing.DISTRIBUTED
    if receiver.count == 1:
        return Routing.STRAIGHT if sender.count == 1 else Routing.GATHERED
    if is_work:
        return Routing.DISTRIBUTED
    if receiver.keyed_on(sink.port):
        return Routing.KEYED
    return Routing.BROADCAST


def _why_cut(graph: Graph, partitioned: Mapping[str, Partitioning], wire: Wire) -> Cut | None:
    """The cut at a wire, with the first reason that applies; None if both ends are in one stage."""
    source, sink = wire.source.node, wire.sink.node
    sent, taken = partitioned[source].count, partitioned[sink].count
    if wire.routing is Routing.DELAYED:
        return _cut(wire, CutKind.DELAY, f"{source} passes items on in the next window")
    if graph.by_name[source].is_input:
        return _cut(wire, CutKind.DRIVER, f"{source} is an input operator: it finds work on the driver")
    if wire.routing is Routing.KEYED:
        keyed = f"items go to the partition of {sink} that owns their key"
        return _cut(wire, CutKind.KEYS, keyed if sent == 1 else f"{keyed}, from each of {sent}", exchange=True)
    if wire.routing is Routing.BROADCAST:
        return _cut(wire, CutKind.COUNTS, f"each of the {taken} partitions of {sink} gets every item", exchange=True)
    if wire.routing is Routing.GATHERED:
        return _cut(wire, CutKind.COUNTS, f"{sent} partitions of {source} send to one of {sink}", exchange=True)
    if takes_work(graph.by_name[sink], wire.sink.port):
        distributed = wire.routing is Routing.DISTRIBUTED
        reason = f"{sink} is splittable: " + (
            f"its work is distributed over its {taken} partitions"
            if distributed
            else "work that a window leaves comes back to it"
        )
        return _cut(wire, CutKind.WORK, reason, exchange=distributed)
    if slides(graph, graph.by_name[source]):
        return _cut(wire, CutKind.UNIFIER, f"the windows of {source} slide: a unifier merges their panes")
    return _why_not_a_chain(graph, wire)


def _why_not_a_chain(graph: Graph, wire: Wire) -> Cut | None:
    source, sink = wire.source.node, wire.sink.node
    readers, feeders = graph.network.out_degree(source), graph.network.in_degree(sink)
    if graph.by_name[sink].is_delay:
        return _cut(wire, CutKind.DELAY, f"{sink} holds items back until the next window")
    if readers > 1:
        return _cut(wire, CutKind.FAN_OUT, f"{source} feeds {readers} inputs")
    if feeders > 1:
        return _cut(wire, CutKind.JOIN, f"{sink} is fed by {feeders} outputs")
    return None


def _cut(wire: Wire, kind: CutKind, reason: str, *, exchange: bool = False) -> Cut:
    source = PlannedEnd(operator=wire.source.node, port=wire.source.port)
    sink = PlannedEnd(operator=wire.sink.node, port=wire.sink.port)
    return Cut(stream=wire.stream.name, source=source, sink=sink, kind=kind, reason=reason, exchange=exchange)


def _chains(graph: Graph, wires: tuple[Wire, ...], cuts: tuple[Cut, ...]) -> list[tuple[str, ...]]:
    """The operators along wires without a cut. Every operator is in exactly one chain."""
    are_cut = {(str(cut.source), str(cut.sink)) for cut in cuts}
    # One follower each: a fan-out is cut.
    follower = {w.source.node: w.sink.node for w in wires if (str(w.source), str(w.sink)) not in are_cut}
    followed = set(follower.values())
    chains: list[tuple[str, ...]] = []
    for node in graph.nodes:
        if node.name not in followed:
            chain = [node.name]
            while chain[-1] in follower:
                chain.append(follower[chain[-1]])
            chains.append(tuple(chain))
    return chains


def _stage_names(chains: list[tuple[str, ...]]) -> dict[tuple[str, ...], str]:
    """A unique name for each stage. A prime distinguishes an operator called `a + b` from the stage of a and b."""
    names: dict[tuple[str, ...], str] = {}
    taken: set[str] = set()
    for chain in sorted(chains):
        name = _stage_name(chain)
        while name in taken:
            name += "\N{PRIME}"
        taken.add(name)
        names[chain] = name
    return names


LONGEST = 6
"""How many operators a stage's name lists. Each operator repeats the name: with all of them, plans grow as squares."""


def _stage_name(chain: tuple[str, ...]) -> str:
    if len(chain) > LONGEST:
        return f"{chain[0]} + \N{HORIZONTAL ELLIPSIS} + {chain[-1]} ({len(chain)} operators)"
    return " + ".join(chain)


def _stage(graph: Graph, partitioned: Mapping[str, Partitioning], name: str, chain: tuple[str, ...]) -> Stage:
    place = Place.DRIVER if graph.by_name[chain[0]].is_input else Place.WORKERS
    return Stage(name=name, operators=chain, place=place, level=0, slots=partitioned[chain[0]].count)


def _levelled(graph: Graph, stages: tuple[Stage, ...], cuts: tuple[Cut, ...]) -> tuple[Stage, ...]:
    """The stages with their level: the most exchanges on any path to them, without wires that leave delays."""
    import networkx as nx  # noqa: PLC0415 - most commands compile nothing

    home = {operator: stage.name for stage in stages for operator in stage.operators}
    between: nx.DiGraph[str] = nx.DiGraph()
    between.add_nodes_from(stage.name for stage in stages)
    for cut in cuts:
        if not graph.by_name[cut.source.operator].is_delay:
            edge = home[cut.source.operator], home[cut.sink.operator]
            # Two stages may be joined by several wires, but have only one edge here.
            weight = between.edges[edge]["exchanges"] if between.has_edge(*edge) else 0
            between.add_edge(*edge, exchanges=max(weight, int(cut.exchange)))
    levels: dict[str, int] = {}
    for name in nx.topological_sort(between):
        levels[name] = max(
            (levels[above] + between.edges[above, name]["exchanges"] for above in between.predecessors(name)), default=0
        )
    return tuple(stage.model_copy(update={"level": levels[stage.name]}) for stage in stages)
