"""Orders in which the sender comes before the receiver. This needs no networkx, whose import takes long."""

from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter
from heapq import heapify, heappop, heappush


def upstream_first(nodes: Iterable[str], edges: Iterable[tuple[str, str]]) -> tuple[str, ...] | None:
    """The nodes, each behind those with an edge to it, ties by name; None if edges form a loop."""
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for node in nodes:
        sorter.add(node)
    for source, sink in edges:
        sorter.add(sink, source)
    try:
        sorter.prepare()
    except CycleError:
        return None
    ready, ordered = list(sorter.get_ready()), list[str]()
    heapify(ready)
    while ready:
        ordered.append(heappop(ready))
        sorter.done(ordered[-1])
        for node in sorter.get_ready():
            heappush(ready, node)
    return tuple(ordered)
