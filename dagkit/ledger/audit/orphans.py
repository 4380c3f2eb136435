"""Delete what a crash leaves behind: contents that no block names, half-moved files, promises of committed windows."""

import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from dagkit.ground.clock import Clock, SystemClock
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
"""Younger files may belong to an append in progress."""
WRITING = timedelta(minutes=10)
"""Younger temporary files are never deleted, whatever the grace: a writer may still need them for its append."""


@dataclass(frozen=True, slots=True)
class Swept:
    """One file that was, or would be, deleted."""

    chain: str
    what: str
    key: str


@dataclass(frozen=True, slots=True)
class Sweep:
    """The deleted files, and the faults of chains that were skipped."""

    swept: tuple[Swept, ...] = ()
    faults: tuple[Fault, ...] = ()
    """The faults of skipped chains: it is unknown which contents a broken chain names."""


def sweep(ledger: Ledger, *, grace: timedelta = GRACE, pretend: bool = False, clock: Clock | None = None) -> Sweep:
    """Delete every file older than `grace` that no block names; never touch a committed block or content."""
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
    last = chain.standing.data_at
    kept = "start.json" if last is None else f"{last.seq:020d}.json"
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
    """The contents named by blocks that a running driver appended after the chain was opened."""

    def __init__(self, chain: Chain) -> None:
        self._log, self._objects = chain.log, chain.objects
        self._next = chain.head.seq + 1
        self._keys: set[str] = set()

    def named(self) -> set[str]:
        """Read a copy of the chain: a driver that lost the chain to another must not be allowed to append again."""
        while self._log.has(self._next):
            for shelf, name in _named(self._log.record(self._next)):
                self._keys.add(self._objects.key(shelf, name))
            self._next += 1
        return self._keys


def _pack(chain: Chain) -> None:
    """Pack runs of blocks that a crash left loose, and delete files of blocks that a segment holds."""
    starts = {seq - seq % SEGMENT_SIZE for seq in chain.log.loose()}
    for start in sorted(starts):
        if start + SEGMENT_SIZE <= chain.head.seq:
            chain.log.pack(start)


def set_torn_aside(ledger: Ledger, name: str) -> str | None:
    """Move the last record to `torn/` if it is torn and was never acknowledged, so that the chain opens again.

    Call it only while no driver runs. The noted head proves that a block was not acknowledged if it names the block
    before. If it names another block or is missing, or if a window consumed the block, the block stays in place.
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
    """The reason to treat the block as committed; None if it is certainly not committed."""
    hint = log.hint()
    if hint is None and last > 0:  # a chain that holds only a torn Seed loses nothing but a random id
        return "the noted head, which would show whether it was committed, is missing or unreadable"
    if hint is not None and hint.seq >= last:
        return "the noted head shows that it was committed"
    if hint is not None and hint.seq < last - 1:
        return f"the noted head is block {hint.seq}: it is out of date and does not show whether it was committed"
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
            continue  # its faults are reported under its own name
        if consumed is not None and consumed.seq is not None and consumed.seq >= (last or 0):
            yield name


def _kept(chain: str, seq: int, why: str) -> Fault:
    return Fault(
        code="block-torn",
        problem=f"its record is torn, and {why}",
        help="restore the file from a backup of the folder; only if there is none, move it out of `blocks/` by hand: "
        "its window then runs again",
        chain=chain,
        block=seq,
    )
