"""The records of one chain, by number.

    blocks/00000000000000001042.json      the last blocks, one file each: creating the file *is* the append
    segments/00000000000000000000.jsonl   full segments; once one exists, it alone speaks for its numbers

and outside the chain's folder, where a copy that replaces the folder leaves it alone:

    heads/<name>                          which block the last writer appended: a hint, and a witness against loss

The last block is always a file of its own, so a listing of `blocks/` (never more than two segments' worth of names)
finds the head. A segment is created before the files that it replaces are deleted; so a late writer who creates such a
file anew finds the segment, and knows that it lost.
"""

import contextlib
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dagkit.ledger.format import segment
from dagkit.ledger.format.block import Pointer, Record, parse, unseal
from dagkit.ledger.format.events import DatasetId
from dagkit.ledger.format.faults import ChainBroken, Fault, SequenceTaken, StoreError, VersionUnreadable
from dagkit.ledger.format.hashing import Multihash, canonical, hash_of, read_json
from dagkit.ledger.format.segment import SEGMENT_SIZE
from dagkit.ledger.format.wire import Wire
from dagkit.ledger.stores.store import KeyMissing, KeyTaken, Store

HINT_FORMAT: Literal["dagkit.head/1"] = "dagkit.head/1"

_logger = logging.getLogger(__name__)


_BLOCK_NAME = re.compile(r"([0-9]{20})\.json")
_SEGMENT_NAME = re.compile(r"([0-9]{20})\.jsonl")

_HINT_SIZE = 320
"""Of one size, so that writing it over in place leaves nothing of the one before."""


HEADS = "heads"
"""The folder of the hints. It lies beside the ledger's folder: it must survive what happens to that."""


class Hint(Wire):
    """The last block that a writer appended, and of which chain."""

    format: Literal["dagkit.head/1"] = HINT_FORMAT
    seq: int
    hash: Multihash
    dataset: DatasetId | None = None

    @property
    def pointer(self) -> Pointer:
        return Pointer(seq=self.seq, hash=self.hash)


@dataclass(frozen=True, slots=True)
class Found:
    """What a listing found: the last block, and the first that is missing before it, if any."""

    last: int | None
    hole: int | None = None


class Log:
    """Reads and creates records; judges nothing but their form."""

    def __init__(self, store: Store, folder: str, chain: str) -> None:
        self.store = store
        self.folder = folder
        self.chain = chain
        self.blocks_read = 0
        """How many records were read, for whoever wants to know what an operation costs."""
        self._recent: dict[int, bytes] = {}
        """The lines appended here that are not packed yet, so that packing need not read them again."""

    def create(self, seq: int, line: bytes) -> None:
        """The line is the record of this number from here on, or `SequenceTaken` and nothing was changed."""
        key = self.block_key(seq)
        try:
            self.store.create(key, line)
        except KeyTaken:
            raise self.taken(seq) from None
        if self.store.exists(self._segment_key(seq)):  # we are late by a thousand blocks: which one was kept?
            kept = self._from_segment(seq)
            self.store.delete([key])
            if kept != line:
                raise self.taken(seq)
            return
        self._recent[seq] = line
        if seq % SEGMENT_SIZE == 0 and seq:
            self._pack_before(seq)

    def has(self, seq: int) -> bool:
        """Whether the block exists; it is not read."""
        return self.store.exists(self.block_key(seq)) or self.store.exists(self._segment_key(seq))

    def line(self, seq: int) -> bytes:
        """The bytes of a record; a segment is asked first, for it alone speaks for its numbers."""
        self.blocks_read += 1
        return self._line(seq)

    def _line(self, seq: int) -> bytes:
        for _ in range(2):  # a file that goes between the two questions has gone into a segment
            try:
                return self._from_segment(seq)
            except KeyMissing:
                pass
            try:
                return self.store.get(self.block_key(seq))
            except KeyMissing:
                pass
        raise ChainBroken(self._missing(seq))

    def record(self, seq: int) -> Record:
        """The record of this number, which is what it says it is."""
        return unseal(self.line(seq), self.chain, seq)

    def at(self, pointer: Pointer) -> Record:
        """The record that a pointer names, which has the hash that the pointer says."""
        record = self.record(pointer.seq)
        if record.hash != pointer.hash:
            fault = Fault(
                code="link-broken",
                problem=f"it should be {pointer.hash}, and it is {record.hash}",
                help="the history was rewritten; bring the folder back from a copy",
                chain=self.chain,
                block=pointer.seq,
            )
            raise ChainBroken(fault)
        return record

    def lines(self, first: int, last: int) -> Iterator[tuple[int, bytes]]:
        """The lines from `first` to `last`, both included, one segment in memory at a time."""
        seq = first
        while seq <= last:
            start = seq - seq % SEGMENT_SIZE
            try:
                packed = self.store.get(self._segment_key(seq))
            except KeyMissing:
                for one in range(seq, min(last + 1, start + SEGMENT_SIZE)):
                    yield one, self.line(one)
            else:
                for one, line in enumerate(segment.unpack(packed, self.chain, start), start):
                    if seq <= one <= last:
                        self.blocks_read += 1
                        yield one, line
            seq = start + SEGMENT_SIZE

    def records(self, first: int, last: int) -> Iterator[Record]:
        """The records from `first` to `last`, both included."""
        for seq, line in self.lines(first, last):
            yield unseal(line, self.chain, seq)

    def find(self) -> Found:
        """The last block there is, by listing; no block is read."""
        loose = self.loose()
        if not loose:
            sealed = self.sealed()
            return Found(None) if not sealed else Found(None, hole=sealed[-1] + SEGMENT_SIZE)
        last = max(loose)
        present, seq = set(loose), last
        while seq in present or (seq >= 0 and self.store.exists(self.block_key(seq))):
            seq -= 1  # asked by name too: a listing may miss what is created while it is made
        if seq < 0 or self.store.exists(self._segment_key(seq)):
            return Found(last)
        before = [one for one in loose if one < seq] + [s + SEGMENT_SIZE - 1 for s in self.sealed() if s < seq]
        return Found(last, hole=max(before, default=-1) + 1)  # not step by step: a strange name may be far away

    def is_unborn(self) -> bool:
        """Whether nothing was ever appended here; a lost chain still has a hint or a segment that tells of it."""
        return not self.loose() and not self.sealed() and not self.is_noted()

    def is_noted(self) -> bool:
        """Whether a writer left a hint, be it torn."""
        return any(self.store.exists(key) for key in self.hint_keys)

    @property
    def hint_keys(self) -> tuple[str, str]:
        """Where the hint lies, and where writers before decision 0105 left it."""
        return f"{HEADS}/{self.folder.rpartition('/')[2]}", f"{self.folder}/refs/head"

    def loose(self) -> list[int]:
        """The numbers of the blocks that are files of their own."""
        return self._numbers("blocks", _BLOCK_NAME)

    def sealed(self) -> list[int]:
        """The first numbers of the segments, in order."""
        return sorted(self._numbers("segments", _SEGMENT_NAME))

    def _numbers(self, inner: str, form: re.Pattern[str]) -> list[int]:
        """What has another name was put there by somebody else, and is left alone."""
        matches = map(form.fullmatch, self.store.names(f"{self.folder}/{inner}"))
        return [int(match[1]) for match in matches if match is not None]

    def hint(self) -> Hint | None:
        """Which block the last writer said it appended; None where no writer did, or the file is torn."""
        for key in self.hint_keys:
            try:
                said = self.store.get(key)
            except KeyMissing:
                continue
            try:
                document = read_json(said)
                checked = document.pop("check") == _check(document)
            except (ValueError, TypeError, KeyError, AttributeError):
                return None  # torn: the listing knows
            return parse(Hint, document, HINT_FORMAT, self.chain) if checked else None
        return None

    def set_hint(self, pointer: Pointer, dataset: str | None = None) -> None:
        """Leave the hint for the next one who opens; a hint that cannot be left costs nothing but a warning."""
        said = Hint(seq=pointer.seq, hash=pointer.hash, dataset=dataset).as_json()
        text = canonical({**said, "check": _check(said)})
        try:
            self.store.note(self.hint_keys[0], f"{text:<{_HINT_SIZE}}\n".encode())
        except StoreError as error:
            _logger.warning("the head of %s could not be noted: %s", self.chain, error.fault.problem)

    def pack(self, first: int) -> int:
        """The full run of blocks from `first` is a segment; gives how many files went away."""
        numbers = range(first, first + SEGMENT_SIZE)
        gone = list(numbers)
        if self.store.exists(self._segment_key(first)):
            gone = self._kept_twice(first)
        else:
            lines = [self._recent.get(seq) or self._again(seq) for seq in numbers]
            try:
                self.store.create(self._segment_key(first), segment.pack(first, lines))
            except KeyTaken:
                gone = self._kept_twice(first)
        for seq in numbers:
            self._recent.pop(seq, None)
        self.store.delete(self.block_key(seq) for seq in gone)
        return len(gone)

    def differing(self) -> Iterator[Fault]:
        """Files that a packing left, or somebody put, beside a segment that does not say the same as they."""
        for first in sorted({seq - seq % SEGMENT_SIZE for seq in self.loose()}):
            try:
                if self.store.exists(self._segment_key(first)):
                    self._kept_twice(first)
            except (ChainBroken, VersionUnreadable) as error:
                yield error.fault

    def _kept_twice(self, first: int) -> list[int]:
        """The loose blocks that the segment, which somebody else made, holds too; it is whole, or `ChainBroken`.

        The files may be the only good copy, so that none goes before the segment was read.
        """
        loose = [seq for seq in self.loose() if first <= seq < first + SEGMENT_SIZE]
        if not loose:
            return []
        content = self.store.get(self._segment_key(first))
        lines = list(segment.unpack(content, self.chain, first))
        if len(lines) != SEGMENT_SIZE or segment.pack(first, lines) != content:
            raise ChainBroken(self._unlike(first))
        kept = []
        for seq in loose:
            with contextlib.suppress(KeyMissing):  # the other packer is deleting them
                if self.store.get(self.block_key(seq)) != lines[seq - first]:
                    raise ChainBroken(self._unlike(seq))
                kept.append(seq)
        return kept

    def _again(self, seq: int) -> bytes:
        """A line that an earlier session appended; a damaged one stays a file, which a copy can still mend."""
        line = self._line(seq)
        unseal(line, self.chain, seq)
        return line

    def _pack_before(self, seq: int) -> None:
        """Every full run is packed, also those that a crash or a full disk left loose; one listing in a thousand."""
        starts = {seq - SEGMENT_SIZE}
        with contextlib.suppress(StoreError):  # the block is appended; the next thousand makes up for it
            starts.update(one - one % SEGMENT_SIZE for one in self.loose() if one < seq)
        for first in sorted(starts):
            self._pack_quietly(first)

    def _pack_quietly(self, first: int) -> None:
        """The block is appended; that it cannot be packed now only leaves more files."""
        try:
            self.pack(first)
        except (StoreError, ChainBroken, VersionUnreadable) as error:
            _logger.warning("blocks from %d of %s are not packed: %s", first, self.chain, error.fault.problem)

    def _from_segment(self, seq: int) -> bytes:
        key, place = self._segment_key(seq), seq % SEGMENT_SIZE
        entries = self.store.get_range(key, *segment.index_range(place))
        start, end = segment.record_range(place, entries, self.chain, seq)
        return self.store.get_range(key, start, end)

    def block_key(self, seq: int) -> str:
        """Where the block lies while it is a file of its own."""
        return f"{self.folder}/blocks/{seq:020d}.json"

    def _segment_key(self, seq: int) -> str:
        return f"{self.folder}/segments/{seq - seq % SEGMENT_SIZE:020d}.jsonl"

    def taken(self, seq: int) -> SequenceTaken:
        """What a writer is told who came second."""
        return SequenceTaken(
            Fault(
                code="sequence-taken",
                problem="another writer has appended this block",
                help="another driver runs this application, and only one may: stop one of the two; code that writes a "
                "chain by itself opens it again, and plans anew",
                chain=self.chain,
                block=seq,
            )
        )

    def _unlike(self, seq: int) -> Fault:
        return Fault(
            code="segment-damaged",
            problem="its segment and the file beside it do not say the same; nothing was deleted",
            help="keep the one that `verify` finds whole, or bring the folder back from a copy",
            chain=self.chain,
            block=seq,
        )

    def _missing(self, seq: int) -> Fault:
        return Fault(
            code="block-missing",
            problem="the block is not there",
            help="it was committed and is lost; bring it back from a copy of the folder",
            chain=self.chain,
            block=seq,
        )


def _check(said: Mapping[str, Any]) -> str:
    """Tells a hint that was torn while it was written from one that lies."""
    parts = [said["seq"], said["hash"], *([said["dataset"]] if "dataset" in said else [])]
    return hash_of(" ".join(map(str, parts)).encode())[-16:]
