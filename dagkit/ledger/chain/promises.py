"""Stores windows that are planned and not yet appended, so that after a crash they run again with the same blocks.

A promise holds its own hash. A damaged promise stops the driver, because its window may have run: if another plan ran
under the same number, a sink could drop its output as already written.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dagkit.ledger.chain.log import Log
from dagkit.ledger.chain.transaction import PROMISE_FORMAT, Promise, Transaction
from dagkit.ledger.format.block import parse, unwritable
from dagkit.ledger.format.faults import ChainBroken, Fault, SequenceTaken
from dagkit.ledger.format.hashing import canonical, hash_of, read_json
from dagkit.ledger.stores.store import KeyMissing, KeyTaken


def key(log: Log, transaction: Transaction) -> str:
    """The key of the promise of the window that follows this data block."""
    after = "start" if transaction.after is None else f"{transaction.after.seq:020d}"
    return f"{log.folder}/planned/{after}.json"


def read(log: Log, fresh: Transaction) -> Transaction | None:
    """The promised transaction that replaces a fresh one, if there is one."""
    place = key(log, fresh)
    try:
        content = log.store.get(place)
    except KeyMissing:
        return None
    promise = _unsealed(content, log.chain, place)
    ids = [planned.input.dataset_id for planned in promise.inputs]
    if promise.after != fresh.after or ids != [planned.input.dataset_id for planned in fresh.inputs]:
        return None  # the transform was set again, or the promise belongs to another history
    return replace(fresh, inputs=promise.inputs, notes=promise.notes, promised=True)


def keep(log: Log, transaction: Transaction, notes: Mapping[str, Any]) -> Transaction:
    """Store the promise; raise `SequenceTaken` if a different one is stored."""
    place = key(log, transaction)
    try:
        # Before validation, which would silently repair half a character in a name.
        canonical(dict(notes)).encode()
        content = _sealed(Promise(after=transaction.after, inputs=transaction.inputs, notes=notes))
    except ValueError as error:
        raise unwritable("the plan of a window", error) from error
    try:
        log.store.create(place, content)
    except KeyTaken:
        promised = read(log, transaction)
        if promised is None:  # left over from another history
            log.store.delete([place])
            return keep(log, transaction, notes)
        if (promised.inputs, promised.notes) != (transaction.inputs, dict(notes)):
            problem, help_ = "another plan of this window was promised before", "run that plan: `plan_next` returns it"
            raise SequenceTaken(Fault("promise-taken", problem, help_, log.chain)) from None
    return replace(transaction, notes=notes, promised=True)


def _sealed(promise: Promise) -> bytes:
    fields = promise.as_json()
    return canonical({**fields, "check": _check(fields)}).encode() + b"\n"


def _unsealed(content: bytes, chain: str, place: str) -> Promise:
    """Read a promise; raise `ChainBroken` if it is damaged."""
    try:
        document = read_json(content)
        check = document.pop("check", None)
        # A later format may have another check. `parse` refuses it, and names the format.
        is_whole = document.get("format", PROMISE_FORMAT) != PROMISE_FORMAT or check == _check(document)
    except (ValueError, AttributeError, TypeError) as error:
        raise ChainBroken(_damaged(chain, place)) from error
    if not is_whole:
        raise ChainBroken(_damaged(chain, place))
    promise = parse(Promise, document, PROMISE_FORMAT, chain)
    # As for blocks: one value has many texts, and only one of them was written.
    if _sealed(promise) != content:
        raise ChainBroken(_damaged(chain, place))
    return promise


def _check(fields: Mapping[str, Any]) -> str:
    return hash_of(canonical(fields).encode())


def _damaged(chain: str, place: str) -> Fault:
    return Fault(
        code="promise-damaged",
        problem=f"the planned window {place} is not what was planned",
        help="restore the file from a backup; or delete it: the window is then planned again. It was not committed, so "
        "sinks that show only committed output lose nothing",
        chain=chain,
    )
