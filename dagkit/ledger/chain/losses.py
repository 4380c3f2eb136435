"""The faults of missing or replaced chains and blocks, each with the folder to restore."""

from dagkit.ledger.chain.log import HEADS, Hint
from dagkit.ledger.format.faults import Fault


def absent(chain: str) -> Fault:
    return Fault("chain-missing", "there is no such chain here", "`dagkit ledger ls PATH` lists the chains", chain)


def lost(chain: str, folder: str, why: str = f"{HEADS}/ records it") -> Fault:
    """A chain that was named but is missing."""
    return Fault(
        code="chain-lost",
        problem=f"the chain is gone: {why}, and {folder} holds no block of it",
        help=f"restore {folder} from a backup; a new chain would read and write everything a second time",
        chain=chain,
    )


def swapped(chain: str, folder: str, wanted: str, found: str) -> Fault:
    """A folder that holds another chain than the one that was named."""
    return Fault(
        code="chain-swapped",
        problem=f"{folder} holds another chain: {found} instead of {wanted}",
        help=f"restore the {folder} of this application: from where it was moved to, or from a backup",
        chain=chain,
    )


def cut_short(chain: str, last: int, seq: int, witness: str) -> Fault:
    """A chain that ends before a block that was committed."""
    return Fault(
        code="head-lost",
        problem=f"the chain ends at block {last}, but {witness} this one: the folder is an old copy, or lost blocks",
        help="restore the chain's folder from a newer backup",
        chain=chain,
        block=seq,
    )


def unlinked(chain: str, seq: int) -> Fault:
    return Fault(
        code="link-broken",
        problem="it is not linked to the block before it" if seq else "the first block is linked to one before it",
        help="the last block was rewritten; restore it from a backup of the folder",
        chain=chain,
        block=seq,
    )


def hole(chain: str, seq: int) -> Fault:
    return Fault(
        code="block-missing",
        problem="the block is missing, but later ones exist",
        help="it was committed and is lost; restore it from a backup of the folder",
        chain=chain,
        block=seq,
    )


def forged_head(chain: str, hint: Hint, found: str) -> Fault:
    return Fault(
        code="head-forged",
        problem=f"{HEADS}/ records the hash {hint.hash}, but it is {found}",
        help="the last block or the head was rewritten; restore the folder from a backup",
        chain=chain,
        block=hint.seq,
    )
