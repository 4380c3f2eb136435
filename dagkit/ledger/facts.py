"""Facts of our own in a chain: splits, scaling decisions, properties changed while an application runs.

The fabric has no event for them, and it has room: facts are a SetAttachments whose items lie under `dagkit/`. It is a
key block, so each block after it points to it, and the facts of a chain are found from fact to fact.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dagkit.ledger.chain.chain import Chain
from dagkit.ledger.format.block import Record, unwritable
from dagkit.ledger.format.events import AttachmentEmbedded, Attachments, SetAttachments
from dagkit.ledger.format.faults import ChainBroken, Fault
from dagkit.ledger.format.hashing import canonical, read_json

_FOLDER = "dagkit/"


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that the application decided, under a name such as "scaled"; `value` is plain JSON."""

    name: str
    value: Any


def state(chain: Chain, *facts: Fact) -> Record:
    """The facts hold from here on: they are the chain's next block."""
    items = tuple(AttachmentEmbedded(path=f"{_FOLDER}{fact.name}.json", content=_text(fact)) for fact in facts)
    return chain.append(SetAttachments(attachments=Attachments(items=items)))


def _text(fact: Fact) -> str:
    try:
        return canonical(fact.value)
    except ValueError as error:
        raise unwritable(f"the fact {fact.name!r}", error) from error


def stated_in(record: Record) -> tuple[Fact, ...]:
    """The facts that a block states, or what is wrong with one that somebody else wrote."""
    event = record.block.event
    if not isinstance(event, SetAttachments):
        return ()
    return tuple(
        Fact(item.path.removeprefix(_FOLDER).removesuffix(".json"), _value(record, item))
        for item in event.attachments.items
        if item.path.startswith(_FOLDER)
    )


def _value(record: Record, item: AttachmentEmbedded) -> Any:
    try:
        return read_json(item.content)
    except ValueError as error:
        problem = f"its attachment {item.path!r} is no fact: {error}"
        fault = Fault("manifest-unreadable", problem, "state facts with dagkit.ledger.facts only", block=record.seq)
        raise ChainBroken(fault) from error


def stated(chain: Chain) -> Iterator[tuple[Record, Fact]]:
    """Every fact of the chain, the last one first; two reads for each, however many windows lie between."""
    record = chain.last("SetAttachments")
    while record is not None:
        for fact in stated_in(record):
            yield record, fact
        record = chain.before(record, "SetAttachments")
