"""Windows that were planned and not yet appended, so that after a crash they run again with the same blocks.

A promise says its own hash. One that is damaged stops the driver and is not passed over: what it named may have run,
and of another plan under the same number a sink could then drop what it takes for done.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dagkit.ledger.chain.transaction import PROMISE_FORMAT, Promise, Transaction
from dagkit.ledger.format.block import parse, unwritable
from dagkit.ledger.format.faults import ChainBroken, Fault, SequenceTaken
from dagkit.ledger.format.hashing import canonical, hash_of, read_json
from dagkit.ledger.stores.store import KeyMissing, KeyTaken, Store


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
    promise = _unsealed(content, chain, key(folder, fresh))
    ids = [planned.input.dataset_id for planned in promise.inputs]
    if promise.after != fresh.after or ids != [planned.input.dataset_id for planned in fresh.inputs]:
        return None  # the transform was set anew, or the promise is of another history
    return replace(fresh, inputs=promise.inputs, notes=promise.notes, promised=True)


def keep(store: Store, folder: str, chain: str, transaction: Transaction, notes: Mapping[str, Any]) -> Transaction:
    """The promise lies on disk; one of somebody else's stands, and says so."""
    place = key(folder, transaction)
    try:
        canonical(dict(notes)).encode()  # as a value it is made to fit: half a character in a name would go unnoticed
        content = _sealed(Promise(after=transaction.after, inputs=transaction.inputs, notes=notes))
    except ValueError as error:
        raise unwritable("the plan of a window", error) from error
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


def _sealed(promise: Promise) -> bytes:
    said = promise.as_json()
    return canonical({**said, "check": _check(said)}).encode() + b"\n"


def _unsealed(content: bytes, chain: str, place: str) -> Promise:
    """The promise, which is what was promised, or the fault is named."""
    try:
        document = read_json(content)
        check = document.pop("check", None)
        is_whole = document.get("format", PROMISE_FORMAT) != PROMISE_FORMAT or check == _check(document)
    except (ValueError, AttributeError, TypeError) as error:
        raise ChainBroken(_damaged(chain, place)) from error
    if not is_whole:
        raise ChainBroken(_damaged(chain, place))
    promise = parse(Promise, document, PROMISE_FORMAT, chain)
    if _sealed(promise) != content:
        raise ChainBroken(_damaged(chain, place))
    return promise


def _check(said: Mapping[str, Any]) -> str:
    return hash_of(canonical(said).encode())


def _damaged(chain: str, place: str) -> Fault:
    return Fault(
        code="promise-damaged",
        problem=f"the planned window {place} is not what was planned",
        help="bring the file back from a copy; or delete it, and the window is planned anew: nothing of it was "
        "committed, and sinks that show only what is committed lose nothing",
        chain=chain,
    )
