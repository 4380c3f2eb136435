"""Check that every chain that was ever named exists: compare what chains declare, consumed and promised with storage.

Opening a chain compares it with its noted head. This module checks what only the other chains record.
It costs a constant number of reads for each input, independent of the lengths of the chains.
"""

from collections.abc import Iterable, Iterator, Mapping

from dagkit.ledger.application_ledger import Ledger, folder_of
from dagkit.ledger.chain.chain import Chain
from dagkit.ledger.chain.losses import cut_short, lost, swapped
from dagkit.ledger.format.block import Pointer
from dagkit.ledger.format.events import DatasetKind, SetTransform
from dagkit.ledger.format.faults import ChainBroken, ChainNotFound, Fault, LedgerError, StoreError


def refuse_missing(ledger: Ledger) -> None:
    """Raise an error of the kind that `missing` finds first, with the faults of all errors that it finds."""
    errors = list(missing(ledger))
    if errors:
        raise type(errors[0])(*dict.fromkeys(fault for error in errors for fault in error.faults))


def missing(ledger: Ledger) -> Iterator[LedgerError]:
    """An error for every chain that is named but missing, swapped or too short, or that cannot be opened."""
    opened: list[Chain] = []
    faulty = False
    for name in ledger.names():
        try:
            opened.append(ledger.chain(name))
        except (ChainNotFound, StoreError):
            # `names` lists no folder without a chain, so only a race leads to ChainNotFound.
            raise
        except LedgerError as error:
            faulty = True
            yield error
    readers = [chain for chain in opened if chain.kind is DatasetKind.DERIVATIVE]
    for chain in readers:
        try:
            yield from _missing_of(ledger, chain)
        # A storage that fails shows no loss, and the other chains are in it, too.
        except StoreError:
            raise
        except LedgerError as error:
            yield error
    if not readers and not faulty:
        yield from _unread(opened)


def missing_inputs(chain: Chain, declared: SetTransform, ledger: Ledger) -> Iterator[LedgerError]:
    """An error for each input declared by a transform of the chain that is missing or is another chain."""
    for part in declared.inputs:
        name = part.alias or part.dataset_ref
        try:
            found = ledger.chain(name)
        except ChainNotFound:
            yield ChainBroken(lost(name, folder_of(name), f"{chain.name} declares it as an input"))
        except StoreError:
            raise
        except LedgerError as error:
            yield error
        else:
            if found.dataset_id != part.dataset_ref:
                yield ChainBroken(swapped(name, folder_of(name), part.dataset_ref, found.dataset_id))


def _missing_of(ledger: Ledger, chain: Chain) -> Iterator[LedgerError]:
    declared = chain.last("SetTransform")
    if declared is None or not isinstance(event := declared.block.event, SetTransform):
        return  # the driver that created it was killed after the first block
    errors = list(missing_inputs(chain, event, ledger))
    yield from errors
    if not errors:
        named = _named_blocks(chain)
        for part in event.inputs:
            yield from _missing_blocks(ledger.chain(str(part.alias)), named.get(part.dataset_ref, {}))


def _named_blocks(chain: Chain) -> Mapping[str, Mapping[Pointer, str]]:
    """The input blocks that the chain consumed last or will consume next, by input, each with its evidence."""
    named: dict[str, dict[Pointer, str]] = {}
    standing = chain.standing
    for dataset_id, at in standing.consumed.items():
        if at.seq is not None and at.block_hash is not None:
            named[dataset_id] = {Pointer(seq=at.seq, hash=at.block_hash): f"{chain.name} has consumed"}
    promised = chain.promised()
    for planned in () if promised is None else promised.inputs:
        last = planned.input.last_block_hash
        if planned.seq is not None and last is not None:
            blocks = named.setdefault(planned.input.dataset_id, {})
            blocks.setdefault(Pointer(seq=planned.seq, hash=last), f"a planned window of {chain.name} consumes")
    return named


def _missing_blocks(chain: Chain, named: Mapping[Pointer, str]) -> Iterator[LedgerError]:
    for pointer, witness in named.items():
        if pointer.seq > chain.head.seq:
            # A running driver may have appended since the chain was opened.
            chain.refresh()
        if pointer.seq > chain.head.seq:
            yield ChainBroken(cut_short(chain.name, chain.head.seq, pointer.seq, witness))
        # Opening has read these two blocks.
        elif pointer not in (chain.head, chain.standing.data_at):
            chain.log.at(pointer)


def _unread(roots: Iterable[Chain]) -> Iterator[LedgerError]:
    """An error for each root with findings, if no application's chain is left."""
    # A launch creates the application's chain before it appends findings. So that chain was lost.
    for root in roots:
        if root.standing.data_at is not None:
            yield ChainBroken(
                Fault(
                    code="chain-lost",
                    problem="it has findings, but the application's chain, which records their windows, is missing",
                    help="restore the application's folder below ledger/chains from a backup; a new chain would write "
                    "all output a second time",
                    chain=root.name,
                )
            )
