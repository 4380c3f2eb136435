"""The records of one chain, by number.

    blocks/00000000000000001042.json      the last blocks, one file each: creating the file *is* the append
    segments/00000000000000000000.jsonl   full segments; once one exists, it is authoritative for its numbers

and outside the chain's folder, so that restoring an old copy of the folder does not replace it:

    heads/<name>                          the block that the last writer appended: a hint that also reveals losses

The last block is always a file of its own, so a listing of `blocks/` (never more than two segments' worth of names)
finds the head. A segment is created before the files that it replaces are deleted. So a late writer that creates such
a file again finds the segment and stops.
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
"""Hints have a fixed size, so that overwriting one in place leaves no remains of the old one."""

HEADS = "heads"
"""The folder of the hints. It lies beside the ledger's folder, because it must survive a loss of that folder."""


class Hint(Wire):
    """The last block that a writer appended, and the chain's dataset id."""

    format: Literal["dagkit.head/1"] = HINT_FORMAT
    seq: int
    hash: Multihash
    dataset: DatasetId | None = None

    @property
    def pointer(self) -> Pointer:
        return Pointer(seq=self.seq, hash=self.hash)


@dataclass(frozen=True, slots=True)
class Listing:
    """The result of a listing: the last block, and the first missing block before it, if any."""

    last: int | None
    hole: int | None = None


class Log:
    """Reads and creates records; checks only their form."""

    def __init__(self, store: Store, folder: str, chain: str) -> None:
        self.store = store
        self.folder = folder
        self.chain = chain
        self.blocks_read = 0
        """How many records were read: tests and benchmarks measure costs with it."""
        self._recent: dict[int, bytes] = {}
        """Appended lines that are not packed yet: packing need not read them again."""

    def create(self, seq: int, line: bytes) -> None:
        """Create the record of this number; raise `SequenceTaken`, and change nothing, if it exists."""
        key = self.block_key(seq)
        try:
            self.store.create(key, line)
        except KeyTaken:
            raise self.taken(seq) from None
        # The key is also free if another writer has appended the block and packed it. So each append asks for the
        # segment, which holds the block that was committed.
        if self.store.exists(self._segment_key(seq)):
            committed = self._from_segment(seq)
            self.store.delete([key])
            if committed != line:
                raise self.taken(seq)
            return
        self._recent[seq] = line
        if seq % SEGMENT_SIZE == 0 and seq:
            self._pack_before(seq)

    def has(self, seq: int) -> bool:
        """Whether the block exists; does not read it."""
        return self.store.exists(self.block_key(seq)) or self.store.exists(self._segment_key(seq))

    def line(self, seq: int) -> bytes:
        """The bytes of a record, from its segment if there is one, else from its own file."""
        self.blocks_read += 1
        return self._line(seq)

    def _line(self, seq: int) -> bytes:
        # A file that vanishes between the two reads was moved into a segment, so a second round finds it there. The
        # segment comes first: a loose file beside it may be that of a late writer.
        for _ in range(2):
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
        """The record of this number; raise `ChainBroken` if it is damaged."""
        return unseal(self.line(seq), self.chain, seq)

    def at(self, pointer: Pointer) -> Record:
        """The record that a pointer names; raise `ChainBroken` if its hash differs."""
        record = self.record(pointer.seq)
        if record.hash != pointer.hash:
            fault = Fault(
                code="link-broken",
                problem=f"its hash should be {pointer.hash}, but it is {record.hash}",
                help="the history was rewritten; restore the folder from a backup",
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
                for number in range(seq, min(last + 1, start + SEGMENT_SIZE)):
                    yield number, self.line(number)
            else:
                for number, line in enumerate(segment.unpack(packed, self.chain, start), start):
                    if seq <= number <= last:
                        self.blocks_read += 1
                        yield number, line
            seq = start + SEGMENT_SIZE

    def records(self, first: int, last: int) -> Iterator[Record]:
        """The records from `first` to `last`, both included."""
        for seq, line in self.lines(first, last):
            yield unseal(line, self.chain, seq)

    def find(self) -> Listing:
        """Find the last block by listing; no block is read."""
        loose = self.loose()
        if not loose:
            sealed = self.sealed()
            # The head is never packed, so segments without a file after them have lost it.
            return Listing(None) if not sealed else Listing(None, hole=sealed[-1] + SEGMENT_SIZE)
        last = max(loose)
        present, seq = set(loose), last
        # Also ask for each name: a listing may miss blocks that are created meanwhile.
        while seq in present or (seq >= 0 and self.store.exists(self.block_key(seq))):
            seq -= 1
        if seq < 0 or self.store.exists(self._segment_key(seq)):
            return Listing(last)
        # Not block by block: a stray file may have a huge number.
        before = [number for number in loose if number < seq] + [s + SEGMENT_SIZE - 1 for s in self.sealed() if s < seq]
        return Listing(last, hole=max(before, default=-1) + 1)

    def is_unborn(self) -> bool:
        """Whether nothing was ever appended here; a lost chain still has a hint or a segment."""
        return not self.loose() and not self.sealed() and not self.is_noted()

    def is_noted(self) -> bool:
        """Whether a writer left a hint, even a torn one."""
        return any(self.store.exists(key) for key in self.hint_keys)

    @property
    def hint_keys(self) -> tuple[str, str]:
        """The key of the hint, and the one of earlier releases, in the chain's own folder."""
        return f"{HEADS}/{self.folder.rpartition('/')[2]}", f"{self.folder}/refs/head"

    def loose(self) -> list[int]:
        """The numbers of the blocks that are files of their own."""
        return self._numbers("blocks", _BLOCK_NAME)

    def sealed(self) -> list[int]:
        """The first numbers of the segments, in order."""
        return sorted(self._numbers("segments", _SEGMENT_NAME))

    def _numbers(self, inner: str, form: re.Pattern[str]) -> list[int]:
        """The numbers in the names that match; other files are not the ledger's and are ignored."""
        matches = map(form.fullmatch, self.store.names(f"{self.folder}/{inner}"))
        return [int(match[1]) for match in matches if match is not None]

    def hint(self) -> Hint | None:
        """The block that the last writer noted; None if there is no hint or it is torn."""
        for key in self.hint_keys:
            try:
                content = self.store.get(key)
            except KeyMissing:
                continue
            try:
                document = read_json(content)
                checked = document.pop("check") == _check(document)
            except (ValueError, TypeError, KeyError, AttributeError):
                return None  # torn: the listing finds the head
            return parse(Hint, document, HINT_FORMAT, self.chain) if checked else None
        return None

    def set_hint(self, pointer: Pointer, dataset: str | None = None) -> None:
        """Note the head for the next opening; log a warning if that fails."""
        hint = Hint(seq=pointer.seq, hash=pointer.hash, dataset=dataset).as_json()
        text = canonical({**hint, "check": _check(hint)})
        try:
            self.store.note(self.hint_keys[0], f"{text:<{_HINT_SIZE}}\n".encode())
        except StoreError as error:
            _logger.warning("the head of %s could not be noted: %s", self.chain, error.fault.problem)

    def pack(self, first: int) -> int:
        """Pack the full run of blocks from `first` into a segment; return how many files were deleted."""
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
        # After the segment: a reader, or a crash in between, must find each block in one of the two places.
        self.store.delete(self.block_key(seq) for seq in gone)
        return len(gone)

    def differing(self) -> Iterator[Fault]:
        """A fault for each loose block that differs from the same block in a segment."""
        for first in sorted({seq - seq % SEGMENT_SIZE for seq in self.loose()}):
            try:
                if self.store.exists(self._segment_key(first)):
                    self._kept_twice(first)
            except (ChainBroken, VersionUnreadable) as error:
                yield error.fault

    def _kept_twice(self, first: int) -> list[int]:
        """The loose blocks that an existing segment holds too; raise `ChainBroken` unless the segment is whole."""
        # The caller deletes these files, which may be the only intact copy. So the whole segment is read first.
        loose = [seq for seq in self.loose() if first <= seq < first + SEGMENT_SIZE]
        if not loose:
            return []
        content = self.store.get(self._segment_key(first))
        lines = list(segment.unpack(content, self.chain, first))
        if len(lines) != SEGMENT_SIZE or segment.pack(first, lines) != content:
            raise ChainBroken(self._unlike(first))
        doubled = []
        for seq in loose:
            with contextlib.suppress(KeyMissing):  # the other writer is deleting them
                if self.store.get(self.block_key(seq)) != lines[seq - first]:
                    raise ChainBroken(self._unlike(seq))
                doubled.append(seq)
        return doubled

    def _again(self, seq: int) -> bytes:
        """Read and check a line of an earlier session; a damaged one stays a file, which a backup can replace."""
        line = self._line(seq)
        unseal(line, self.chain, seq)
        return line

    def _pack_before(self, seq: int) -> None:
        """Pack all full runs, also those that a crash or a full disk left loose; one listing in a thousand appends."""
        starts = {seq - SEGMENT_SIZE}
        with contextlib.suppress(StoreError):  # the block is appended; the next packing tries again
            starts.update(number - number % SEGMENT_SIZE for number in self.loose() if number < seq)
        for first in sorted(starts):
            self._pack_quietly(first)

    def _pack_quietly(self, first: int) -> None:
        """Pack, and log a warning on failure: the block is appended already, so a failure only leaves more files."""
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
        """The key of the block until it is packed."""
        return f"{self.folder}/blocks/{seq:020d}.json"

    def _segment_key(self, seq: int) -> str:
        return f"{self.folder}/segments/{seq - seq % SEGMENT_SIZE:020d}.jsonl"

    def taken(self, seq: int) -> SequenceTaken:
        """The error for a writer that another one has overtaken."""
        return SequenceTaken(
            Fault(
                code="sequence-taken",
                problem="another writer has appended this block",
                help="another driver runs this application, but only one may: stop one of the two; code that appends "
                "to a chain must reopen it and plan again",
                chain=self.chain,
                block=seq,
            )
        )

    def _unlike(self, seq: int) -> Fault:
        return Fault(
            code="segment-damaged",
            problem="its segment and its own file differ; nothing was deleted",
            help="keep the one that `verify` accepts, or restore the folder from a backup",
            chain=self.chain,
            block=seq,
        )

    def _missing(self, seq: int) -> Fault:
        return Fault(
            code="block-missing",
            problem="the block is missing",
            help="it was committed and is lost; restore it from a backup of the folder",
            chain=self.chain,
            block=seq,
        )


def _check(fields: Mapping[str, Any]) -> str:
    """A checksum that separates a torn hint from a forged one."""
    parts = [fields["seq"], fields["hash"], *([fields["dataset"]] if "dataset" in fields else [])]
    return hash_of(" ".join(map(str, parts)).encode())[-16:]
