"""Replay a whole chain, block by block, and compare the result with the fast resume."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from dagkit.ledger.chain.chain import Chain
from dagkit.ledger.chain.contents import lines_hash
from dagkit.ledger.chain.witness import InputChain, InputChains
from dagkit.ledger.format.block import Pointer, Record
from dagkit.ledger.format.events import AddData, DataSlice, Event, ExecuteTransform, ExecuteTransformInput
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
            return None  # the input chain is broken there; its faults are reported under its own name
        return found if found.hash == block_hash else None

    def number_of(self, given: ExecuteTransformInput) -> int | None:
        """The number of the last consumed block of an input; unchecked if the input chain is stored elsewhere."""
        assert given.new_block_hash is not None, "an input without new data has no new block"
        if not self.knows_input(given.dataset_id):
            return self.numbers.get(given.dataset_id)
        found = self.input_block(given.dataset_id, given.new_block_hash)
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
            raise ChainBroken(*(Fault(f.code, f.problem, f.help, chain.name, record.seq) for f in faults))
        if record.carry != carry(standing, event, consumed_numbers(event, standing, witness.number_of)):
            raise ChainBroken(_forged(chain.name, record.seq))
        yield standing, record
        standing = advance(standing, record)
        if not isinstance(event, AddData | ExecuteTransform):
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
    return {given.dataset_id: number for given, number in zip(event.query_inputs, consumed, strict=False)}


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
    event = record.block.event
    if not isinstance(event, AddData | ExecuteTransform):
        return
    if event.new_data is not None:
        try:
            content = chain.objects.get("data", event.new_data.physical_hash, record)
            yield from _slice(chain.name, record, event.new_data, content)
        except ChainBroken as error:
            yield from error.faults
    left = event.new_checkpoint
    if left is None or left.physical_hash == event.prev_checkpoint:
        return
    try:
        kept = chain.objects.get("checkpoints", left.physical_hash, record)
    except ChainBroken as error:
        yield from error.faults
        return
    if len(kept) != left.size:
        problem = f"its checkpoint has {len(kept)} bytes, but the block records {left.size}"
        yield _wrong(chain.name, record, "checkpoint-damaged", problem)


def _slice(chain: str, record: Record, recorded: DataSlice, content: bytes) -> Iterator[Fault]:
    if len(content) != recorded.size:
        yield _wrong(
            chain, record, "data-damaged", f"its slice has {len(content)} bytes, but the block records {recorded.size}"
        )
    found = lines_hash(content)
    if found != recorded.logical_hash:
        problem = f"its slice has the logical hash {found}, but the block records {recorded.logical_hash}"
        yield _wrong(chain, record, "data-damaged", problem)


def _wrong(chain: str, record: Record, code: LedgerCode, problem: str) -> Fault:
    return Fault(code, problem, "restore the folder from a backup", chain, record.seq)
