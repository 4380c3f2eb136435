"""What a rule judges: a block that wants to be the next, and all that may be asked about its chain."""

from dataclasses import dataclass
from typing import Protocol

from dagkit.ledger.format.block import MetadataBlock, Pointer
from dagkit.ledger.format.events import Event
from dagkit.ledger.format.faults import Fault, LedgerCode
from dagkit.ledger.rules.standing import Standing


@dataclass(frozen=True, slots=True)
class InputBlock:
    """A block of an input chain, as the rules need to know it."""

    seq: int
    hash: str
    offset: int | None
    """The last offset of the input's data at that block."""


class Witness(Protocol):
    """Who answers what the standing does not hold; each answer costs at most one block read."""

    def event_at(self, pointer: Pointer) -> Event:
        """The event of an earlier block of this chain."""
        ...

    def has_block(self, seq: int, block_hash: str) -> bool:
        """Whether the chain holds this very block at this number."""
        ...

    def input_block(self, dataset_id: str, block_hash: str) -> InputBlock | None:
        """The block of an input chain, or None if that chain does not hold it."""
        ...

    def knows_input(self, dataset_id: str) -> bool:
        """Whether the input chain can be asked at all: one kept elsewhere cannot."""
        ...

    def has_data(self, name: str) -> bool: ...

    def has_checkpoint(self, name: str) -> bool: ...


@dataclass(frozen=True, slots=True)
class Proposal:
    """A block that wants to follow where the chain stands."""

    block: MetadataBlock
    standing: Standing
    witness: Witness


def fault(at: Proposal, code: LedgerCode, problem: str, help: str) -> Fault:  # noqa: A002 - the field's name
    """A fault of the proposed block."""
    return Fault(code=code, problem=problem, help=help, block=at.block.sequence_number)
