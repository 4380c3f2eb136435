"""Delete what a crash leaves behind: contents that no block names, half-moved files, promises of committed windows."""

import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from dagkit.ledger.application_ledger import Ledger, folder_of
from dagkit.ledger.chain.chain import Chain
from dagkit.ledger.chain.contents import WORDS, contents_named
from dagkit.ledger.chain.log import Log
from dagkit.ledger.format.block import unseal
from dagkit.ledger.format.events import Seed
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


def sweep(ledger: Ledger, *, grace: timedelta = GRACE, pretend: bool = False) -> Sweep:
    """Delete every file older than `grace` that no block names; never touch a committed block or content."""
    now = ledger.clock.now()
    swept: list[Swept] = []
    faults: list[Fault] = []
    for name in ledger.names():
        try:
            for orphan in _old(ledger, ledger.chain(name), now, grace):
                if not pretend:
                    ledger.store.delete([orphan.key])
                swept.append(orphan)
            if not pretend:
                _pack(ledger.chain(name))
        except StoreError:
            raise
        except LedgerError as error:
            faults += error.faults
    for name in ledger.unborn():
        for orphan in _aged(ledger, _temporaries(ledger, name), now, grace):
            if not pretend:
                ledger.store.delete([orphan.key])
            swept.append(orphan)
    return Sweep(tuple(swept), tuple(faults))


def _old(ledger: Ledger, chain: Chain, now: datetime, grace: timedelta) -> Iterator[Swept]:
    later = _LaterContents(chain)
    for orphan in _aged(ledger, _orphans(ledger, chain), now, grace):
        # A driver first renews the age of a content that it uses again, and then appends the block that names it. So
        # this asks for blocks after the age.
        if orphan.what not in WORDS.values() or orphan.key not in later.named():
            yield orphan


def _aged(ledger: Ledger, orphans: Iterable[Swept], now: datetime, grace: timedelta) -> Iterator[Swept]:
    for orphan in orphans:
        written = ledger.store.modified(orphan.key)
        least = max(grace, WRITING) if orphan.what == "temporary" else grace
        if written is not None and written <= now - least:
            yield orphan


def _orphans(ledger: Ledger, chain: Chain) -> Iterator[Swept]:
    folder = folder_of(chain.name)
    yield from _contents(chain)
    last = chain.standing.data_at
    current = "start.json" if last is None else f"{last.seq:020d}.json"
    for promise in ledger.store.names(f"{folder}/planned"):
        # The promise of the next window is kept: after a crash, that window must run as planned.
        if promise != current:
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
    unnamed = {shelf: set(chain.objects.names(shelf)) for shelf in WORDS}
    if not any(unnamed.values()):
        return
    for record in chain.records():
        for shelf, content in contents_named(record.block.event):
            unnamed[shelf].discard(content.physical_hash)
    for shelf, names in unnamed.items():
        for name in sorted(names):
            yield Swept(chain.name, WORDS[shelf], chain.objects.key(shelf, name))


class _LaterContents:
    """The contents named by blocks that a running driver appended after the chain was opened."""

    def __init__(self, chain: Chain) -> None:
        self._log, self._objects = chain.log, chain.objects
        self._next = chain.head.seq + 1
        self._keys: set[str] = set()

    def named(self) -> set[str]:
        """The keys of these contents, as of now."""
        # The blocks are read from the log: `refresh` would allow a driver that lost the chain to append again.
        while self._log.has(self._next):
            for shelf, content in contents_named(self._log.record(self._next).block.event):
                self._keys.add(self._objects.key(shelf, content.physical_hash))
            self._next += 1
        return self._keys


def _pack(chain: Chain) -> None:
    """Pack runs of blocks that a crash left loose, and delete files of blocks that a segment holds."""
    starts = {seq - seq % SEGMENT_SIZE for seq in chain.log.loose()}
    for start in sorted(starts):
        # The head stays a file of its own, by which `Log.find` finds it.
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
            raise ChainBroken(_not_set_aside(name, last, why)) from error
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
    reader = next(_readers(ledger, log, last), None) if last > 0 else None
    return None if reader is None else f"the chain {reader!r} has consumed it, so it was committed"


def _readers(ledger: Ledger, log: Log, last: int) -> Iterator[str]:
    """The chains that have consumed the last block."""
    seed = log.record(0).block.event
    for name in ledger.names():
        if name == log.chain or not isinstance(seed, Seed):
            continue
        try:
            consumed = ledger.chain(name).standing.consumed.get(seed.dataset_id)
        except LedgerError:
            continue  # its faults are reported under its own name
        if consumed is not None and consumed.seq is not None and consumed.seq >= last:
            yield name


def _not_set_aside(chain: str, seq: int, why: str) -> Fault:
    return Fault(
        code="block-torn",
        problem=f"its record is torn, and {why}",
        help="restore the file from a backup of the folder; only if there is none, move it out of `blocks/` by hand: "
        "its window then runs again",
        chain=chain,
        block=seq,
    )
