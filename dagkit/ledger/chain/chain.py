"""One open chain: it holds the chain's standing, checks each new block, and appends it by creating one file.

Opening reads the last block and at most four more, whatever the chain's length. Planning and appending read none of
its own blocks. A `Chain` belongs to one thread. After `SequenceTaken` it refuses to append: another writer is active.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from dagkit.ground.clock import Clock, SystemClock
from dagkit.ledger.chain import losses, promises, seeking
from dagkit.ledger.chain.contents import Objects, contents_named, is_small
from dagkit.ledger.chain.log import HEADS, Hint, Listing, Log
from dagkit.ledger.chain.transaction import Transaction, prepare
from dagkit.ledger.chain.witness import InputChain, InputChains, StoredWitness
from dagkit.ledger.format.block import Dataset, MetadataBlock, Pointer, Record, seal
from dagkit.ledger.format.events import DataEvent, DatasetKind, Event, Seed, changed_checkpoint
from dagkit.ledger.format.faults import (
    BlockRefused,
    ChainBroken,
    ChainNotFound,
    Fault,
    SequenceTaken,
    StoreError,
)
from dagkit.ledger.format.hashing import hash_of
from dagkit.ledger.rules import InputBlock, Proposal, judge
from dagkit.ledger.rules.standing import Standing, advance, carry, consumed_numbers, resume
from dagkit.ledger.stores.store import Store

_LOOKS = 10
"""The most listings of a chain that seems to have lost blocks, while each listing differs from the one before."""

_logger = logging.getLogger(__name__)


def _no_chains(_: str) -> InputChain | None:
    return None


class Chain:
    """A chain of one application's ledger."""

    def __init__(
        self, store: Store, folder: str, name: str, *, clock: Clock | None = None, chains: InputChains = _no_chains
    ) -> None:
        self.name = name
        self.log = Log(store, folder, name)
        self.objects = Objects(store, folder, name)
        self.standing = Standing()
        self._clock = clock or SystemClock()
        self._chains = chains
        self._fenced: SequenceTaken | None = None
        self._wrote = False
        """Whether this session has appended: from then on, an append by another driver is an error."""
        self._promise: str | None = None

    def create(self, kind: DatasetKind, dataset_id: str) -> None:
        """Append the Seed; raise `BlockRefused` if the chain exists."""
        if not self.log.is_unborn():
            raise BlockRefused(
                Fault("chain-exists", "the chain exists already", "open it, or choose another name", self.name)
            )
        self.append(Seed(dataset_id=dataset_id, dataset_kind=kind))

    def reopen(self) -> None:
        """Read the chain's end, and allow appending again; raise `LedgerError` if its last blocks are damaged."""
        hint, listing = self._look()
        if listing.hole is not None:
            raise ChainBroken(losses.hole(self.name, listing.hole))
        if listing.last is None:
            self._open_if_just_created()
            return
        record = self.log.record(listing.last)
        if hint is not None:
            self._check_hint(hint, record)
        self._check_link(record)
        self.standing = resume(record, self.log.at)
        self._fenced, self._wrote = None, False

    def keep_head(self) -> None:
        """Note the head if there is no hint, so that a folder without hints is guarded from its first launch on."""
        hint = self.log.hint()
        if hint is None or (hint.pointer, hint.dataset) != (self.head, self.dataset_id):
            self.log.set_hint(self.head, self.dataset_id)

    def _open_if_just_created(self) -> None:
        """Open the chain if another driver has just created it; raise unless there are blocks now."""
        if not self.log.is_noted():
            raise ChainNotFound(losses.absent(self.name))
        # Writers note the head after they have created the first block, so the block of a noted head is there.
        if self.log.find().last is None:
            raise ChainBroken(losses.lost(self.name, self.log.folder))
        self.reopen()

    def _check_hint(self, hint: Hint, record: Record) -> None:
        """Raise `ChainBroken` unless the chain, which ends at the record, matches the hint."""
        noted = None
        if hint.seq <= record.seq:
            noted = record if hint.seq == record.seq else self.log.record(hint.seq)
            if noted.hash == hint.hash:
                return
        # Before the other faults: a chain of another dataset would look cut off or forged.
        seed = self.log.record(0).block.event
        if hint.dataset is not None and isinstance(seed, Seed) and seed.dataset_id != hint.dataset:
            raise ChainBroken(losses.swapped(self.name, self.log.folder, hint.dataset, seed.dataset_id))
        if noted is None:
            raise ChainBroken(losses.cut_short(self.name, record.seq, hint.seq, f"{HEADS}/ records"))
        raise ChainBroken(losses.forged_head(self.name, hint, noted.hash))

    def _check_link(self, record: Record) -> None:
        """Raise `ChainBroken` unless the last block links to the one before it; one read, as no hint shows it."""
        before = record.block.prev_block_hash
        if record.seq and before is not None:
            self.log.at(Pointer(seq=record.seq - 1, hash=before))
        elif record.seq or before is not None:
            raise ChainBroken(losses.unlinked(self.name, record.seq))

    def _look(self) -> tuple[Hint | None, Listing]:
        """The hint and the listing."""
        before: tuple[Hint | None, Listing] | None = None
        for _ in range(_LOOKS):
            # The hint first: a writer notes a block after it has created it, so a later listing has the block.
            hint, listing = seen = self.log.hint(), self.log.find()
            lost = listing.last is None or (hint is not None and hint.seq > listing.last)
            # A seeming loss may be files that moved into a segment during the listing. It counts only if two listings
            # in a row agree.
            if seen == before or (listing.hole is None and not lost):
                break
            before = seen
        return seen

    @property
    def head(self) -> Pointer:
        assert self.standing.head is not None, "an open chain has a Seed"
        return self.standing.head

    @property
    def dataset(self) -> Dataset:
        assert self.standing.dataset is not None, "an open chain has a Seed"
        return self.standing.dataset

    @property
    def dataset_id(self) -> str:
        return self.dataset.id

    @property
    def kind(self) -> DatasetKind:
        return self.dataset.kind

    @property
    def as_input(self) -> InputChain:
        """The chain as its readers need it."""
        return InputChain(self.log, self.standing)

    def summary(self) -> dict[str, Any]:
        """The chain in one line, as JSON."""
        standing = self.standing
        return {
            "chain": self.name,
            "kind": str(self.kind),
            "blocks": standing.next_seq,
            "last_offset": standing.offset,
            "watermark": None if standing.watermark is None else standing.watermark.isoformat(),
            "written": None if standing.system_time is None else standing.system_time.isoformat(),
        }

    # ---- the next transaction

    def plan_next(self, upto: Mapping[str, int] | None = None) -> Transaction:
        """The start of the next append. A window that was promised but not appended comes back as it was planned.

        `upto` gives the last block number to consume, by input id; without it, all available blocks are consumed.
        """
        self.refresh()
        heads: dict[str, InputBlock] = {}
        for dataset_id in self.standing.inputs:
            chain = self._chains(dataset_id)
            if chain is None:
                continue
            limit = (upto or {}).get(dataset_id)
            head = chain.last if limit is None else chain.block(limit)
            if head is not None:
                heads[dataset_id] = head
        fresh = prepare(self.standing, heads)
        promised = promises.read(self.log, fresh)
        self._promise = None if promised is None else promises.key(self.log, fresh)
        return promised or fresh

    def promised(self) -> Transaction | None:
        """The window that was promised but not appended, even if its inputs have grown since."""
        return promises.read(self.log, prepare(self.standing, {}))

    def promise(self, transaction: Transaction, notes: Mapping[str, Any] | None = None) -> Transaction:
        """Store the planned window: after a crash, `plan_next` returns this transaction again, with its notes."""
        promised = promises.keep(self.log, transaction, notes or {})
        self._promise = promises.key(self.log, transaction)
        return promised

    def refresh(self) -> bool:
        """Read the blocks of other writers, and return whether there were any; raise if this session has appended."""
        if self._fenced is None and not self.log.has(self.standing.next_seq):
            return False
        if self._wrote:
            self._fenced = self._fenced or self.log.taken(self.standing.next_seq)
            raise self._fenced
        self.reopen()
        return True

    # ---- appending

    def append(self, event: Event, objects: Sequence[bytes] = (), *, planned: Transaction | None = None) -> Record:
        """Append the event durably as the next block; `BlockRefused` and `SequenceTaken` mean: nothing was changed."""
        head = self.standing.head
        if planned is not None and planned.after != self.standing.data_at:
            after = -1 if planned.after is None else planned.after.seq
            problem = f"it was planned after block {after}, but the chain has grown since"
            raise BlockRefused(Fault("head-moved", problem, "plan it again", self.name, self.standing.next_seq))
        now, before = self._clock.now(), self.standing.system_time
        # A clock may go back, and the times of a chain may not: seeking by time is a binary search.
        block = MetadataBlock(
            system_time=now if before is None else max(now, before),
            prev_block_hash=None if head is None else head.hash,
            sequence_number=self.standing.next_seq,
            event=event,
        )
        # By its number, the witness finds a block of an input with one read; without it, it searches.
        numbers = {
            part.input.new_block_hash: part.seq
            for part in (() if planned is None else planned.inputs)
            if part.input.new_block_hash is not None and part.seq is not None
        }
        return self.append_block(block, objects, numbers=numbers)

    def append_block(
        self, block: MetadataBlock, objects: Sequence[bytes] = (), *, numbers: Mapping[str, int] | None = None
    ) -> Record:
        """Append a block; raise `BlockRefused` if it breaks a rule. `numbers` are those of input blocks, by hash."""
        if self._fenced is not None:
            raise self._fenced
        contents = {hash_of(content): content for content in objects}
        witness = StoredWitness(self.log, self.objects, self.standing, self._chains, frozenset(contents), numbers or {})
        if faults := judge(Proposal(block, self.standing, witness)):
            raise BlockRefused(*(replace(fault, chain=self.name) for fault in faults))
        consumed = consumed_numbers(block.event, self.standing, witness.number_of)
        small = {name: content.decode() for name, content in contents.items() if is_small(content)}
        record, line = seal(block, carry(self.standing, block.event, consumed), small)
        # Large contents before the block: a crash in between leaves an orphan, and never a block without its contents.
        # One content may be slice and checkpoint at once, and each is read from its own shelf.
        for shelf, named in contents_named(block.event):
            if named.physical_hash in contents and named.physical_hash not in small:
                self.objects.put(shelf, contents[named.physical_hash])
        try:
            self.log.create(record.seq, line)
        except SequenceTaken as error:
            # As if this session had appended: else `refresh` would open the chain again, and two drivers would take
            # turns.
            self._fenced, self._wrote = error, True
            raise
        self._wrote = True
        self.standing = advance(self.standing, record)
        # After the block: a hint that is behind is harmless, and one ahead of its block would be reported as a loss.
        self.log.set_hint(record.pointer, self.dataset_id)
        self._forget_promise(block.event)
        return record

    def _forget_promise(self, event: Event) -> None:
        if self._promise is None or not isinstance(event, DataEvent):
            return
        try:
            # A crash before this is harmless: a promise names the block that its window follows, which is the last data
            # block no longer. `gc` deletes the file.
            self.log.store.delete([self._promise])
        except StoreError as error:
            _logger.warning("a fulfilled promise of %s could not be deleted: %s", self.name, error.fault.problem)
        self._promise = None

    # ---- reading

    def read(self, seq: int) -> Record:
        """The block of this number."""
        return self.log.record(seq)

    def records(self, first: int = 0, last: int | None = None) -> Iterator[Record]:
        """The blocks from `first` to `last`, or to the end that this session knows."""
        return self.log.records(first, self.head.seq if last is None else min(last, self.head.seq))

    def last(self, kind: str) -> Record | None:
        """The last block of a kind, such as "SetTransform"; one read."""
        standing = self.standing
        at = standing.data_at if kind in ("AddData", "ExecuteTransform") else standing.keys.get(kind)
        return None if at is None else self.log.at(at)

    def before(self, record: Record, kind: str) -> Record | None:
        """The last block of a kind before this one; at most two reads."""
        return seeking.before(record, kind, self.log.at)

    def seek_offset(self, offset: int) -> Record | None:
        """The block whose slice holds the offset; a logarithmic number of reads."""
        return seeking.by_offset(self.log, self.head.seq, offset)

    def seek_time(self, instant: datetime) -> Record | None:
        """The last block that is not younger than the instant; a logarithmic number of reads."""
        return seeking.by_time(self.log, self.head.seq, instant)

    def data(self, record: Record) -> bytes | None:
        """The content of the slice that a block adds, if any."""
        event = record.block.event
        if not isinstance(event, DataEvent) or event.new_data is None:
            return None
        return self.objects.get("data", event.new_data.physical_hash, record)

    def checkpoint(self) -> bytes | None:
        """The content of the current checkpoint; at most one block read."""
        name, at = self.standing.checkpoint, self.standing.state_at
        return None if name is None or at is None else self.objects.get("checkpoints", name, self.log.at(at))

    def checkpoint_at(self, record: Record) -> bytes | None:
        """The content of a block's checkpoint, which an earlier block may hold."""
        event = record.block.event
        if not isinstance(event, DataEvent) or event.new_checkpoint is None:
            return None
        carried = record.carry.state if changed_checkpoint(event) is None else None
        keeper = record if carried is None else self.log.at(carried)
        return self.objects.get("checkpoints", event.new_checkpoint.physical_hash, keeper)
