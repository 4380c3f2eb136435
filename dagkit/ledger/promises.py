"""Windows that were planned and not yet appended, so that after a crash they run again with the same blocks."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dagkit.ledger.block import parse
from dagkit.ledger.faults import ChainBroken, Fault, SequenceTaken
from dagkit.ledger.hashing import canonical
from dagkit.ledger.stores.store import KeyMissing, KeyTaken, Store
from dagkit.ledger.transaction import PROMISE_FORMAT, Promise, Transaction


def key(folder: str, transaction: Transaction) -> str:
    """Where the promise of the window lies that follows this data block."""
    after = "start" if transaction.after is None else f"{transaction.after.seq:020d}"
    return f"{folder}/planned/{after}.json"


def read(store: Store, folder: str, chain: str, fresh: Transaction) -> Transaction | None:
    """The promised transaction that takes the place of a fresh one, if there is one."""
    try:
        content = store.get(key(folder, fresh))
    except KeyMissing:
        return None
    try:
        document = json.loads(content)
    except ValueError as error:
        raise ChainBroken(_unreadable(chain, key(folder, fresh))) from error
    promise = parse(Promise, document, PROMISE_FORMAT, chain)
    ids = [planned.input.dataset_id for planned in promise.inputs]
    if promise.after != fresh.after or ids != [planned.input.dataset_id for planned in fresh.inputs]:
        return None  # the transform was set anew, or the promise is of another history
    return replace(fresh, inputs=promise.inputs, notes=promise.notes, promised=True)


def keep(store: Store, folder: str, chain: str, transaction: Transaction, notes: Mapping[str, Any]) -> Transaction:
    """The promise lies on disk; one of somebody else's stands, and says so."""
    promise = Promise(after=transaction.after, inputs=transaction.inputs, notes=notes)
    content = canonical(promise.as_json()).encode() + b"\n"
    place = key(folder, transaction)
    try:
        store.create(place, content)
    except KeyTaken:
        kept = read(store, folder, chain, transaction)
        if kept is None:  # left over from another history
            store.delete([place])
            return keep(store, folder, chain, transaction, notes)
        if (kept.inputs, kept.notes) != (transaction.inputs, dict(notes)):
            raise SequenceTaken(_taken(chain)) from None
    return replace(transaction, notes=notes, promised=True)


def _taken(chain: str) -> Fault:
    return Fault(
        code="promise-taken",
        problem="another plan of this window was promised before",
        help="run the promised one: `plan_next` gives it back",
        chain=chain,
    )


def _unreadable(chain: str, place: str) -> Fault:
    return Fault(
        code="manifest-unreadable",
        problem=f"the planned window {place} is not JSON",
        help="nothing of it was committed: delete the file, and the window is planned anew",
        chain=chain,
    )
