"""What a crash leaves behind: contents that no block names, files in the middle of a move, promises kept long ago."""

import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from dagkit.clock import Clock, SystemClock
from dagkit.ledger.application_ledger import Ledger, folder_of
from dagkit.ledger.chain.chain import Chain
from dagkit.ledger.chain.contents import Shelf
from dagkit.ledger.chain.log import Log
from dagkit.ledger.format.block import Record, unseal
from dagkit.ledger.format.events import AddData, ExecuteTransform, Seed
from dagkit.ledger.format.faults import ChainBroken, Fault, LedgerError, StoreError
from dagkit.ledger.format.segment import SEGMENT_SIZE
from dagkit.ledger.stores.local import LocalStore

GRACE = timedelta(hours=1)
"""What is younger may belong to an append that is under way."""
WRITING = timedelta(minutes=10)
"""A temporary file that is younger is being written, whatever grace was asked for: without it the append fails."""


@dataclass(frozen=True, slots=True)
class Swept:
    """One thing that was, or would be, taken away."""

    chain: str
    what: str
    key: str


@dataclass(frozen=True, slots=True)
class Sweep:
    """What was taken away, and what stood in the way."""

    swept: tuple[Swept, ...] = ()
    faults: tuple[Fault, ...] = ()
    """Of chains that were left as they are, for of a broken chain nobody knows what it names."""


def sweep(ledger: Ledger, *, grace: timedelta = GRACE, pretend: bool = False, clock: Clock | None = None) -> Sweep:
    """Nothing that no block names is left, unless it is young; no committed block or content is ever touched."""
    now = (clock or SystemClock()).now()
    swept: list[Swept] = []
    faults: list[Fault] = []
    for name in ledger.names():
        try:
            for found in _old(ledger, ledger.chain(name), now, grace):
                if not pretend:
                    ledger.store.delete([found.key])
                swept.append(found)
            if not pretend:
                _pack(ledger.chain(name))
        except StoreError:
            raise
        except LedgerError as error:
            faults += error.faults
    for name in ledger.unborn():
        for found in _aged(ledger, _temporaries(ledger, name), now, grace):
            if not pretend:
                ledger.store.delete([found.key])
            swept.append(found)
    return Sweep(tuple(swept), tuple(faults))


def _old(ledger: Ledger, chain: Chain, now: datetime, grace: timedelta) -> Iterator[Swept]:
    news = _News(chain)
    for found in _aged(ledger, _orphans(ledger, chain), now, grace):
        if found.what not in ("slice", "checkpoint") or found.key not in news.named():
            yield found


def _aged(ledger: Ledger, found: Iterable[Swept], now: datetime, grace: timedelta) -> Iterator[Swept]:
    for one in found:
        written = ledger.store.modified(one.key)
        least = max(grace, WRITING) if one.what == "temporary" else grace
        if written is not None and written <= now - least:
            yield one


def _orphans(ledger: Ledger, chain: Chain) -> Iterator[Swept]:
    folder = folder_of(chain.name)
    yield from _contents(chain)
    kept = "start.json" if chain.standing.data_at is None else f"{chain.standing.data_at.seq:020d}.json"
    for promise in ledger.store.names(f"{folder}/planned"):
        if promise != kept:
            yield Swept(chain.name, "promise", f"{folder}/planned/{promise}")
    yield from _temporaries(ledger, chain.name)


def _temporaries(ledger: Ledger, chain: str) -> Iterator[Swept]:
    if not isinstance(ledger.store, LocalStore):
        return
    for inner in ("blocks", "segments", "data", "checkpoints", "planned"):
        folder = f"{folder_of(chain)}/{inner}"
        for name in ledger.store.temporaries(folder):
            yield Swept(chain, "temporary", f"{folder}/{name}")


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

    To be done while no driver runs. Only the noted head proves that a block was not acknowledged, by naming the one
    before it; where it names another or is not there, or where a window consumed the block, the block stays.
    """
    log = Log(ledger.store, folder_of(name), name)
    last = log.find().last
    if last is None:
        return None
    line = log.line(last)
    try:
        unseal(line, name, last)
    except ChainBroken as error:
        if error.code != "block-torn":
            raise
        why = _acknowledgement(ledger, log, last)
        if why is not None:
            raise ChainBroken(_kept(name, last, why)) from error
        aside = f"{log.folder}/torn/{last:020d}-{secrets.token_hex(4)}"
        ledger.store.create(aside, line)
        ledger.store.delete([log.block_key(last)])
        return aside
    return None


def _acknowledgement(ledger: Ledger, log: Log, last: int) -> str | None:
    """Why the block must be taken for committed, or None where it certainly is not."""
    hint = log.hint()
    if hint is None and last > 0:  # a chain of a torn Seed alone has lost nothing but a name made of chance
        return "the noted head, which would tell whether it was committed, is not there or cannot be read"
    if hint is not None and hint.seq >= last:
        return "the noted head says that it was committed"
    if hint is not None and hint.seq < last - 1:
        return f"the noted head is block {hint.seq}, so it was not kept up, and cannot tell"
    for reader in _readers(ledger, log):
        return f"the chain {reader!r} has consumed it, so it was committed"
    return None


def _readers(ledger: Ledger, log: Log) -> Iterator[str]:
    """The chains that have consumed the last block."""
    if (last := log.find().last) in (None, 0):
        return
    seed = log.record(0).block.event
    for name in ledger.names():
        if name == log.chain or not isinstance(seed, Seed):
            continue
        try:
            consumed = ledger.chain(name).standing.consumed.get(seed.dataset_id)
        except LedgerError:
            continue  # it is told of by its own name
        if consumed is not None and consumed.seq is not None and consumed.seq >= (last or 0):
            yield name


def _kept(chain: str, seq: int, why: str) -> Fault:
    return Fault(
        code="block-torn",
        problem=f"its record is torn, and {why}",
        help="bring the file back from a copy of the folder; only if there is none, move it out of `blocks/` by hand, "
        "knowing that its window runs again",
        chain=chain,
        block=seq,
    )
