"""A thousand records in one file; each can be read alone.

The first line is an index of fixed width, so that the position of any record takes one small read. The other lines are
the records, byte for byte as they were appended.

    {"format":"dagkit.segment/1","first":                2000,"count":  1000,"ends":[         712,        1424, ...]}
"""

import re
from collections.abc import Iterator, Sequence

from dagkit.ledger.format.block import unreadable
from dagkit.ledger.format.faults import ChainBroken, Fault, VersionUnreadable

SEGMENT_FORMAT = "dagkit.segment/1"
SEGMENT_SIZE = 1000
"""Records of a segment; a power of ten, so that people can find a block by the file names."""

_HEAD = '{{"format":"{format}","first":{first:20d},"count":{count:6d},"ends":['
_HEAD_SIZE = len(_HEAD.format(format=SEGMENT_FORMAT, first=0, count=0))
_ENTRY = 13
"""The width of an entry: twelve digits and a comma."""
# The last entry has no comma behind it.
_INDEX_SIZE = _HEAD_SIZE + SEGMENT_SIZE * _ENTRY + len("]}\n") - 1
_FORMAT = re.compile(rb'\{"format":"([^"]*)"')
_NUMBER = re.compile(rb" *[0-9]+")


def pack(first: int, lines: Sequence[bytes]) -> bytes:
    """The segment that holds the lines; a pure function of them, so two writers that pack create the same bytes."""
    assert len(lines) == SEGMENT_SIZE, "segments are full"
    assert first % SEGMENT_SIZE == 0, "segments are aligned"
    end, ends = 0, []
    for line in lines:
        end += len(line)
        ends.append(f"{end:12d}")
    head = _index(first, ends)
    assert len(head) == _INDEX_SIZE, "the index has a fixed width"
    return head + b"".join(lines)


def _index(first: int, ends: Sequence[str]) -> bytes:
    return (_HEAD.format(format=SEGMENT_FORMAT, first=first, count=len(ends)) + ",".join(ends) + "]}\n").encode()


def index_range(place: int) -> tuple[int, int]:
    """The byte range of the index that locates a record: the end of the record before it, and its own end."""
    start = _HEAD_SIZE + (place - 1) * _ENTRY
    return (_HEAD_SIZE if place == 0 else start), _HEAD_SIZE + (place + 1) * _ENTRY


def record_range(place: int, entries: bytes, chain: str, seq: int) -> tuple[int, int]:
    """The byte range of a record in the file, from the index entries that `index_range` located."""
    parts = entries.rstrip(b",]").split(b",")
    numbers = [int(part) for part in parts if _NUMBER.fullmatch(part)]
    if len(numbers) != len(parts) or len(parts) != (1 if place == 0 else 2):
        raise ChainBroken(_damaged(chain, seq))
    start, end = (0, numbers[0]) if place == 0 else numbers
    if not start < end:
        raise ChainBroken(_damaged(chain, seq))
    return _INDEX_SIZE + start, _INDEX_SIZE + end


def refuse_unknown(head: bytes, chain: str, seq: int) -> None:
    """Raise `VersionUnreadable` for a segment of a later version."""
    name = _FORMAT.match(head)
    if name is None:
        raise ChainBroken(_damaged(chain, seq))
    if name[1].decode(errors="replace") != SEGMENT_FORMAT:
        raise VersionUnreadable(unreadable(name[1].decode(errors="replace"), SEGMENT_FORMAT, chain, seq))


def unpack(content: bytes, chain: str, first: int) -> Iterator[bytes]:
    """The lines of a whole segment, in order; if the file ends early, the last line is torn."""
    refuse_unknown(content[:_HEAD_SIZE], chain, first)
    entries = content[_HEAD_SIZE : _INDEX_SIZE - 3].split(b",")
    # An index has one form, as a record has: an edit that means the same is found, too.
    if content[:_INDEX_SIZE] != _index(first, [entry.decode(errors="replace") for entry in entries]):
        raise ChainBroken(_damaged(chain, first))
    start = 0
    for place, entry in enumerate(entries):
        if not _NUMBER.fullmatch(entry) or int(entry) <= start:
            raise ChainBroken(_damaged(chain, first + place))
        end = int(entry)
        yield content[_INDEX_SIZE + start : _INDEX_SIZE + end]
        start = end
    if len(content) != _INDEX_SIZE + start or len(entries) != SEGMENT_SIZE:
        raise ChainBroken(_damaged(chain, first + len(entries) - 1))


def _damaged(chain: str, seq: int) -> Fault:
    return Fault(
        code="segment-damaged",
        problem="the index of its segment does not lead to it",
        help="the file was changed after it was written; restore it from a backup of the folder",
        chain=chain,
        block=seq,
    )
