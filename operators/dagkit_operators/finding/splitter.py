"""Finding files and dividing them, without copying, into blocks that readers share."""

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import takewhile
from os import PathLike
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Field, PrivateAttr

from dagkit import Context, OutputPort, State, Until, auto_metric
from dagkit.api.files import FileState
from dagkit.ground.names_of_apex import WINDOW_DATA_MANAGERS
from dagkit.ground.urls import absolute, plain, shown
from dagkit_operators.filesystem.access import Found, looked_up
from dagkit_operators.filesystem.identities import COARSE_TICK_MILLIS, settles_in_millis
from dagkit_operators.filesystem.listing import FolderMemory
from dagkit_operators.finding.bad_places import LeavesBadPlaces
from dagkit_operators.finding.completeness import UNCHANGED_MILLIS, CompletenessRules, IncompleteFiles, Refused
from dagkit_operators.finding.contents import AsksForReceipts, Examined, content_digest, hash_of, receipt_of
from dagkit_operators.finding.file_states import packed, settle_in_millis, states_of, unpacked
from dagkit_operators.finding.read_before import UNKNOWN, Inode, ReadBefore, Remembered, inode_of
from dagkit_operators.finding.scanner import DirectoryScanner
from dagkit_operators.finding.splitting import AbstractFileSplitter, Cut
from dagkit_operators.looks import FileEvents, LooksForInput
from dagkit_operators.payloads import FileInfo, QuarantinedFile

# A directory that is not mounted during one scan must not be read twice, so that files that are gone are forgotten only
# once they are many.
KEPT_OF_GONE = 1000
"""Deleted files are remembered until they outnumber the existing files by this many; so are quarantined ones."""

KEPT_REQUESTS = 100
"""How many requests to forget a file are remembered: a driver that is killed before it answers may read one again."""

_log = logging.getLogger(__name__)


READ_AGAIN = (
    "{first_read_again} was read before and has changed; as each such file, it is read again as a whole\n"
    "  help: if files only grow, TailFiles behind MatchFiles reads what is appended"
)
"""The warning of a finder that sends files again."""


class _Scanned(NamedTuple):
    """The result of a scan."""

    new: list[bytes]
    """The files that were not seen before, in order, as `packed` makes bytes of them."""
    gone: int
    """How many files that were seen before have changed or are gone."""
    forgot: bool
    """Whether the files that are gone were forgotten."""
    changed: list[str]
    """Those of the new files whose path was seen before, if the digests show it."""
    refused: list[Refused]
    """The files that contradict a file beside them or their own last line."""


def _manager(value: Any) -> Any:
    """The value that stands for a class of Apex, such as `…WindowDataManager$NoopWindowDataManager`."""
    simple = value.replace("$", ".").rpartition(".")[2] if isinstance(value, str) else ""
    return WINDOW_DATA_MANAGERS.get(simple, value)


class FileSplitterInput(LooksForInput, LeavesBadPlaces, AsksForReceipts, AbstractFileSplitter):
    """Finds new and changed files, and describes the blocks in which readers read them.

    Files are sent in the order of their last change, and by path if that is equal. Blocks are numbered from 0 across
    all files. If the length or time of change of a file differs from before, the whole file is read again as new
    blocks; a warning names the first such file of a launch, and its summary has their number. A file that was changed
    just now is left to a later scan, as it may still be written. Scans run beside the loop and delay no window; the
    next one begins after all files of the last are split.

    The splitter remembers each file by a digest of sixteen characters of its path, length and time of change. Files may
    arrive late with any old time. Once deleted files outnumber the existing ones by a thousand, these digests of them
    are forgotten. Until then, a file that returns unchanged is not read twice. Unless `scanner.renamed` is `read`,
    another digest of each local file, with its inode, is kept for ever.
    """

    kind = "files.splitter/1"
    checkpointable_within_app_window = False
    finds_again = True
    quarantined = OutputPort(QuarantinedFile)
    files_read_again = auto_metric(0, warning=READ_AGAIN, counted="read again")
    """Files that were read before, and changed since: each is read again as a whole."""
    first_read_again = auto_metric("", aggregators=[max])
    """The first of them."""

    scanner: DirectoryScanner = Field(default=...)
    """Where and how to scan for files."""
    window_data_manager: Annotated[Literal["ledger", "noop"], BeforeValidator(_manager)] = "ledger"
    """What later launches know of files. `ledger`: a file is read once, whatever happens. `noop`: a launch reads all
    files that are there when it begins, also those that were read before; its own windows still read each file once."""

    known = State("")
    """The concatenated digests of the files that were split or begun."""
    knows_paths = State(False)
    """Whether the digests in `known` begin with those of the paths. Those of older ledgers do not."""
    paths_return = State(False)
    """Whether any file ever changed or disappeared. Until then every path is new; afterwards paths may recur."""

    contents = State("")
    """The concatenated digests of the contents that were split, if `scanner.skip_known_content`."""
    inodes = State("")
    """The concatenated digests of the inodes that were split, unless `scanner.renamed` is `read`."""
    refused = State[dict[str, str]](dict)
    """The states of the quarantined files, by their paths."""
    unchanged = State[dict[str, int]](dict)
    """How many scans have found each pending file unchanged, if `scanner.stable_scans`."""

    forgotten = State[list[str]](list)
    """The last requests to forget a file that were performed."""

    _found: deque[bytes] = PrivateAttr(default_factory=deque)
    """Files of the last scan that are not split yet, as `packed` makes bytes of them."""
    _listed: Found | None = PrivateAttr(default=None)
    """The file that is begun next, as the last scan found it."""
    _before: ReadBefore = PrivateAttr()
    """The files in `known`, `inodes` and `contents`."""
    _contents_now: Examined = PrivateAttr(default_factory=lambda: Examined(content_digest))
    """The contents of the files of the last scan, if `scanner.skip_known_content`."""
    _inode: Inode = PrivateAttr(default=UNKNOWN)
    """The inode of the file that was accepted last."""
    _hashes: Examined = PrivateAttr(default_factory=lambda: Examined(hash_of))
    """The hashes of the files of the last scan, for receipts."""
    _incomplete: IncompleteFiles = PrivateAttr(default_factory=lambda: IncompleteFiles(CompletenessRules()))
    _changed: set[str] = PrivateAttr(default_factory=set)
    """The files of the last scan that were read before, and are not begun again yet."""
    _waits_for: str = PrivateAttr(default="")
    """Why files are not read yet, after the last look."""
    _holds_launch: bool = PrivateAttr(default=False)
    """Whether a launch that ends by itself waits for such files."""
    _logged: str = PrivateAttr(default="")
    """The last message about pending files."""
    _memory: FolderMemory = PrivateAttr(default_factory=FolderMemory)
    _events: FileEvents | None = PrivateAttr(default=None)
    _event: Future[bool] | None = PrivateAttr(default=None)
    """Waits for a change until the next scan is due, and returns whether there was one."""
    _began_millis: int = PrivateAttr(default=0)
    """When `emit_tuples` was called last: the time for each file would take longer than what depends on it."""

    def __init__(
        self, files: str | PathLike[str] | Sequence[str | PathLike[str]] | None = None, /, **properties: Any
    ) -> None:
        """Take the files and directories to scan, which are a part of `scanner`, and properties by their names."""
        if files is not None:
            properties["scanner"] = dict(files=files, **properties.get("scanner", {}))
        super().__init__(**properties)

    def gives_up(self) -> Iterator[str]:
        if self.window_data_manager == "noop":
            yield (
                "window_data_manager is 'noop', so each launch reads all files that are there, also those that an "
                "earlier launch read, and no launch continues the list of files of another"
            )

    def would_find(self, paths: Sequence[str], items: Sequence[object]) -> Iterator[str]:  # noqa: ARG002 - it has no input port
        """The paths at which the scanner would find a file."""
        return self.scanner.would_find(paths)

    def places(self, items: Sequence[object]) -> Sequence[str]:  # noqa: ARG002 - it has no input port
        """The files and directories to scan."""
        return self.scanner.files

    def file_states(self, items: Sequence[object], path: str | None = None) -> Iterator[FileState]:  # noqa: ARG002
        """The files that exist in the scanned places, or only the one at a path."""
        return states_of(
            self.scanner,
            self._before,
            now_millis=self._now_millis(),
            path=path,
            stops=self.leave_out is None,
            opens=self.receipts is not None,
            written=self.skips.written,
        )

    def forget(self, path: str, request: str) -> str:
        """Forget a file as it is now, so that the next scan finds it; return why this is impossible, or ""."""
        if request in self.forgotten:
            return ""
        status = looked_up(path)
        if status is None:
            return f"there is no file {shown(path)}"
        if self.cut is not None and self.cut.path == status.path:
            return f"{shown(path)} is being divided into blocks"
        if not self._before.forget(status):
            return f"{shown(path)} is not known as it is now"
        if self.window_data_manager == "ledger":
            self.known, self.inodes, self.contents = self._before.remembered
        self.paths_return = True  # the same path is another source in the ledger
        self.forgotten = [*self.forgotten, request][-KEPT_REQUESTS:]
        self._memory = FolderMemory()  # the time of its folder has not changed
        if self._looks is not None:
            self._looks.next = None
        return ""

    def adopt_files(self, was_read: Callable[[str, int], bool]) -> str:
        """Remember the files that another program has read; return why this is impossible, or ""."""
        if self.window_data_manager == "noop":
            return "window_data_manager is 'noop', so each launch reads all files that are there"
        self._before.adopt(self.scanner.scan(skips=self.skips), was_read)
        self.known, self.inodes, self.contents = self._before.remembered
        return ""

    def setup(self, context: Context) -> None:
        super().setup(context)
        if self.window_data_manager == "noop":
            self.known = self.contents = self.inodes = ""
            self.refused = {}
            self.unchanged = {}
            # What an earlier launch read is read again, and the ledger needs another source for the same path.
            self.paths_return = self.next_block_id > 0
        # The digests of a state all have one form. So the older form is left only while there are none.
        self.knows_paths = self.knows_paths or not self.known
        remembered = Remembered(self.known, self.inodes, self.contents)
        self._before = ReadBefore(self.scanner, remembered, by_path=self.knows_paths)
        self._changed.clear()
        self._waits_for, self._holds_launch = "", False
        self._incomplete = IncompleteFiles(self.scanner, self.refused, self.unchanged)
        self._memory = FolderMemory()
        self._found.clear()
        self._event = self._events = None

    def emit_tuples(self) -> None:
        """Describe as many blocks as a window may have. Scan first if the files of the last scan are all split."""
        looks, context = self.looks, self._context
        assert context is not None, "an operator is set up before it runs"
        if self._event is not None and self._event.done():
            has_changed, self._event = self._event.result(), None
            # A change does not wait for the interval: None means that the next look is due at once.
            looks.next = None if has_changed else looks.next
        if self._has_split_all() and looks.are_due(again=self._holds_launch):
            looks.begin(partial(self._look_through, looks.abandoned))
        scanned: _Scanned | None = looks.take(self.scanner.scan_interval_millis)
        if scanned is not None:
            self._take(scanned)
        self._began_millis = self._now_millis()
        self.process_files()
        # Appended once for all files of this call: appending to a state copies its whole text.
        added = self._before.take_added()
        if added is not None and self.window_data_manager == "ledger":
            self.known += added.known
            self.inodes += added.inodes
            self.contents += added.contents
        if not self._has_split_all():
            return
        # Copies, for the next scan changes `_incomplete` on another thread.
        self._waits_for = "; ".join(filter(None, (self._incomplete.sentence, self._missing_places())))
        self._holds_launch = self._incomplete.holds_launch(context.launched)
        looks.next = None if looks.next is None else self._incomplete.brought_forward(looks.next)
        # An input operator with work in the background keeps a launch from ending for lack of input, so events are only
        # awaited in launches that run until they are stopped: see `_look_through`.
        if self._events is not None and self._event is None and not looks.are_due(again=self._holds_launch):
            # To watchfiles, 0 is no limit.
            self._event = context.in_background(partial(self._events.wait, looks.due_in_millis() or 1))

    def _has_split_all(self) -> bool:
        """Whether all files of the last scan are split, and no other scan has begun."""
        return not self.looks.are_on and self.cut is None and not self._found

    def get_file_info(self) -> FileInfo | None:
        """The next file that the last scan found."""
        if not self._found:
            return None
        self._listed = unpacked(self._found.popleft())
        return FileInfo(self._listed.path)

    def get_file_status(self, path: str) -> Found | None:
        """The file or directory as it is now; an object with a version as it was listed, without another request."""
        listed = self._listed
        if listed is None or listed.path != path:
            return super().get_file_status(path)
        return listed if listed.version else self._status_at(path)

    @property
    def has_unsent(self) -> bool:
        """Whether files of the last scan are not split to their end, or the launch waits for files."""
        return self.cut is not None or bool(self._found) or self._holds_launch

    @property
    def unsent(self) -> int:
        return len(self._found) + (self.cut is not None)

    @property
    def waits_for(self) -> str:
        """How many files are pending, which one, and why."""
        return self._waits_for

    @property
    def holds_launch(self) -> bool:
        """Whether files were changed just before the launch began, so that it waits for them for a moment."""
        return self._holds_launch

    def _missing_places(self) -> str:
        """The places that do not exist; a file that was read may have been cleared away."""
        missing = sorted(self.scanner.missing_places)
        if missing:
            read = self._before.seen.paths()
            missing = [shown(place) for place in missing if plain(place) not in read]
        return f"{' and '.join(missing)} does not exist; each scan looks for it again" if missing else ""

    def _take(self, scanned: _Scanned) -> None:
        """Queue the files that a scan found."""
        # The scan ran on another thread, and only the thread of the loop may send items and change states.
        self._found.extend(scanned.new)
        self._changed = set(scanned.changed)
        for file in scanned.refused:
            file.log()
            self.quarantined.emit(file.quarantined)
        if self.refused != self._incomplete.refused:
            self.refused = dict(self._incomplete.refused)
        self.unchanged = self._incomplete.unchanged
        self.paths_return |= scanned.gone > 0
        if scanned.forgot and self.window_data_manager == "ledger":
            self.known = self._before.seen.text

    def _look_through(self, abandoned: threading.Event) -> _Scanned:
        """Scan, and wait until the found files are settled. It runs on another thread, while no file is split."""
        assert self._context is not None, "an operator is set up before it runs"
        if self.scanner.events and self._events is None and self._context.until is Until.STOPPED:
            # Before the scan, so that a change while it runs starts another one.
            places = [absolute(place) for place in self.scanner.files]
            self._events = FileEvents.of(places, abandoned, recursive=self.scanner.recursive)
        scanned = self._scan_places(abandoned.is_set)
        # No sleep, so that the end of a launch does not wait for it.
        abandoned.wait(settle_in_millis(scanned.new, self._now_millis()) / 1000)
        return scanned

    def _scan_places(self, is_abandoned: Callable[[], bool]) -> _Scanned:
        """Scan, and forget deleted files once they are too many."""
        # A file may become complete, or readable, while the time of its folder stays.
        if self._incomplete.waiting or self._left_out:
            self._memory = FolderMemory()
        self._incomplete.begin_scan()
        self._contents_now.begin_scan()
        self._hashes.begin_scan()
        new, there = self._find_new(is_abandoned)
        if not self._left_out:
            self._incomplete.forget_gone(KEPT_OF_GONE)
        self._logged = self._incomplete.log(self._logged)
        seen = self._before.seen
        gone = seen.gone - self._memory.files
        changed = self._changed_among(new) if gone else []
        forgets = gone > there + KEPT_OF_GONE and not self._left_out  # a folder that may not be read is not gone
        if forgets:
            # Which files are gone is only known after every folder was listed and every file was looked up. Scans
            # leave out both where nothing has changed, so this one is repeated.
            self._memory = FolderMemory()
            seen.look_at_each()
            new, there = self._find_new(is_abandoned)
            gone = seen.gone
            seen.forget_gone()
        return _Scanned(new, gone, forgot=forgets, changed=changed, refused=self._incomplete.take_refused())

    def _changed_among(self, new: list[bytes]) -> list[str]:
        """The paths of those new files that were seen with another length or time."""
        seen = self._before.seen.paths() if new else ()
        return [path for path in (unpacked(content).path for content in new) if path in seen]

    def _find_new(self, is_abandoned: Callable[[], bool]) -> tuple[list[bytes], int]:
        """The files that were not seen before, in order, and the number of all files."""
        seen, memory = self._before.seen, self._memory
        seen.begin_scan()
        memory.begin()
        self._left_out.clear()
        # If nothing was ever found, a missing path is more likely a typing error than a deleted file.
        there = self.scanner.scan(
            once_there=self.next_block_id > 0,
            memory=memory if self.scanner.rescan == "folders" else None,
            skips=self.skips,
        )
        now_millis = self._now_millis()
        reads = self.scanner.skip_known_content or self.scanner.reads_content or self.receipts is not None
        new: list[bytes] = []
        for unseen in seen.unseen(there, once=len(self.scanner.files) == 1):
            if reads:
                # Asked after each file: to read a thousand of them would delay the end of a launch.
                new += map(packed, takewhile(lambda _: not is_abandoned(), self._examine_new(unseen, now_millis)))
            else:
                new += map(packed, self._incomplete.complete(unseen, now_millis) if self.scanner.waits else unseen)
            if is_abandoned():
                break
        new = sorted(new if len(self.scanner.files) == 1 else set(new))  # two places may hold one file
        return new, len(new) + seen.there + memory.files

    def _examine_new(self, new: Iterable[Found], now_millis: int) -> Iterator[Found]:
        """Those of the new files that are complete, after reading them. Those that cannot be read are left out."""
        # One by one, so that only the file that cannot be read is left out.
        for found in new:
            ready: Iterable[Found] = [found]
            examined: list[Found] = []
            with self.leaving_out(found.path, "and launch again"):
                ready = self._incomplete.complete(ready, now_millis) if self.scanner.waits else ready
                ready = self._contents_now.examine(ready) if self.scanner.skip_known_content else ready
                ready = ready if self.receipts is None else self._hashes.examine(ready)
                examined = list(ready)
            yield from examined

    def _accepts(self, status: Found) -> bool:
        # A file may change between the scan and this moment. Then all that the scan found out about it is void, and the
        # next scan examines it again.
        if self._before.seen.has(status) or (status.is_directory and not self.scanner.directories):
            return False
        if not self._incomplete.is_complete(status, self._now_for(status)) or not self._is_settled(status):
            return self._examines_again()
        has_content = self.scanner.skip_known_content and status.length > 0 and not status.is_directory
        content = self._contents_now.of(status) if has_content else None
        if has_content and content is None:
            return self._examines_again()
        if self.receipts is not None and not status.is_directory and self._hashes.of(status) is None:
            return self._examines_again()
        there = inode_of(status)
        if there is None:
            return self._examines_again()
        self._inode = there
        self.refused.pop(status.path, None)
        has_changed = status.path in self._changed
        self._changed.discard(status.path)
        reason = self._before.add(status, there, content)
        if reason:
            _log.warning("%s %s, and is skipped", shown(status.path), reason)
        elif has_changed:
            self.files_read_again += 1
            self.first_read_again = self.first_read_again or shown(status.path)
        return not reason

    def _begin_accepted(self, status: Found) -> Cut | None:
        receipt = None
        if self.receipts is not None and not status.is_directory:
            hashed = self._hashes.of(status)
            assert hashed is not None, "a file is accepted only with its hash"
            receipt = receipt_of(status, hashed, self.receipts, self._launched_in)
        # A relative path is computed for each scanned place, so only if an operator gets it.
        sends_metadata = self.files_metadata_output.is_connected
        relative_path = self.scanner.relative_path(plain(status.path)) if sends_metadata else ""
        version = self._version if self.paths_return else ""
        return self._begin_file(status, version, relative_path, receipt=receipt, witness=self._inode.witness)

    def _is_settled(self, status: Found) -> bool:
        """Whether a later scan would notice each change of a file: see `settles_in_millis`."""
        is_settled = not settles_in_millis(status, self._now_for(status))
        if not is_settled:
            _log.warning("%s is being changed, and is left for a later scan", shown(status.path))
        return is_settled

    def _now_for(self, status: Found) -> int:
        """The time by which to judge the age of a file: that of an old one is not asked for again."""
        is_old = status.modified_millis <= self._began_millis - max(UNCHANGED_MILLIS, COARSE_TICK_MILLIS)
        return self._began_millis if is_old else self._now_millis()

    def _examines_again(self) -> bool:
        """Let the next scan examine a file that was changed after the scan, also if its folder is unchanged."""
        self._memory = FolderMemory()
        return False

    def _now_millis(self) -> int:
        return int(self._now().timestamp() * 1000)
