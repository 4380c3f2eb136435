"""Heads that are kept outside the ledger: whether each chain still holds the block that was its last one.

A chain whose blocks were all rewritten is valid in itself. Only a hash that was kept elsewhere shows that.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote

from pydantic import ValidationError

from dagkit.ledger.application_ledger import Ledger, folder_of
from dagkit.ledger.chain.losses import cut_short, lost
from dagkit.ledger.format.block import Pointer
from dagkit.ledger.format.faults import ChainNotFound, Fault, LedgerError, StoreError


@dataclass(frozen=True, slots=True)
class KeptHead:
    """The last block of a chain at some time."""

    chain: str
    block: Pointer

    def __str__(self) -> str:
        """One line: the hash, the number, and the percent-encoded name of the chain."""
        return f"{self.block.hash} {self.block.seq} {quote(self.chain, safe='')}"


def heads_of(ledger: Ledger) -> Sequence[KeptHead]:
    """The last block of each chain, now."""
    return [KeptHead(name, ledger.chain(name).head) for name in ledger.names()]


def heads_in(text: str) -> Iterator[KeptHead]:
    """The heads in a text of lines, as `str` writes them; raise ValueError for any other line."""
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            block_hash, seq, chain = line.split()
            yield KeptHead(unquote(chain, errors="strict"), Pointer(seq=int(seq), hash=block_hash))
        except (ValueError, ValidationError):
            raise ValueError(f"line {number} is not a hash, a block number and a chain") from None


def differing(ledger: Ledger, kept: Iterable[KeptHead]) -> Iterator[Fault]:
    """A fault for each kept head that its chain does not hold."""
    for head in kept:
        try:
            chain = ledger.chain(head.chain)
            if head.block.seq > chain.head.seq:
                yield cut_short(head.chain, chain.head.seq, head.block.seq, "a kept head records")
            elif (found := chain.read(head.block.seq).hash) != head.block.hash:
                yield _rewritten(head, found)
        except ChainNotFound:
            yield lost(head.chain, folder_of(head.chain), "a kept head names it")
        except StoreError:
            raise
        except LedgerError as error:
            yield from error.faults


def _rewritten(head: KeptHead, found: str) -> Fault:
    return Fault(
        code="head-differs",
        problem=f"the kept head has the hash {head.block.hash}, but the block has {found}",
        help="this block or an earlier one was rewritten, or the head is of another application; restore from a backup",
        chain=head.chain,
        block=head.block.seq,
    )
