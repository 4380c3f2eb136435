"""What a crash leaves behind: contents that no block names, files in the middle of a move, promises kept long ago."""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from dagkit.clock import Clock, SystemClock
from dagkit.ledger.block import Record, unseal
from dagkit.ledger.chain import Chain
from dagkit.ledger.events import AddData, ExecuteTransform
from dagkit.ledger.faults import ChainBroken, Fault
from dagkit.ledger.ledger import Ledger, folder_of
from dagkit.ledger.log import Log
from dagkit.ledger.objects import Shelf
from dagkit.ledger.segment import SEGMENT_SIZE
from dagkit.ledger.stores.local import LocalStore

GRACE = timedelta(hours=1)
"""What is younger may belong to an append that is under way."""


@dataclass(frozen=True, slots=True)
class Swept:
    """One thing that was, or would be, taken away."""

    chain: str
    what: str
    key: str


def sweep(
    ledger: Ledger, *, grace: timedelta = GRACE, pretend: bool = False, clock: Clock | None = None
) -> list[Swept]:
    """Nothing that no block names is left, unless it is young; no committed block or content is ever touched."""
    limit = (clock or SystemClock()).now() - grace
    swept = []
    for name in ledger.names():
        chain = ledger.chain(name)
        news = _News(chain)
        for found in _orphans(ledger, chain):
            if found.what in ("slice", "checkpoint") and found.key in news.named():
                continue
            written = ledger.store.modified(found.key)
            if written is not None and written <= limit:
                swept.append(found)
                if not pretend:
                    ledger.store.delete([found.key])
        if not pretend:
            _pack(chain)
    return swept


def _orphans(ledger: Ledger, chain: Chain) -> Iterator[Swept]:
    folder = folder_of(chain.name)
    yield from _contents(chain)
    kept = "start.json" if chain.standing.data_at is None else f"{chain.standing.data_at.seq:020d}.json"
    for promise in ledger.store.names(f"{folder}/planned"):
        if promise != kept:
            yield Swept(chain.name, "promise", f"{folder}/planned/{promise}")
    if isinstance(ledger.store, LocalStore):
        for inner in ("blocks", "segments", "data", "checkpoints", "planned", "refs"):
            for name in ledger.store.temporaries(f"{folder}/{inner}"):
                yield Swept(chain.name, "temporary", f"{folder}/{inner}/{name}")


def _contents(chain: Chain) -> Iterator[Swept]:
    shelves: tuple[Shelf, ...] = ("data", "checkpoints")
    kept = {shelf: set(chain.objects.names(shelf)) for shelf in shelves}
    if not any(kept.values()):
        return
    for record in chain.records():
        for shelf, name in _named(record):
            kept[shelf].discard(name)
    for shelf in shelves:
        for name in sorted(kept[shelf]):
            yield Swept(chain.name, "slice" if shelf == "data" else "checkpoint", chain.objects.key(shelf, name))


def _named(record: Record) -> Iterator[tuple[Shelf, str]]:
    event = record.block.event
    if isinstance(event, AddData | ExecuteTransform):
        if event.new_data is not None:
            yield "data", event.new_data.physical_hash
        if event.new_checkpoint is not None:
            yield "checkpoints", event.new_checkpoint.physical_hash


class _News:
    """What blocks name that a running driver has appended since the chain was opened."""

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._next = chain.head.seq + 1
        self._keys: set[str] = set()

    def named(self) -> set[str]:
        """The chain itself is not opened again: it may be that of a driver who was overtaken and must stay so."""
        while self._chain.log.has(self._next):
            for shelf, name in _named(self._chain.log.record(self._next)):
                self._keys.add(self._chain.objects.key(shelf, name))
            self._next += 1
        return self._keys


def _pack(chain: Chain) -> None:
    """Runs that a crash left unpacked, and files of blocks that a segment holds."""
    starts = {seq - seq % SEGMENT_SIZE for seq in chain.log.loose()}
    for start in sorted(starts):
        if start + SEGMENT_SIZE <= chain.head.seq:
            chain.log.pack(start)


def set_torn_aside(ledger: Ledger, name: str) -> str | None:
    """The last record, if it was torn and never acknowledged, lies under `torn/`; the chain can be opened again.

    To be done while no driver runs. A block that refs/head names was acknowledged, and is never set aside.
    """
    log = Log(ledger.store, folder_of(name), name)
    last, hint = log.find().last, log.hint()
    if last is None:
        return None
    line = log.line(last)
    try:
        unseal(line, name, last)
    except ChainBroken as error:
        if error.code != "block-torn":
            raise
        if hint is not None and hint.seq >= last:
            raise ChainBroken(_acknowledged(name, last)) from error
        aside = f"{log.folder}/torn/{last:020d}-{secrets.token_hex(4)}"
        ledger.store.create(aside, line)
        ledger.store.delete([log.block_key(last)])
        return aside
    return None


def _acknowledged(chain: str, seq: int) -> Fault:
    return Fault(
        code="block-torn",
        problem="its record is torn, and refs/head says that it was committed",
        help="bring the file back from a copy of the folder",
        chain=chain,
        block=seq,
    )
