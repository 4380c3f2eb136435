"""Finding files and dividing them, without copying, into blocks that readers share."""

import base64
import hashlib
import logging
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import Field, PositiveInt, PrivateAttr

from dagkit import Block, Context, InputOperator, OutputPort, State, Until
from dagkit.urls import shown
from dagkit_operators.filesystem.access import Found, looked_up
from dagkit_operators.finding.scanner import DirectoryScanner
from dagkit_operators.payloads import BLOCK_SIZE, FileInfo

BLOCKS_THRESHOLD = 1000
"""The default number of blocks for each window."""
DIGEST = 16
"""Base64 characters by which the splitter remembers a file."""
KEPT_OF_GONE = 1000
"""Deleted files are remembered until they outnumber the existing files by this many."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Cut:
    """The file that is being split, and the start of its next block."""

    path: str
    length: int
    modified_millis: int
    version: str
    next_start: int


class FileSplitterInput(InputOperator):
    """Finds new and changed files, and describes the blocks in which readers read them.

    Files are sent in the order of their last change, and by path if that is equal. Blocks are numbered from 0 across
    all files. If the length or time of change of a file differs from before, the whole file is read again as new
    blocks.

    The splitter remembers each file by a digest of sixteen characters of its path, length and time of change. Files may
    arrive late with any old time. Once deleted files outnumber the existing ones by a thousand, they are forgotten, so
    memory grows with the current content of the directories. Until then, a file that returns unchanged is not read
    twice.
    """

    kind = "files.splitter/1"
    checkpointable_within_app_window = False
    partitionable = False
    files_metadata_output = OutputPort(FileInfo)
    blocks_metadata_output = OutputPort(Block, main=True)

    scanner: DirectoryScanner = Field(default=...)
    """Where and how to scan for files."""
    block_size: PositiveInt | None = None
    """Bytes of a block; None: 64 MiB."""
    blocks_threshold: PositiveInt | None = None
    """The most blocks, and the most files, sent in one window; None: 1000."""

    next_block_id = State(0)
    cut = State[Cut | None](None)
    """The file that is being split; None between files."""
    known = State("")
    """The concatenated digests of the files that were split or begun."""
    paths_return = State(False)
    """Whether any file ever changed or disappeared. Until then every path is new; afterwards paths may recur."""

    _context: Context | None = PrivateAttr(default=None)
    _found: deque[Found] = PrivateAttr(default_factory=deque)
    """Files of the last scan that are not split yet."""
    _digests: set[str] = PrivateAttr(default_factory=set)
    """The digests in `known`, as a set."""
    _added: list[str] = PrivateAttr(default_factory=list)
    """Digests that `emit_tuples` appends to `known` at its end, all at once: each append copies the whole text."""
    _next_scan: datetime | None = PrivateAttr(default=None)
    """When the next scan is due; None: at once."""
    _scans: int = PrivateAttr(default=0)

    def would_find(self, paths: Sequence[str], items: Sequence[object]) -> Iterator[str]:  # noqa: ARG002 - it has no input port
        """The paths at which the scanner would find a file."""
        return self.scanner.would_find(paths)

    def setup(self, context: Context) -> None:
        self._context = context
        self._digests = {self.known[place : place + DIGEST] for place in range(0, len(self.known), DIGEST)}
        self._added.clear()
        self._found.clear()
        self._next_scan = None
        self._scans = 0

    def emit_tuples(self) -> None:
        """Describe as many blocks as a window may have. Scan first if the files of the last scan are all split."""
        if self.cut is None and not self._found and self._is_due():
            self._scan()
        self._describe_what_is_due()
        if self._added:
            self.known += "".join(self._added)
            self._added.clear()

    def _describe_what_is_due(self) -> None:
        most = self.blocks_threshold or BLOCKS_THRESHOLD
        blocks = files = 0
        while blocks < most:
            if self.cut is None:
                if files == most or not self._begin():
                    return
                # an empty file counts only if its FileInfo is sent: otherwise this call would produce nothing for it
                files += self.files_metadata_output.is_connected
            if self.cut is not None:
                blocks += self._describe(most - blocks)

    def looks_again_in_millis(self) -> int | None:
        """The time left until the next scan is due."""
        if self._next_scan is None:
            return 0
        return max(0, -(-(self._next_scan - self._now()) // timedelta(milliseconds=1)))

    def _now(self) -> datetime:
        assert self._context is not None, "an operator is set up before it runs"
        return datetime.now(UTC) if self._context.now is None else self._context.now()

    def _is_due(self) -> bool:
        assert self._context is not None, "an operator is set up before it runs"
        if self._context.until is Until.ONCE and self._scans:
            return False
        return self._next_scan is None or self._now() >= self._next_scan

    def _scan(self) -> None:
        """Queue the unknown files, oldest first. Forget deleted files once there are too many."""
        # If nothing was ever found, a missing path is more likely a typing error than a deleted file.
        there = {found.path: found for found in self.scanner.scan(once_there=self.next_block_id > 0)}
        digests = {path: digest(found) for path, found in there.items()}
        gone = self._digests.difference(digests.values())
        if gone:
            self.paths_return = True
        if len(gone) > len(there) + KEPT_OF_GONE:
            self._digests -= gone
            self.known = "".join(sorted(self._digests))
        new = [found for path, found in there.items() if digests[path] not in self._digests]
        self._found.extend(sorted(new, key=lambda found: (found.modified_millis, found.path)))
        self._scans += 1
        self._next_scan = self._now() + timedelta(milliseconds=self.scanner.scan_interval_millis)

    def _begin(self) -> bool:
        """Begin the next file, as it is now, and send its FileInfo. Return False if there is none."""
        while self._found:
            found = looked_up(self._found[0].path)
            if found is None:
                _log.warning("%s is gone, and was not split; it is skipped", shown(self._found[0].path))
            self._found.popleft()
            if found is None:
                continue
            letters = digest(found)
            if letters in self._digests:
                continue
            self._digests.add(letters)
            self._added.append(letters)
            count = -(-found.length // self._block_size)
            self.files_metadata_output.emit(FileInfo(found.path, found.length, found.modified_millis, count))
            if count:
                version = f"{self.next_block_id:x}" if self.paths_return else ""
                self.cut = Cut(found.path, found.length, found.modified_millis, version, 0)
            return True
        return False

    @property
    def _block_size(self) -> int:
        return self.block_size or BLOCK_SIZE

    def _describe(self, most: int) -> int:
        """Describe up to `most` blocks of the file that is being split, and return their number."""
        cut = self.cut
        assert cut is not None, "there is a file to be split"
        facts: dict[str, Any] = {"length": cut.length, "modified_millis": cut.modified_millis}
        starts = range(cut.next_start, cut.length, self._block_size)[:most]
        for block_id, start in enumerate(starts, self.next_block_id):
            end, previous = min(start + self._block_size, cut.length), block_id - 1 if start else None
            self.blocks_metadata_output.emit(
                Block(block_id, cut.path, start, end, end == cut.length, cut.version, facts, previous)
            )
        self.next_block_id += len(starts)
        after = starts[-1] + self._block_size
        self.cut = replace(cut, next_start=after) if after < cut.length else None
        return len(starts)


def digest(found: Found) -> str:
    """A digest of sixteen characters. Two given files share it with a probability of 2^-96."""
    facts = f"{found.length} {found.modified_millis} {found.path}"
    return base64.b64encode(hashlib.blake2b(facts.encode(), digest_size=12).digest()).decode()
