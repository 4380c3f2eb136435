"""The operators that find files: where they search, and which operators get what they find. No ledger is read."""

from collections.abc import Collection, Mapping, Sequence

from dagkit.api.files import ExplainsFiles
from dagkit.api.operators import InputOperator
from dagkit.api.work import SplittableOperator
from dagkit.compiler import Compilation
from dagkit.compiler.rules.file_rules import items_into


def places(compilation: Compilation) -> Mapping[str, Sequence[str]]:
    """The paths and patterns that each operator searches for files."""
    graph = compilation.graph
    finders = [(node, node.operator) for node in graph.nodes if isinstance(node.operator, ExplainsFiles)]
    return {node.name: list(operator.places(items_into(graph, node))) for node, operator in finders}


def receivers(compilation: Compilation) -> Mapping[str, frozenset[str]]:
    """The operators that each operator sends items to."""
    graph = compilation.graph
    found: dict[str, set[str]] = {}
    for node in graph.nodes:
        for sender in graph.senders(node.name):
            found.setdefault(sender, set()).add(node.name)
    return {name: frozenset(names) for name, names in found.items()}


def senders(compilation: Compilation, receiver: str) -> str:
    """The operators that send items to an operator."""
    graph = compilation.graph
    return " and ".join(sorted(graph.senders(receiver)))


def finder_of(compilation: Compilation, receiver: str) -> str:
    """The operator that found what arrived: its sender, unless its receiver divides files instead of reading them."""
    if receiver not in compilation.graph.by_name:
        return receiver
    operator = compilation.graph.by_name[receiver].operator
    reads = isinstance(operator, SplittableOperator) and operator.reads_positions
    return senders(compilation, receiver) if reads else receiver


def owners_of(compilation: Compilation) -> Mapping[str, Collection[str]]:
    """The owners of the files of each operator that discovers files: itself, or those to which it sends."""
    sends, graph = receivers(compilation), compilation.graph
    found: dict[str, Collection[str]] = {}
    for name in places(compilation):
        owners = [name]
        if not isinstance(graph.by_name[name].operator, InputOperator):
            for owner in owners:
                owners += [one for one in sorted(sends.get(owner, ())) if one not in owners]
        found[name] = owners
    return found
