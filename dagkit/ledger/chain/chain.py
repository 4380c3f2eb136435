"""One open chain: it holds the chain's standing, checks each new block, and appends it by creating one file.

Opening reads the last block and at most four more, whatever the chain's length. Planning and appending read none of
its own blocks. A `Chain` belongs to one thread. After `SequenceTaken` it refuses to append: another writer is active.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from dagkit.ground.clock import Clock, SystemClock
from dagkit.ledger.chain import losses, promises, seeking
from dagkit.ledger.chain.contents import Objects, is_small
from dagkit.ledger.chain.log import HEADS, Found, Hint, Log
from dagkit.ledger.chain.transaction import Transaction, prepare
from dagkit.ledger.chain.witness import InputChain, InputChains, StoredWitness
from dagkit.ledger.format.block import Dataset, MetadataBlock, Pointer, Record, seal
from dagkit.ledger.format.events import AddData, DatasetKind, Event, ExecuteTransform, Seed
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
        self,
        store: Store,
        folder: str,
        name: str,
        *,
        clock: Clock | None = None,
        chains: InputChains = _no_chains,
    ) -> None:
        self.name = name
        self.log = Log(store, folder, name)
        self.objects = Objects(store, folder, name)
        self.standing = Standing()
        self._store = store
        self._folder = folder
        self._clock = clock or SystemClock()
        self._chains = chains
        self._fenced: SequenceTaken | None = None
        self._wrote = False
        """Whether this session has appended: from then on, an append by another driver is an error."""
        self._promise: str | None = None

    @classmethod
    def create(cls, store: Store, folder: str, name: str, kind: DatasetKind, dataset_id: str, **given: Any) -> "Chain":
        """Create a chain that holds its Seed."""
        chain = cls(store, folder, name, **given)
        if not chain.log.is_unborn():
            raise BlockRefused(_exists(name))
        chain.append(Seed(dataset_id=dataset_id, dataset_kind=kind))
        return chain

    @classmethod
    def open(cls, store: Store, folder: str, name: str, **given: Any) -> "Chain":
        """Open an existing chain in a constant number of reads; raise `LedgerError` if its last blocks are damaged."""
        chain = cls(store, folder, name, **given)
        chain.reopen()
        return chain

    def reopen(self) -> None:
        """Read the chain's end again and allow appending again."""
        hint, found = self._looked()
        if found.hole is not None:
            raise ChainBroken(losses.hole(self.name, found.hole))
        if found.last is None:
            self._reopen_where_it_began()
            return
        record = self.log.record(found.last)
        if hint is not None:
            self._agrees(hint, record)
        self._is_linked(record)
        self.standing = resume(record, self.log.at)
        self._fenced, self._wrote = None, False

    def keep_head(self) -> None:
        """Note the head if there is no hint, so that a folder without hints is guarded from its first launch on."""
        hint = self.log.hint()
        if hint is None or (hint.pointer, hint.dataset) != (self.head, self.dataset_id):
            self.log.set_hint(self.head, self.dataset_id)

    def _reopen_where_it_began(self) -> None:
        """Open again if a head is noted although no block was found: writers note it after creating the first block."""
        if not self.log.is_noted():
            raise ChainNotFound(losses.absent(self.name))
        if self.log.find().last is None:
            raise ChainBroken(losses.lost(self.name, self._folder))
        self.reopen()  # another driver has just created the chain

    def _agrees(self, hint: Hint, record: Record) -> None:
        """Raise `ChainBroken` unless the chain, which ends at the record, matches the hint."""
        noted = None
        if hint.seq <= record.seq:
            noted = record if hint.seq == record.seq else self.log.record(hint.seq)
            if noted.hash == hint.hash:
                return
        seed = self.log.record(0).block.event
        if hint.dataset is not None and isinstance(seed, Seed) and seed.dataset_id != hint.dataset:
            raise ChainBroken(losses.swapped(self.name, self._folder, hint.dataset, seed.dataset_id))
        if noted is None:
            raise ChainBroken(losses.outdated(self.name, record.seq, hint.seq, f"{HEADS}/ records"))
        raise ChainBroken(losses.forged_head(self.name, hint, noted.hash))

    def _is_linked(self, record: Record) -> None:
        """Raise `ChainBroken` unless the last block links to the one before it; one read, as no hint shows it."""
        before = record.block.prev_block_hash
        if record.seq and before is not None:
            self.log.at(Pointer(seq=record.seq - 1, hash=before))
        elif record.seq or before is not None:
            raise ChainBroken(losses.unlinked(self.name, record.seq))

    def _looked(self) -> tuple[Hint | None, Found]:
        """The hint and the listing.

        A seeming loss may be files that moved into a segment during the listing, so it counts only if two listings
        in a row agree.
        """
        before: tuple[Hint | None, Found] | None = None
        for _ in range(_LOOKS):
            hint, found = seen = self.log.hint(), self.log.find()
            lost = found.last is None or (hint is not None and hint.seq > found.last)
            if seen == before or (found.hole is None and not lost):
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
            given = self._chains(dataset_id)
            if given is None:
                continue
            limit = (upto or {}).get(dataset_id)
            head = given.last if limit is None else given.block(limit)
            if head is not None:
                heads[dataset_id] = head
        fresh = prepare(self.name, self.standing, heads)
        kept = promises.read(self._store, self._folder, self.name, fresh)
        self._promise = None if kept is None else promises.key(self._folder, fresh)
        return kept or fresh

    def promised(self) -> Transaction | None:
        """The window that was promised but not appended, even if its inputs have grown since."""
        return promises.read(self._store, self._folder, self.name, prepare(self.name, self.standing, {}))

    def promise(self, transaction: Transaction, notes: Mapping[str, Any] | None = None) -> Transaction:
        """Store the planned window: after a crash, `plan_next` returns this transaction again, with its notes."""
        kept = promises.keep(self._store, self._folder, self.name, transaction, notes or {})
        self._promise = promises.key(self._folder, transaction)
        return kept

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

    def append(
        self,
        event: Event,
        objects: Sequence[bytes] = (),
        *,
        planned: Transaction | None = None,
        expected_head: Pointer | None = None,
    ) -> Record:
        """Append the event durably as the next block; `BlockRefused` and `SequenceTaken` mean: nothing was changed."""
        head = self.standing.head
        if expected_head is not None and expected_head != head:
            raise BlockRefused(self._moved(expected_head.seq))
        if planned is not None and planned.after != self.standing.data_at:
            raise BlockRefused(self._moved(-1 if planned.after is None else planned.after.seq))
        now, before = self._clock.now(), self.standing.system_time
        block = MetadataBlock(
            system_time=now if before is None or now > before else before,
            prev_block_hash=None if head is None else head.hash,
            sequence_number=self.standing.next_seq,
            event=event,
        )
        numbers = {p.input.new_block_hash: p.seq for p in planned.inputs} if planned is not None else {}
        known = {name: seq for name, seq in numbers.items() if name is not None and seq is not None}
        return self.append_block(block, objects, numbers=known)

    def append_block(
        self,
        block: MetadataBlock,
        objects: Sequence[bytes] = (),
        *,
        expected_hash: str | None = None,
        numbers: Mapping[str, int] | None = None,
    ) -> Record:
        """Append an imported block; raise `BlockRefused` if it breaks a rule."""
        if self._fenced is not None:
            raise self._fenced
        contents = {hash_of(content): content for content in objects}
        witness = StoredWitness(self.log, self.objects, self.standing, self._chains, frozenset(contents), numbers or {})
        self._judge(block, witness)
        consumed = consumed_numbers(block.event, self.standing, witness.number_of)
        small = {name: content.decode() for name, content in contents.items() if is_small(content)}
        record, line = seal(block, carry(self.standing, block.event, consumed), small)
        if expected_hash is not None and record.hash != expected_hash:
            raise BlockRefused(_other_hash(self.name, record, expected_hash))
        self._shelve({name: content for name, content in contents.items() if name not in small}, block.event)
        try:
            self.log.create(record.seq, line)
        except SequenceTaken as error:
            self._fenced, self._wrote = error, True
            raise
        self._wrote = True
        self.standing = advance(self.standing, record)
        self.log.set_hint(record.pointer, self.dataset_id)
        self._forget_promise(block.event)
        return record

    def _judge(self, block: MetadataBlock, witness: StoredWitness) -> None:
        faults = judge(Proposal(block, self.standing, witness))
        if faults:
            raise BlockRefused(*(_of(self.name, fault) for fault in faults))

    def _shelve(self, contents: Mapping[str, bytes], event: Event) -> None:
        """Store the contents that are too large for the record, before the block that names them."""
        assert isinstance(event, AddData | ExecuteTransform) or not contents, "only data blocks name contents"
        if not isinstance(event, AddData | ExecuteTransform):
            return
        for name, content in contents.items():
            # Check both: one content may be slice and checkpoint at once, and each is read from its own shelf.
            if event.new_data is not None and event.new_data.physical_hash == name:
                self.objects.put("data", content)
            if event.new_checkpoint is not None and event.new_checkpoint.physical_hash == name:
                self.objects.put("checkpoints", content)

    def _forget_promise(self, event: Event) -> None:
        if self._promise is None or not isinstance(event, AddData | ExecuteTransform):
            return
        try:
            self._store.delete([self._promise])
        except StoreError as error:
            _logger.warning("a fulfilled promise of %s could not be deleted: %s", self.name, error.fault.problem)
        self._promise = None

    def _moved(self, seq: int) -> Fault:
        return Fault(
            code="head-moved",
            problem=f"it was planned after block {seq}, but the chain has grown since",
            help="plan it again",
            chain=self.name,
            block=self.standing.next_seq,
        )

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
        if not isinstance(event, AddData | ExecuteTransform) or event.new_data is None:
            return None
        return self.objects.get("data", event.new_data.physical_hash, record)

    def checkpoint(self) -> bytes | None:
        """The content of the current checkpoint; at most one block read."""
        name, at = self.standing.checkpoint, self.standing.state_at
        return None if name is None or at is None else self.objects.get("checkpoints", name, self.log.at(at))

    def checkpoint_at(self, record: Record) -> bytes | None:
        """The content of a block's checkpoint, which an earlier block may hold."""
        event = record.block.event
        if not isinstance(event, AddData | ExecuteTransform) or event.new_checkpoint is None:
            return None
        carried, name = record.carry.state, event.new_checkpoint.physical_hash
        keeper = self.log.at(carried) if carried is not None and name == event.prev_checkpoint else record
        return self.objects.get("checkpoints", name, keeper)


def _of(chain: str, fault: Fault) -> Fault:
    return Fault(fault.code, fault.problem, fault.help, chain, fault.block)


def _exists(chain: str) -> Fault:
    return Fault("chain-exists", "the chain exists already", "open it, or choose another name", chain)


def _other_hash(chain: str, record: Record, expected: str) -> Fault:
    return Fault(
        code="hash-mismatch",
        problem=f"its hash is {record.hash}, but {expected} was expected",
        help="it is not the block that was exported: export it again",
        chain=chain,
        block=record.seq,
    )
