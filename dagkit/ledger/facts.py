"""Facts of our own in a chain: splits, scaling decisions, properties changed while an application runs.

The fabric has no event for them, and it has room: facts are a SetAttachments whose items lie under `dagkit/`. It is a
key block, so each block after it points to it, and the facts of a chain are found from fact to fact.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dagkit.ledger.block import Record
from dagkit.ledger.chain import Chain
from dagkit.ledger.events import AttachmentEmbedded, Attachments, SetAttachments
from dagkit.ledger.hashing import canonical

_FOLDER = "dagkit/"


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that the application decided, under a name such as "scaled"; `value` is plain JSON."""

    name: str
    value: Any


def state(chain: Chain, *facts: Fact) -> Record:
    """The facts hold from here on: they are the chain's next block."""
    items = tuple(
        AttachmentEmbedded(path=f"{_FOLDER}{fact.name}.json", content=canonical(fact.value)) for fact in facts
    )
    return chain.append(SetAttachments(attachments=Attachments(items=items)))


def stated_in(record: Record) -> tuple[Fact, ...]:
    """The facts that a block states."""
    event = record.block.event
    if not isinstance(event, SetAttachments):
        return ()
    return tuple(
        Fact(item.path.removeprefix(_FOLDER).removesuffix(".json"), json.loads(item.content))
        for item in event.attachments.items
        if item.path.startswith(_FOLDER)
    )


def stated(chain: Chain) -> Iterator[tuple[Record, Fact]]:
    """Every fact of the chain, the last one first; two reads for each, however many windows lie between."""
    record = chain.last("SetAttachments")
    while record is not None:
        for fact in stated_in(record):
            yield record, fact
        record = chain.before(record, "SetAttachments")
