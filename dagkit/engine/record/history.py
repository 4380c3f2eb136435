"""The checkpoints of all windows, read from a ledger while the application runs or later."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from dagkit.engine.record.checkpoint import Checkpoint
from dagkit.engine.record.journal import last_checkpoint, stored_at
from dagkit.engine.record.stored_checkpoint import CheckpointReader, own_of
from dagkit.ledger import Chain, DatasetKind, ExecuteTransform, Ledger, Record


@dataclass(frozen=True, slots=True)
class OwnWindow:
    """One committed window, without what its checkpoint carries from window to window."""

    committed: datetime
    checkpoint: Checkpoint
    chain: Chain
    record: Record


@dataclass(frozen=True, slots=True)
class Entry:
    """One committed window."""

    committed: datetime
    checkpoint: Checkpoint
    block: int
    """The number of its block in the application's chain."""


def is_named(source: str, path: str) -> bool:
    """Whether a name in the ledger is that of a file: perhaps with its finder, and a version or an identity.

    The identity of a remote file begins with the name of the file.
    """
    name = source if source.startswith(path) else source.partition(": ")[2]
    if name == path:
        return True
    return name.startswith(f"{path}@") and ("/" not in name[len(path) :] or name.startswith(path, len(path) + 1))


def application_chain(ledger: Ledger) -> Chain | None:
    """The chain of the ledger's application; None before its first launch has created it."""
    chains = (ledger.chain(name) for name in ledger.names())
    return next((chain for chain in chains if chain.kind is DatasetKind.DERIVATIVE), None)


def newest_checkpoint(ledger: Ledger) -> Checkpoint:
    """The checkpoint of the last window; an empty one if there is no window."""
    chain = application_chain(ledger)
    return Checkpoint() if chain is None else last_checkpoint(chain)[0]


def history(ledger: Ledger, first: int = 0) -> Iterator[Entry]:
    """Yield the windows of the ledger's application, oldest first, from the block `first` of its chain on."""
    for name in ledger.names():
        chain = ledger.chain(name)
        if chain.kind is not DatasetKind.DERIVATIVE:
            continue
        reader = CheckpointReader(partial(stored_at, chain))
        for record in chain.records(first):
            if not isinstance(record.block.event, ExecuteTransform):
                continue
            content = chain.checkpoint_at(record)
            if content is not None:
                whole = reader.whole(json.loads(content), record.seq)
                yield Entry(record.block.system_time, Checkpoint.model_validate(whole), record.seq)


def own_windows(ledger: Ledger, *needles: bytes) -> Iterator[OwnWindow]:
    """Yield the windows whose stored checkpoints contain any of these bytes, oldest first."""
    chain = application_chain(ledger)
    if chain is None:
        return
    for record in chain.records():
        content = chain.checkpoint_at(record) if isinstance(record.block.event, ExecuteTransform) else None
        if content is not None and any(needle in content for needle in needles):
            own = Checkpoint.model_validate(own_of(json.loads(content)))
            yield OwnWindow(record.block.system_time, own, chain, record)
