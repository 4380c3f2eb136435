"""Check that the contents a block names exist, are whole, and match their hashes and sizes."""

from collections.abc import Iterator

from dagkit.ledger.chain.chain import Chain
from dagkit.ledger.chain.contents import lines_hash
from dagkit.ledger.format.block import Record
from dagkit.ledger.format.events import AddData, DataSlice, ExecuteTransform
from dagkit.ledger.format.faults import ChainBroken, Fault, LedgerCode


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
