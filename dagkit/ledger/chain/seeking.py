"""Binary search for a block: numbers are gapless, and offsets and times never decrease."""

from bisect import bisect_left, bisect_right
from datetime import datetime

from dagkit.ledger.chain.log import Log
from dagkit.ledger.chain.witness import offset_at
from dagkit.ledger.format.block import Record
from dagkit.ledger.format.events import DataEvent
from dagkit.ledger.rules.standing import Reader


def by_offset(log: Log, last: int, offset: int) -> Record | None:
    """The block whose slice holds the offset."""

    def reached(seq: int) -> int:
        upto = offset_at(log.record(seq), log.at)
        return -1 if upto is None else upto

    seq = bisect_left(range(last + 1), offset, key=reached)
    return log.record(seq) if seq <= last else None


def by_time(log: Log, last: int, instant: datetime) -> Record | None:
    """The last block not later than the instant."""
    seq = bisect_right(range(last + 1), instant, key=lambda seq: log.record(seq).block.system_time)
    return log.record(seq - 1) if seq else None


def before(record: Record, kind: str, read: Reader) -> Record | None:
    """The last block of a kind before this one; the kind `slice` means the last block that added data."""
    carried = record.carry
    if kind in ("AddData", "ExecuteTransform"):
        return None if carried.data is None else read(carried.data)
    if kind == "slice":
        return None if carried.slice is None else read(carried.slice)
    event = record.block.event
    if isinstance(event, DataEvent):
        if carried.key is None:
            return None
        key = read(carried.key)
        if key.block.event.kind == kind:
            return key
        carried = key.carry
    at = (carried.keys or {}).get(kind)
    return None if at is None else read(at)
