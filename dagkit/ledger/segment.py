"""A thousand records in one file, each readable alone.

The first line is an index of fixed width, so that the place of any record is known before the file is read; the lines
after it are the records, byte for byte as they were appended.

    {"format":"dagkit.segment/1","first":                2000,"count":  1000,"ends":[         712,        1424, ...]}
"""

import re
from collections.abc import Iterator, Sequence

from dagkit.ledger.block import unreadable
from dagkit.ledger.faults import ChainBroken, Fault, VersionUnreadable

SEGMENT_FORMAT = "dagkit.segment/1"
SEGMENT_SIZE = 1000
"""Records of a segment; a power of ten, so that people find a block by looking at the names."""

_HEAD = '{{"format":"{format}","first":{first:20d},"count":{count:6d},"ends":['
_HEAD_SIZE = len(_HEAD.format(format=SEGMENT_FORMAT, first=0, count=0))
_ENTRY = 13
_INDEX_SIZE = _HEAD_SIZE + SEGMENT_SIZE * _ENTRY + len("]}\n") - 1
_SAID = re.compile(rb'\{"format":"([^"]*)"')


def pack(first: int, lines: Sequence[bytes]) -> bytes:
    """The segment that holds the lines; a pure function of them, so two packers write the same bytes."""
    assert len(lines) == SEGMENT_SIZE, "segments are full"
    assert first % SEGMENT_SIZE == 0, "segments are aligned"
    end, ends = 0, []
    for line in lines:
        end += len(line)
        ends.append(f"{end:12d}")
    head = _HEAD.format(format=SEGMENT_FORMAT, first=first, count=len(lines)) + ",".join(ends) + "]}\n"
    assert len(head) == _INDEX_SIZE, "the index has a fixed width"
    return head.encode() + b"".join(lines)


def index_range(place: int) -> tuple[int, int]:
    """The bytes of the index that tell where a record lies: the end before it, and its own."""
    start = _HEAD_SIZE + (place - 1) * _ENTRY
    return (_HEAD_SIZE if place == 0 else start), _HEAD_SIZE + (place + 1) * _ENTRY


def record_range(place: int, entries: bytes, chain: str, seq: int) -> tuple[int, int]:
    """The bytes of the file that hold the record, from what `index_range` brought."""
    numbers = [part.strip(b"]}\n") for part in entries.split(b",") if part.strip(b"]}\n")]
    try:
        start, end = (0, int(numbers[0])) if place == 0 else (int(numbers[0]), int(numbers[1]))
    except (ValueError, IndexError) as error:
        raise ChainBroken(_damaged(chain, seq)) from error
    return _INDEX_SIZE + start, _INDEX_SIZE + end


def refuse_unknown(head: bytes, chain: str, seq: int) -> None:
    """A segment of a later version is refused by name."""
    said = _SAID.match(head)
    if said is None:
        raise ChainBroken(_damaged(chain, seq))
    if said[1].decode(errors="replace") != SEGMENT_FORMAT:
        raise VersionUnreadable(unreadable(said[1].decode(errors="replace"), SEGMENT_FORMAT, chain, seq))


def unpack(content: bytes, chain: str, first: int) -> Iterator[bytes]:
    """The lines of a whole segment, in order; where the file ends early, the last is torn."""
    refuse_unknown(content[:_HEAD_SIZE], chain, first)
    if content[_INDEX_SIZE - 1 : _INDEX_SIZE] != b"\n":
        raise ChainBroken(_damaged(chain, first))
    ends = content[_HEAD_SIZE : _INDEX_SIZE - 3].split(b",")
    start = 0
    for place, entry in enumerate(ends):
        try:
            end = int(entry)
        except ValueError as error:
            raise ChainBroken(_damaged(chain, first + place)) from error
        yield content[_INDEX_SIZE + start : _INDEX_SIZE + end]
        start = end
    if len(content) != _INDEX_SIZE + start:
        raise ChainBroken(_damaged(chain, first + len(ends) - 1))


def _damaged(chain: str, seq: int) -> Fault:
    return Fault(
        code="segment-damaged",
        problem="the index of its segment does not lead to it",
        help="the file was changed after it was written; bring it back from a copy of the folder",
        chain=chain,
        block=seq,
    )
