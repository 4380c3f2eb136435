"""Replay a whole chain, block by block, and compare the result with the fast resume."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from dagkit.ledger.chain.chain import Chain
from dagkit.ledger.chain.contents import WORDS, contents_named, lines_hash
from dagkit.ledger.chain.witness import InputChain, InputChains
from dagkit.ledger.format.block import Pointer, Record
from dagkit.ledger.format.events import Checkpoint, DataEvent, DataSlice, Event, ExecuteTransform, ExecuteTransformInput
from dagkit.ledger.format.faults import ChainBroken, Fault, LedgerCode, LedgerError
from dagkit.ledger.rules import InputBlock, Proposal, judge
from dagkit.ledger.rules.standing import Standing, advance, carry, consumed_numbers


@dataclass(slots=True)
class ReplayWitness:
    """Answers the rules' questions from the replayed blocks and the input chains."""

    chains: InputChains
    keys: dict[Pointer, Event] = field(default_factory=dict)
    numbers: Mapping[str, int | None] = field(default_factory=dict)
    """The numbers of input blocks that the current block records, by hash."""

    def event_at(self, pointer: Pointer) -> Event:
        return self.keys[pointer]

    def has_block(self, seq: int, block_hash: str) -> bool:  # noqa: ARG002 - links are compared before the laws
        return False

    def has_data(self, name: str) -> bool:  # noqa: ARG002 - contents are hashed, which is more than being there
        return True

    def has_checkpoint(self, name: str) -> bool:  # noqa: ARG002 - as above
        return True

    def knows_input(self, dataset_id: str) -> bool:
        return self._chain(dataset_id) is not None

    def input_block(self, dataset_id: str, block_hash: str) -> InputBlock | None:
        chain, number = self._chain(dataset_id), self.numbers.get(dataset_id)
        head = None if chain is None else chain.standing.head
        if chain is None or head is None or number is None or number > head.seq:
            return None
        try:
            found = chain.block(number)
        except LedgerError:
            # The input chain is broken there. Its faults are reported under its own name.
            return None
        return found if found.hash == block_hash else None

    def number_of(self, part: ExecuteTransformInput) -> int | None:
        """The number of the last consumed block of an input; unchecked if the input chain is stored elsewhere."""
        assert part.new_block_hash is not None, "an input without new data has no new block"
        if not self.knows_input(part.dataset_id):
            return self.numbers.get(part.dataset_id)
        found = self.input_block(part.dataset_id, part.new_block_hash)
        return None if found is None else found.seq

    def _chain(self, dataset_id: str) -> InputChain | None:
        try:
            return self.chains(dataset_id)
        except LedgerError:
            return None


def replay(chain: Chain, chains: InputChains) -> Iterator[tuple[Standing, Record]]:
    """Every block with the chain's standing before it, up to the first broken block."""
    standing, witness = Standing(), ReplayWitness(chains)
    for record in chain.records():
        _links(chain.name, standing, record)
        event = record.block.event
        witness.numbers = _numbers(event, record)
        faults = judge(Proposal(record.block, standing, witness))
        if faults:
            raise ChainBroken(*(replace(fault, chain=chain.name) for fault in faults))
        if record.carry != carry(standing, event, consumed_numbers(event, standing, witness.number_of)):
            raise ChainBroken(_forged(chain.name, record.seq))
        yield standing, record
        standing = advance(standing, record)
        # The rules ask for declarations only. All other events of a long chain would fill the memory.
        if not isinstance(event, DataEvent):
            witness.keys[record.pointer] = event
    if standing != chain.standing:
        raise ChainBroken(_other(chain.name, chain.head.seq))


def _links(chain: str, standing: Standing, record: Record) -> None:
    wanted = None if standing.head is None else standing.head.hash
    if record.block.prev_block_hash != wanted:
        fault = Fault(
            code="link-broken",
            problem=f"it follows {record.block.prev_block_hash}, but the block before it is {wanted}",
            help="this block or the one before was rewritten; restore the folder from a backup",
            chain=chain,
            block=record.seq,
        )
        raise ChainBroken(fault)


def _numbers(event: Event, record: Record) -> Mapping[str, int | None]:
    if not isinstance(event, ExecuteTransform):
        return {}
    consumed = record.carry.consumed or ()
    return {part.dataset_id: number for part, number in zip(event.query_inputs, consumed, strict=False)}


def _forged(chain: str, seq: int) -> Fault:
    return Fault(
        code="carry-forged",
        problem="what it carries does not match the blocks before it",
        help="the block was not written by dagkit; restore the folder from a backup",
        chain=chain,
        block=seq,
    )


def _other(chain: str, seq: int) -> Fault:
    return Fault(
        code="carry-forged",
        problem="the fast resume from it and the replay of the whole chain give different results",
        help="unless the folder was edited, this is a bug in dagkit: keep a copy of the folder and report it",
        chain=chain,
        block=seq,
    )


def flaws_of(chain: Chain, record: Record) -> Iterator[Fault]:
    """The faults of a block's slice and checkpoint; a carried checkpoint was checked before."""
    for shelf, recorded in contents_named(record.block.event):
        try:
            content = chain.objects.get(shelf, recorded.physical_hash, record)
        except ChainBroken as error:
            yield from error.faults
            continue
        code: LedgerCode = "data-damaged" if shelf == "data" else "checkpoint-damaged"
        for problem in _differences(recorded, content):
            yield Fault(
                code, f"its {WORDS[shelf]} has {problem}", "restore the folder from a backup", chain.name, record.seq
            )


def _differences(recorded: DataSlice | Checkpoint, content: bytes) -> Iterator[str]:
    if len(content) != recorded.size:
        yield f"{len(content)} bytes, but the block records {recorded.size}"
    if isinstance(recorded, DataSlice) and (found := lines_hash(content)) != recorded.logical_hash:
        yield f"the logical hash {found}, but the block records {recorded.logical_hash}"
