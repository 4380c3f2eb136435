"""Laws of restrictions: what part of the work on an element is can be kept, and something guards it."""

from collections.abc import Iterator

from dagkit.api.state import Typed, adapter_of
from dagkit.api.work import SplittableOperator
from dagkit.errors import Diagnostic
from dagkit.graph import Graph
from dagkit.ranges import ByteKeyRange, OffsetRange
from dagkit.schema import spelled


def every_restriction_can_be_written(graph: Graph) -> Iterator[Diagnostic]:
    """What a window leaves waits in the ledger, as JSON: a restriction without a form could not wait."""
    for node in graph.nodes:
        if not isinstance(node.operator, SplittableOperator):
            continue
        kind, declared = type(node.operator), type(node.operator).restriction_type
        adapter = adapter_of(declared)
        if not is_range(declared) and isinstance(adapter, Typed) and not adapter.has_schema:
            yield Diagnostic(
                "restriction-unwritable",
                f"{kind.__name__} of {node.name} works on restrictions of type {spelled(declared)}, which has no form "
                "as JSON: what a window leaves of them could not be kept",
                f"make {spelled(declared)} a dataclass or a pydantic model of values that have one",
                node.where,
            )


def every_restriction_has_a_tracker(graph: Graph) -> Iterator[Diagnostic]:
    """Only its author knows what may be claimed of a restriction of his own, and where it is split."""
    for node in graph.nodes:
        if not isinstance(node.operator, SplittableOperator):
            continue
        kind, declared = type(node.operator), type(node.operator).restriction_type
        if not is_range(declared) and kind.tracker is SplittableOperator.tracker:
            yield Diagnostic(
                "restriction-untracked",
                f"{kind.__name__} of {node.name} works on restrictions of type {spelled(declared)}, and no tracker "
                "guards them",
                f"write `def tracker(self, element, restriction)` in {kind.__name__}, which gives a RestrictionTracker",
                node.where,
            )


def is_range(restriction_type: object) -> bool:
    """Whether it is a range that is written and tracked without a word of its author."""
    return restriction_type in (OffsetRange, ByteKeyRange)
