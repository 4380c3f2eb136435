"""Answers the rules' questions from storage: the chain's log, its objects, and the chains it reads."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dagkit.ledger.chain.contents import Objects
from dagkit.ledger.chain.log import Log
from dagkit.ledger.format.block import Pointer, Record
from dagkit.ledger.format.events import DataEvent, Event, ExecuteTransformInput
from dagkit.ledger.format.faults import ChainBroken
from dagkit.ledger.rules import InputBlock
from dagkit.ledger.rules.standing import Standing


@dataclass(frozen=True, slots=True)
class InputChain:
    """A chain that another one reads: its log and its standing."""

    log: Log
    standing: Standing

    @property
    def last(self) -> InputBlock | None:
        """Its last data block: declarations after it are nothing to consume."""
        at = self.standing.data_at
        return None if at is None else InputBlock(at.seq, at.hash, self.standing.offset)

    def block(self, seq: int) -> InputBlock:
        """One block with the last offset at it; at most two reads."""
        record = self.log.record(seq)
        return InputBlock(record.seq, record.hash, offset_at(record, self.log.at))


InputChains = Callable[[str], InputChain | None]
"""Finds the chain of an id; None if it is stored elsewhere."""


def offset_at(record: Record, read: Callable[[Pointer], Record]) -> int | None:
    """The last offset of a chain's data at one of its blocks."""
    event = record.block.event
    if isinstance(event, DataEvent):
        return event.last_offset
    return None if record.carry.data is None else offset_at(read(record.carry.data), read)


@dataclass(frozen=True, slots=True)
class StoredWitness:
    """Answers for one proposed block."""

    log: Log
    objects: Objects
    standing: Standing
    chains: InputChains
    appended: frozenset[str]
    """Hashes of the contents that are appended together with the block."""
    numbers: Mapping[str, int]
    """The numbers of input blocks, by hash."""

    def event_at(self, pointer: Pointer) -> Event:
        return self.log.at(pointer).block.event

    def has_block(self, seq: int, block_hash: str) -> bool:
        try:
            return self.log.record(seq).hash == block_hash
        except ChainBroken:
            return False

    def has_data(self, name: str) -> bool:
        return name in self.appended or self.objects.has("data", name)

    def has_checkpoint(self, name: str) -> bool:
        return name in self.appended or self.objects.has("checkpoints", name)

    def knows_input(self, dataset_id: str) -> bool:
        return self.chains(dataset_id) is not None

    def input_block(self, dataset_id: str, block_hash: str) -> InputBlock | None:
        chain = self.chains(dataset_id)
        head = None if chain is None else chain.standing.head
        if chain is None or head is None:
            return None
        last = chain.last
        # The last data block is known, and costs no read.
        if last is not None and last.hash == block_hash:
            return last
        number = self.numbers.get(block_hash)
        if number is not None and number <= head.seq:
            found = chain.block(number)
            return found if found.hash == block_hash else None
        return self._in_backlog(chain, head.seq, dataset_id, block_hash)

    def number_of(self, part: ExecuteTransformInput) -> int | None:
        """The number of the last consumed block of an input."""
        assert part.new_block_hash is not None, "an input without new data has no new block"
        found = self.input_block(part.dataset_id, part.new_block_hash)
        return None if found is None else found.seq

    def _in_backlog(self, chain: InputChain, newest: int, dataset_id: str, block_hash: str) -> InputBlock | None:
        """Search the blocks not yet consumed, newest first; for a block of unknown number."""
        last = self.standing.consumed.get(dataset_id)
        floor = last.seq if last is not None and last.seq is not None else 0
        for seq in range(newest, floor - 1, -1):
            found = chain.block(seq)
            if found.hash == block_hash:
                return found
        return None
