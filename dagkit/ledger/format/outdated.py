"""Blocks as the fabric's specification had them before RFC-014 (version 0.34.0), which are refused by name.

Until then an event said what it read and wrote as closed intervals, and only where there was something: the last offset
of an input or of the output could lie any number of blocks back. What resuming needs is not in such a block.
"""

from collections.abc import Iterator
from typing import Any

from dagkit.ledger.format.faults import Fault

_KINDS = frozenset({"executequery", "setwatermark"})
"""Kinds of events that RFC-014 renamed and removed; the fabric reads a kind in whatever case."""
_FIELDS = frozenset(
    {"inputSlices", "inputCheckpoint", "outputData", "outputCheckpoint", "outputWatermark", "sourceState"}
)
"""Fields of AddData and ExecuteQuery that RFC-014 replaced: none of them is a field of an event today."""


def outdated(document: Any, chain: str | None = None, seq: int | None = None) -> Fault | None:
    """The fault of a record, a manifest or a bare block that is written as before RFC-014; None of any other."""
    features = sorted(set(_features(_event_of(document))))
    if not features:
        return None
    return Fault(
        code="version-outdated",
        problem="the block is written as the Open Data Fabric had it before RFC-014 (specification 0.34): it has "
        + ", ".join(features),
        help="begin in a new folder: the chain does not carry the offsets that resuming needs, and no dagkit reads it",
        chain=chain,
        block=seq,
    )


def _event_of(document: Any) -> Any:
    for name in ("block", "content"):
        if isinstance(document, dict) and name in document:
            document = document[name]
    return document.get("event") if isinstance(document, dict) else None


def _features(event: Any) -> Iterator[str]:
    if not isinstance(event, dict):
        return
    kind = event.get("kind")
    if isinstance(kind, str) and kind.lower() in _KINDS:
        yield kind
    yield from _FIELDS & event.keys()
