"""What is missing of a chain, in words: what was named and is not there, and which folder brings it back."""

from dagkit.ledger.chain.log import HEADS, Hint
from dagkit.ledger.format.faults import Fault


def absent(chain: str) -> Fault:
    return Fault("chain-missing", "there is no such chain here", "`dagkit ledger ls PATH` lists what there is", chain)


def lost(chain: str, folder: str, why: str = f"{HEADS}/ remembers it") -> Fault:
    """A chain that was named once and is not there any more."""
    return Fault(
        code="chain-lost",
        problem=f"the chain is gone: {why}, and {folder} holds no block of it",
        help=f"bring {folder} back from a copy; a new chain would read and write everything a second time",
        chain=chain,
    )


def swapped(chain: str, folder: str, wanted: str, found: str) -> Fault:
    """A folder in which another chain lies than the one that was named."""
    return Fault(
        code="chain-swapped",
        problem=f"{folder} holds another chain: {found} instead of {wanted}",
        help=f"bring back the {folder} of this application: from where it was moved to, or from a copy",
        chain=chain,
    )


def outdated(chain: str, last: int, seq: int, witness: str) -> Fault:
    """A chain that ends before a block that is known to have been committed."""
    return Fault(
        code="head-lost",
        problem=f"the chain ends at block {last}, and {witness} this one: the folder is an old copy, or lost blocks",
        help="bring the chain's folder back from a newer copy",
        chain=chain,
        block=seq,
    )


def unlinked(chain: str, seq: int) -> Fault:
    return Fault(
        code="link-broken",
        problem="it is not linked to the block before it" if seq else "the first block is linked to one before it",
        help="the last block was rewritten; bring it back from a copy of the folder",
        chain=chain,
        block=seq,
    )


def hole(chain: str, seq: int) -> Fault:
    return Fault(
        code="block-missing",
        problem="the block is not there, and later ones are",
        help="it was committed and is lost; bring it back from a copy of the folder",
        chain=chain,
        block=seq,
    )


def forged_head(chain: str, hint: Hint, found: str) -> Fault:
    return Fault(
        code="head-forged",
        problem=f"{HEADS}/ says that it is {hint.hash}, and it is {found}",
        help="the last block or the head was rewritten; bring the folder back from a copy",
        chain=chain,
        block=hint.seq,
    )
