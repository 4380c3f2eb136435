"""Laws of restrictions: a restriction can be saved, and has a tracker."""

from collections.abc import Iterator

from dagkit.api.adapters import Typed, adapter_of
from dagkit.api.work import SplittableOperator
from dagkit.errors import Diagnostic
from dagkit.graph import Graph
from dagkit.ranges import ByteKeyRange, OffsetRange
from dagkit.schema import spelled


def every_restriction_can_be_written(graph: Graph) -> Iterator[Diagnostic]:
    """The ledger saves unfinished work as JSON, so the type of a restriction needs a JSON form."""
    for node in graph.nodes:
        if not isinstance(node.operator, SplittableOperator):
            continue
        kind, declared = type(node.operator), type(node.operator).restriction_type
        adapter = adapter_of(declared)
        if not is_range(declared) and isinstance(adapter, Typed) and not adapter.has_schema:
            yield Diagnostic(
                "restriction-unwritable",
                f"{kind.__name__} of {node.name} works on restrictions of type {spelled(declared)}, which has no JSON "
                "form, so the ledger could not save unfinished work",
                f"make {spelled(declared)} a dataclass or a pydantic model of values that have one",
                node.where,
            )


def every_restriction_has_a_tracker(graph: Graph) -> Iterator[Diagnostic]:
    """Only the author of a restriction type knows how to claim and split its values."""
    for node in graph.nodes:
        if not isinstance(node.operator, SplittableOperator):
            continue
        kind, declared = type(node.operator), type(node.operator).restriction_type
        if not is_range(declared) and kind.tracker is SplittableOperator.tracker:
            yield Diagnostic(
                "restriction-untracked",
                f"{kind.__name__} of {node.name} works on restrictions of type {spelled(declared)}, but has no tracker "
                "for them",
                f"write `def tracker(self, element, restriction)` in {kind.__name__}; it returns a RestrictionTracker",
                node.where,
            )


def is_range(restriction_type: object) -> bool:
    """Whether the type is a range of offsets or byte keys, which have a JSON form and a tracker."""
    return restriction_type in (OffsetRange, ByteKeyRange)
