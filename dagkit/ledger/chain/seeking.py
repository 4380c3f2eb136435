"""Binary search for a block: numbers are gapless, and offsets and times never decrease."""

from collections.abc import Callable
from datetime import datetime

from dagkit.ledger.chain.log import Log
from dagkit.ledger.chain.witness import offset_at
from dagkit.ledger.format.block import Record
from dagkit.ledger.format.events import AddData, ExecuteTransform
from dagkit.ledger.rules.standing import Reader


def by_offset(log: Log, last: int, offset: int) -> Record | None:
    """The block whose slice holds the offset."""

    def reaches(record: Record) -> bool:
        upto = offset_at(record, log.at)
        return upto is not None and upto >= offset

    return _first(log, last, reaches)


def by_time(log: Log, last: int, instant: datetime) -> Record | None:
    """The last block not later than the instant."""
    later = _first(log, last, lambda record: record.block.system_time > instant)
    if later is None:
        return log.record(last)
    return log.record(later.seq - 1) if later.seq else None


def _first(log: Log, last: int, holds: Callable[[Record], bool]) -> Record | None:
    """The first block for which `holds` is true; it must then be true for all later blocks."""
    low, high, found = 0, last, None
    while low <= high:
        middle = (low + high) // 2
        record = log.record(middle)
        if holds(record):
            found, high = record, middle - 1
        else:
            low = middle + 1
    return found


def before(record: Record, kind: str, read: Reader) -> Record | None:
    """The last block of a kind before this one; the kind `slice` means the last block that added data."""
    carried = record.carry
    if kind in ("AddData", "ExecuteTransform"):
        return None if carried.data is None else read(carried.data)
    if kind == "slice":
        return None if carried.slice is None else read(carried.slice)
    event = record.block.event
    if isinstance(event, AddData | ExecuteTransform):
        if carried.key is None:
            return None
        key = read(carried.key)
        if key.block.event.kind == kind:
            return key
        carried = key.carry
    at = (carried.keys or {}).get(kind)
    return None if at is None else read(at)
