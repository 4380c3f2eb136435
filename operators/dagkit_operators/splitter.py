"""Finding files and splitting them, virtually, into blocks that readers share."""

import base64
import hashlib
import logging
import os
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveInt, PrivateAttr, field_validator

from dagkit import Block, Context, InputOperator, OutputPort, State, Until
from dagkit.patterns import HELP, is_whole, refusal
from dagkit.urls import absolute, is_url, plain, shown
from dagkit_operators.blocks import FileInfo
from dagkit_operators.places import (
    Found,
    exists,
    files_below,
    looked_up,
    missing,
    path_below,
    reading_from,
    refuse_special,
    unfinished,
)

BLOCK_SIZE = 64 << 20
"""Bytes of a block where nobody says otherwise."""
BLOCKS_THRESHOLD = 1000
"""Blocks of a window where nobody says otherwise."""
DIGEST = 16
"""Letters that stand for a file in the splitter's memory, of six bits each."""
KEPT_OF_GONE = 1000
"""Files that are gone and remembered nevertheless, beside as many as are there."""

_THEN = "or name another place in scanner.files"
_log = logging.getLogger(__name__)


class DirectoryScanner(BaseModel):
    """Which files are looked for, where, and how often."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    files: tuple[str, ...] = Field(min_length=1)
    """The files and directories to scan: paths, or URLs that pyarrow or fsspec open."""
    recursive: bool = True
    """Whether directories inside directories are scanned too."""
    scan_interval_millis: NonNegativeInt = 5000
    """The time from the end of a scan to the start of the next."""
    file_pattern_regular_exp: str | None = None
    """What the whole path must match; none: every path."""
    ignore_file_pattern_regular_exp: str | None = None
    """What the whole path must not match."""
    skip_unfinished: bool = True
    """Whether what is hidden or not finished is passed over in directories: `.name`, `name.tmp`, `name._COPYING_`."""
    trigger: bool = False
    """Scans at once where `dagkit set` gives it a value, whatever is left of the interval. Each launch begins with a
    scan anyway."""

    @field_validator("files", mode="before")
    @classmethod
    def _one_or_many(cls, given: Any) -> Any:
        if isinstance(given, str | os.PathLike):
            return (os.fspath(given),)
        if isinstance(given, list | tuple):
            return tuple(os.fspath(path) if isinstance(path, os.PathLike) else path for path in given)
        return given

    @field_validator("file_pattern_regular_exp", "ignore_file_pattern_regular_exp")
    @classmethod
    def _compiles(cls, pattern: str | None) -> str | None:
        why_not = None if pattern is None else refusal(pattern)
        if why_not is not None:
            raise ValueError(f"it is no regular expression: {why_not}; {HELP}")
        return pattern

    def scan(self, *, once_there: bool = False) -> Iterator[Found]:
        """The files that are there now. A path that is named and not there is an error, or a warning if it once was."""
        for root in map(absolute, self.files):
            with reading_from(root, _THEN):
                yield from self._scan(root, once_there=once_there)

    def _scan(self, root: str, *, once_there: bool) -> Iterator[Found]:
        refuse_special(root)
        named, path = looked_up(root), plain(root)
        if named is not None:
            if self._matches(path):
                yield named
        elif exists(root):
            yield from files_below(root, recursive=self.recursive, wanted=partial(self._wanted, path.rstrip("/")))
        elif once_there:
            problem = "scanner.files names %s, and there is no such file or directory; it is looked for again"
            _log.warning(problem, shown(root))
        else:
            raise missing(root, _THEN)

    def would_find(self, place: str) -> bool:
        """Whether a scan would find a file at this place."""
        return any(self._would_find(place, root) for root in map(absolute, self.files))

    def _would_find(self, place: str, root: str) -> bool:
        below, shown_root = path_below(place, root), root.partition("?")[0].rstrip("/") if is_url(root) else root
        if not below:
            return below is not None and self._matches(shown_root)
        return (self.recursive or "/" not in below) and self._wanted(shown_root, below)

    def _wanted(self, root: str, below: str) -> bool:
        return self._matches(f"{root}/{below}") and not (self.skip_unfinished and unfinished(below))

    def _matches(self, path: str) -> bool:
        wanted, unwanted = self.file_pattern_regular_exp, self.ignore_file_pattern_regular_exp
        return (wanted is None or is_whole(wanted, path)) and (unwanted is None or not is_whole(unwanted, path))


@dataclass(frozen=True, slots=True)
class Cut:
    """The file that is being split, and where its next block starts."""

    path: str
    length: int
    modified_millis: int
    version: str
    next_start: int


class FileSplitterInput(InputOperator):
    """Finds new and changed files, and describes the blocks that they are to be read in.

    Files come in the order of their last change, those of one instant by path; blocks are numbered from 0 on, over all
    files. A file whose length or time of change is another than before is read again, whole, as new blocks.

    What is remembered of a file is sixteen letters, which stand for its path, length and time of change. Nothing is
    assumed of files that come late, with whatever old time. Files that are gone are forgotten once they are a thousand
    more than those that are there, so that the memory grows with what lies in the directories, and not with what ever
    lay there; until then a file that comes back as it was is not read twice.
    """

    kind = "files.splitter/1"
    checkpointable_within_app_window = False
    partitionable = False
    files_metadata_output = OutputPort(FileInfo)
    blocks_metadata_output = OutputPort(Block, main=True)

    scanner: DirectoryScanner = Field(default=...)
    """Where files are looked for."""
    block_size: PositiveInt | None = None
    """Bytes of a block; none: 64 MiB."""
    blocks_threshold: PositiveInt | None = None
    """Blocks described in one window at most, and files told of; none: 1000."""

    next_block_id = State(0)
    cut = State[Cut | None](None)
    """The file that is being split; none between files."""
    known = State("")
    """The digests of the files that were split, or begun, one after the other."""
    paths_return = State(False)
    """Whether any file ever changed or went away. Until then every path is new; from then on it may come again."""

    _context: Context | None = PrivateAttr(default=None)
    _found: deque[Found] = PrivateAttr(default_factory=deque)
    """Files of the last scan that are still to be split."""
    _digests: set[str] = PrivateAttr(default_factory=set)
    """What `known` holds, to be asked."""
    _added: list[str] = PrivateAttr(default_factory=list)
    """What joins `known` at the end of this look: all at once, since each joining copies all that is known."""
    _next_scan: datetime | None = PrivateAttr(default=None)
    """When the next scan is due; none: at once."""
    _scans: int = PrivateAttr(default=0)

    def would_find(self, path: str, items: Sequence[object]) -> bool:  # noqa: ARG002 - none come in
        """Whether it would find a file at this path."""
        return self.scanner.would_find(path)

    def setup(self, context: Context) -> None:
        self._context = context
        self._digests = {self.known[place : place + DIGEST] for place in range(0, len(self.known), DIGEST)}
        self._added.clear()
        self._found.clear()
        self._next_scan = None
        self._scans = 0

    def emit_tuples(self) -> None:
        """Describe as many blocks as a window may have, and scan first where nothing is left of the last scan."""
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
                # of an empty one nothing comes where nobody hears of files, and a look that nothing comes of is in vain
                files += self.files_metadata_output.is_connected
            if self.cut is not None:
                blocks += self._describe(most - blocks)

    def looks_again_in_millis(self) -> int | None:
        """The rest of the interval between two scans."""
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
        """Line up the files that are not known, the oldest first; forget those that are gone once they are many."""
        # Where nothing was ever found, a path that is not there is rather a slip than a file that was cleared away.
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
        """Tell of the next file, as it is now; False where there is none."""
        while self._found:
            found = looked_up(self._found[0].path)
            if found is None:
                _log.warning("%s is gone, and was not split; it is passed over", shown(self._found[0].path))
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
        """Describe up to so many blocks of the file that is being split, and tell how many those were."""
        cut = self.cut
        assert cut is not None, "there is a file to be split"
        facts: dict[str, Any] = {"length": cut.length, "modified_millis": cut.modified_millis}
        starts = range(cut.next_start, cut.length, self._block_size)[:most]
        for block_id, start in enumerate(starts, self.next_block_id):
            end = min(start + self._block_size, cut.length)
            self.blocks_metadata_output.emit(
                Block(block_id, cut.path, start, end, end == cut.length, cut.version, facts)
            )
        self.next_block_id += len(starts)
        after = starts[-1] + self._block_size
        self.cut = replace(cut, next_start=after) if after < cut.length else None
        return len(starts)


def digest(found: Found) -> str:
    """Sixteen letters that two files share by chance once in 2^96 times."""
    told = f"{found.length} {found.modified_millis} {found.path}"
    return base64.b64encode(hashlib.blake2b(told.encode(), digest_size=12).digest()).decode()
