"""Copy the beginning of a chain into another folder. The copy is byte for byte the chain as it was at that block."""

from dagkit.ledger.chain.chain import Chain
from dagkit.ledger.chain.contents import Objects, contents_named
from dagkit.ledger.chain.log import Log
from dagkit.ledger.format.block import unseal
from dagkit.ledger.stores import Store


def copy_chain(chain: Chain, store: Store, last: int) -> None:
    """Copy the blocks of a chain up to `last`, and the contents that they name, into the ledger in `store`.

    The promise of an uncommitted window is not copied.
    """
    copy, objects = Log(store, chain.log.folder, chain.name), Objects(store, chain.log.folder, chain.name)
    for seq, line in chain.log.lines(0, last):
        record = unseal(line, chain.name, seq)
        for shelf, name in contents_named(record.block.event):
            if name not in (record.objects or {}):
                objects.put(shelf, chain.objects.get(shelf, name, record))
        copy.create(seq, line)
    copy.set_hint(copy.record(last).pointer, chain.dataset_id)
