"""The input of a rule: a proposed block, and the facts about its chain."""

from dataclasses import dataclass
from typing import Protocol

from dagkit.ledger.format.block import MetadataBlock, Pointer
from dagkit.ledger.format.events import Event
from dagkit.ledger.format.faults import Fault, LedgerCode
from dagkit.ledger.rules.standing import Standing


@dataclass(frozen=True, slots=True)
class InputBlock:
    """The facts about a block of an input chain that the rules need."""

    seq: int
    hash: str
    offset: int | None
    """The last offset of the input's data at that block."""


class Witness(Protocol):
    """Answers questions beyond the standing; each answer costs at most one block read."""

    def event_at(self, pointer: Pointer) -> Event:
        """The event of an earlier block of this chain."""
        ...

    def has_block(self, seq: int, block_hash: str) -> bool:
        """Whether the chain holds a block of this hash at this number."""
        ...

    def input_block(self, dataset_id: str, block_hash: str) -> InputBlock | None:
        """The block of an input chain; None if that chain does not hold it."""
        ...

    def knows_input(self, dataset_id: str) -> bool:
        """Whether the input chain can be read here; it may be stored elsewhere."""
        ...

    def has_data(self, name: str) -> bool: ...

    def has_checkpoint(self, name: str) -> bool: ...


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposed next block, with the standing of its chain."""

    block: MetadataBlock
    standing: Standing
    witness: Witness


def fault(at: Proposal, code: LedgerCode, problem: str, help: str) -> Fault:  # noqa: A002 - the field's name
    """A fault of the proposed block."""
    return Fault(code=code, problem=problem, help=help, block=at.block.sequence_number)
