"""Recognizes blocks written before the fabric's RFC-014 (specification 0.34.0), which dagkit refuses.

Before it, an event held closed intervals of its input and output, and only if they were not empty: the last offset of
an input or of the output could lie any number of blocks back. So such a block lacks what resuming needs.
"""

from collections.abc import Iterator
from typing import Any

from dagkit.ledger.format.faults import Fault

_KINDS = frozenset({"executequery", "setwatermark"})
"""Kinds of events that RFC-014 renamed or removed; the fabric ignores the case of a kind."""
_FIELDS = frozenset(
    {"inputSlices", "inputCheckpoint", "outputData", "outputCheckpoint", "outputWatermark", "sourceState"}
)
"""Fields of AddData and ExecuteQuery that RFC-014 replaced: no current event has one of them."""


def outdated(document: Any, chain: str | None = None, seq: int | None = None) -> Fault | None:
    """The fault of a record, manifest or bare block written before RFC-014; None for any other document."""
    features = sorted(set(_features(_event_of(document))))
    if not features:
        return None
    return Fault(
        code="version-outdated",
        problem="the block has the Open Data Fabric's form from before RFC-014 (specification 0.34): it has "
        + ", ".join(features),
        help="start in a new folder: the chain lacks the offsets that resuming needs, so no release of dagkit reads it",
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
