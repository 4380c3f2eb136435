"""Finding files by patterns that arrive on an input port."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from itertools import chain
from typing import Any, Literal

from pydantic import NonNegativeInt, PrivateAttr

from dagkit import Context, InputPort, OutputPort, SplittableOperator, State, auto_metric
from dagkit.api.files import READ_BEFORE, FileState
from dagkit.errors import RunFailure
from dagkit.ground.urls import absolute, is_url, shown
from dagkit.ranges import NEXT_LAUNCH, OFFSET_INFINITY, OffsetRange, RestrictionTracker
from dagkit_operators.compression.index_folder import IndexFolder
from dagkit_operators.compression.opening import content_length_of, found_codec
from dagkit_operators.filesystem.access import Found, exists, found_of, is_bad_file, looked_up, reading_from
from dagkit_operators.filesystem.identities import Identities, Recognised, settles_in_millis
from dagkit_operators.filesystem.path_patterns import files_beside, files_like, is_pattern, missing, would_match
from dagkit_operators.finding.bad_places import OR_LEAVE, LeavesBadPlaces, cause_of, state_left_out
from dagkit_operators.finding.completeness import CompletenessRules, IncompleteFiles, Refused
from dagkit_operators.finding.contents import AsksForReceipts, StillChanging, receipt_of, settled_hash
from dagkit_operators.finding.file_states import ignored_kind
from dagkit_operators.finding.scanner import RELATIVE
from dagkit_operators.finding.splitter import KEPT_OF_GONE, READ_AGAIN
from dagkit_operators.payloads import BLOCK_SIZE, FileInfo, QuarantinedFile

_THEN = "or give another pattern"
_log = logging.getLogger(__name__)


def _only(path: str | None, files: Iterator[Found]) -> Iterator[Found]:
    return (found for found in files if path in (None, found.path))


# MatchFiles is not built on Watch, as in Beam. Watch knows an output by a digest of its key, and a file is recognised:
# one may have several identities, which a scan replaces, and a scan also lists pending and quarantined files. A
# restriction of Watch would carry all of this; what both share, deferring and watermarks of endless work, is in the
# engine.
class MatchFiles(LeavesBadPlaces, AsksForReceipts, SplittableOperator[str]):
    """Finds the files that match patterns, and sends each once.

    Each launch scans a pattern once; with `continuously`, repeatedly. So a later launch sends new and changed files.

    A pattern is the path or URL of a file, of a folder with all its content, or one with `*`, `?`, `[]` or `**`. Files
    are sent in the order of their last change, and by path if that is equal. An empty file is skipped until it has
    content.

    A local file is recognised by its inode and by the first and last bytes of its known content. So it is not sent
    again after it was renamed; a file that reuses its name or inode is a new file, and so is one whose time of change
    differs while its length does not. A file that was deleted, and brought back with its old time, is recognised unless
    TailFiles follows it. A remote file is recognised by its name, length and time of change; an object of
    S3, Google Cloud Storage or Azure by its name and its version or etag. A file that grew is sent again, to be read as
    a whole, unless TailFiles follows it; a warning names the first file that is read again, and the summary of the
    launch has their number. A file that was changed just now is left to a later scan, as it may still be written,
    unless TailFiles follows it.
    """

    kind = "files.match/1"
    partitionable = False
    reads_positions = False
    position_unit = "scan"
    patterns = InputPort(str)
    files = OutputPort(FileInfo, main=True)
    quarantined = OutputPort(QuarantinedFile)
    files_read_again = auto_metric(0, warning=READ_AGAIN, counted="read again")
    """Files that were sent before, and have grown since or were overwritten in their place: each is sent again."""
    first_read_again = auto_metric("", aggregators=[max])
    """The first of them."""

    continuously: bool = False
    """Whether a pattern is scanned repeatedly for as long as the application runs, and not once by each launch."""
    interval_millis: NonNegativeInt = 5000
    """The time between two scans."""
    overwritten_by: Literal["time", "ends"] = "time"
    """How an overwrite of a local file that keeps its length is noticed. `time`: its time of change differs; so a file
    that is only touched is sent again. `ends`: its first or last 256 bytes differ."""
    grown: Literal["read", "skip"] | None = None
    """What happens to a file that grew after it was sent. `read`: it is sent again, to be read as a whole. `skip`: it
    is not, and neither is an overwritten remote file without a version, unless it has become shorter. None: `skip` if
    TailFiles reads the files that are sent, else `read`."""
    completeness: CompletenessRules = CompletenessRules()
    """When a file is complete: the same settings as those of a scanner."""

    known = State[dict[str, list[str]]](dict)
    """The identities of the files that each pattern matched.

    Those of deleted files are kept until they outnumber the existing files by a thousand.
    """
    refused = State[dict[str, str]](dict)
    """The states of the quarantined files, by their paths."""
    unchanged = State[dict[str, dict[str, int]]](dict)
    """How many scans of each pattern have found each pending file unchanged, if `stable_scans`."""

    _logged: str = PrivateAttr(default="")
    """The last message about pending files."""
    _home: str = PrivateAttr(default="")
    _indexes: IndexFolder = PrivateAttr(default=IndexFolder(""))

    def setup(self, context: Context) -> None:
        self._context = context
        self._home = context.home
        self._indexes = IndexFolder(context.application_path)

    def would_find(self, paths: Sequence[str], items: Sequence[object]) -> Iterator[str]:
        """The paths at which it would find a file. Before a run, only patterns of `Items` are known."""
        for pattern in items:
            if isinstance(pattern, str):
                yield from would_match(pattern, paths)

    def places(self, items: Sequence[object]) -> Sequence[str]:
        """The patterns that are known: those of `Items`, and those that arrived before and are not left out now."""
        patterns = [*(item for item in items if isinstance(item, str)), *self.known]
        return [pattern for pattern in dict.fromkeys(patterns) if not self._was_taken_out(pattern)]

    def file_states(self, items: Sequence[object], path: str | None = None) -> Iterator[FileState]:
        """The files that exist in the folders of the patterns, or only the one at a path."""
        known = self._identities()
        incomplete = IncompleteFiles(self._rules)
        incomplete.begin_scan()
        matched, unreadable, left_out = set[str](), dict[str, str](), dict[str, Exception]()
        places = [(pattern, absolute(pattern, self._home)) for pattern in self.places(items)]
        leave_out = left_out.__setitem__
        skips = replace(self.skips, leave_out=leave_out, unreadable=unreadable.__setitem__)
        for _, place in places:
            for found in _only(path, files_like(place, skips)):
                if found.path not in matched:
                    matched.add(found.path)
                    state = self._state_of(found, known, incomplete, leave_out)
                    if state is not None:
                        yield state
        for pattern, place in places:
            for found in _only(path, files_beside(place, skips)):
                if found.path not in matched:
                    matched.add(found.path)
                    yield FileState(found.path, "ignored", f"it does not match {pattern!r}, or is hidden or unfinished")
        yield from (state for state in map(ignored_kind, unreadable.items()) if path in (None, state.path))
        stops = self.leave_out is None
        for state in (state_left_out(at, error, stops=stops) for at, error in left_out.items()):
            if path is None or path == state.path or path.startswith(f"{state.path}/"):
                yield state if path is None else replace(state, path=path)

    def _state_of(
        self, found: Found, known: Identities, incomplete: IncompleteFiles, leave_out: Callable[[str, Exception], Any]
    ) -> FileState | None:
        """The state of a file that a pattern matches; None if it cannot be read."""
        try:
            with reading_from(found.path):
                return self._state_of_readable(found, known, incomplete)
        except RunFailure as error:
            if not is_bad_file(error):
                raise
            leave_out(found.path, cause_of(error))
            return None

    def _state_of_readable(self, found: Found, known: Identities, incomplete: IncompleteFiles) -> FileState:
        recognised = known.identify(found)
        if recognised.identity is None:
            return FileState(found.path, "pending", "it is empty")
        if recognised.was_known:
            return FileState(found.path, "seen")
        new = FileState(found.path, "new", READ_BEFORE if recognised.was_other else "")
        return incomplete.state_of(found, self._now_millis()) or new

    def forget(self, path: str, request: str) -> str:  # noqa: ARG002 - its state is committed with the answer
        """Forget the file at a path, so that the next scan finds it; return why this is impossible, or ""."""
        file = looked_up(path)
        if file is None:
            return f"there is no file {shown(path)}"
        forgotten = set(self._identities().identify(file).earlier)
        if not forgotten:
            return f"{shown(path)} is not known as it is now"
        self.known = {
            pattern: [identity for identity in identities if identity not in forgotten]
            for pattern, identities in self.known.items()
        }
        return ""

    def initial_restriction(self, element: str) -> OffsetRange:  # noqa: ARG002 - the same for every pattern
        """The numbers of the scans to do: one by each launch at least."""
        return OffsetRange(0, OFFSET_INFINITY)

    def process(self, element: str, tracker: RestrictionTracker[OffsetRange, int]) -> Iterator[FileInfo]:
        look = tracker.current_restriction().start
        if self._was_taken_out(element):
            # Deferred and not claimed: a list that gets the pattern back does not send it again.
            tracker.defer_remainder(NEXT_LAUNCH)
            return
        # A relative pattern begins where the application was launched; a worker may run elsewhere.
        place = absolute(element, self._home)
        self._left_out.clear()
        with reading_from(place, _THEN if is_url(place) else f"{OR_LEAVE}, {_THEN}"):
            found, refused, incomplete = self._scan_pattern(element, place, first=look == 0)
        launched = None if self._context is None else self._context.launched
        holds_launch = incomplete.holds_launch(launched)
        # A later scan without new files is not claimed but deferred, so that a run until idle can end. The state has
        # new files already, and a refused claim would lose them: the engine does not split work without a claim.
        if (found or refused or (look == 0 and not holds_launch)) and tracker.try_claim(look):
            for file in refused:
                file.log()
                self.quarantined.emit(file.quarantined)
            yield from found
        # Each launch scans each pattern, as FileSplitterInput does: scanned once for a ledger, a file that comes later
        # would never be read. No launch waits for work until NEXT_LAUNCH, and a scan that finds nothing commits no
        # window.
        again = self.continuously or incomplete.pending > 0
        tracker.defer_remainder(
            self._pause(incomplete) if again else NEXT_LAUNCH,
            unanswered=holds_launch,
            waits_for=incomplete.sentence,
        )

    def _was_taken_out(self, pattern: str) -> bool:
        """Whether the lists that send the patterns contained this one in an earlier launch only."""
        known = None if self._context is None else self._context.known_items
        return known is not None and pattern not in known

    def _pause(self, incomplete: IncompleteFiles) -> timedelta:
        """The time until the next scan."""
        now = datetime.fromtimestamp(self._now_millis() / 1000, UTC)
        return max(timedelta(), incomplete.brought_forward(now + timedelta(milliseconds=self.interval_millis)) - now)

    def _scan_pattern(
        self, pattern: str, place: str, *, first: bool
    ) -> tuple[list[FileInfo], list[Refused], IncompleteFiles]:
        """The files that were not known before, those to quarantine, and those that are incomplete."""
        known = self._identities()
        there = sorted(
            files_like(place, self.skips, known.is_unchanged),
            key=lambda file: (file.modified_millis, file.path),
        )
        is_empty = not there and not known.unchanged
        if is_empty and first and not self.continuously and not is_pattern(pattern) and not exists(place):
            raise missing(place, _THEN)
        if is_empty and not self.known.get(pattern):
            _log_unmatched(place)
        # Another change of a file that was just changed may keep its time, and would not be noticed: see
        # `settles_in_millis`. Files that are left to a later scan anyway need no wait.
        now_millis = self._now_millis()
        rules = self._rules
        old = (file for file in there if not rules.is_too_young(file, now_millis))
        time.sleep(max((settles_in_millis(file, now_millis) for file in old), default=0) / 1000)
        incomplete = IncompleteFiles(rules, self.refused, self.unchanged.get(pattern))
        incomplete.begin_scan()
        found = list(self._recognise_files(pattern, there, known, incomplete))
        if not self._left_out:
            incomplete.forget_gone(KEPT_OF_GONE, partial(would_match, place))
        self._logged = incomplete.log(self._logged)
        refused = incomplete.take_refused()
        self.refused = incomplete.refused
        self.unchanged = {name: counts for name, counts in self.unchanged.items() if name != pattern and counts}
        if incomplete.unchanged:
            self.unchanged[pattern] = incomplete.unchanged
        return found, refused, incomplete

    def _recognise_files(
        self, pattern: str, there: Iterable[Found], known: Identities, incomplete: IncompleteFiles
    ) -> Iterator[FileInfo]:
        """Yield the files that were not known before and are complete. They are known from now on.

        `there` has no files that the scan recognised as unchanged.
        """
        recorded = known.unchanged
        for listed in there:
            recognised, info = Recognised(None, was_known=False), None
            with self.leaving_out(listed.path, _THEN):
                recognised = known.identify(listed)
                info = self._describe_file(recognised, listed, incomplete)
            if recognised.identity is None:
                continue
            if not recognised.was_known:
                if info is None:  # its earlier identity stays, so that a later scan knows that it has grown
                    recorded |= dict.fromkeys(recognised.earlier)
                    continue
                if recognised.was_other and not self._is_followed:
                    self.files_read_again += 1
                    self.first_read_again = self.first_read_again or shown(info.path)
                yield info
            for identity in recognised.recorded:
                known.add(identity)
            recorded |= dict.fromkeys(recognised.recorded)
        before = self.known.get(pattern, [])
        if recorded.keys() == set(before):  # nothing changed
            return
        gone = known.gone(before)
        # A folder that may not be read is not gone.
        forgets = len(gone) > len(recorded) + KEPT_OF_GONE and not self._left_out
        remembered = recorded if forgets else recorded.keys() | gone
        # Identities that stay keep their places, so that a checkpoint holds only those of new files.
        self.known[pattern] = list(
            dict.fromkeys([*(identity for identity in before if identity in remembered), *recorded])
        )

    def _describe_file(self, recognised: Recognised, listed: Found, incomplete: IncompleteFiles) -> FileInfo | None:
        """The description of a file that was not known before; None if it was, or is left to a later scan."""
        identity = recognised.identity
        if identity is None or recognised.was_known:
            return None
        # The file may have grown since it was listed. Bytes that its identity covers are not sent again, so the file is
        # sent with the length that it had when its identity was taken.
        opened = None if recognised.status is None else found_of(listed.path, recognised.status)
        file = opened or listed
        if not list(incomplete.complete([file], self._now_millis())):
            return None
        receipt = None
        if self.receipts is not None:
            try:
                receipt = receipt_of(
                    file, settled_hash(file, file.length, self._now_millis()), self.receipts, self._home
                )
            except StillChanging:
                incomplete.leave(file.path, "was changed while its hash was computed (receipts)")
                return None
        content_length = content_length_of(file, found_codec(file, "auto", BLOCK_SIZE), self._indexes)
        return FileInfo(
            file.path,
            file.length,
            file.modified_millis,
            1,
            identity,
            content_length=content_length,
            receipt=receipt,
            is_found_again=self._sends_grown,
        )

    def sends_grown(self, *, followed: bool) -> bool:
        """Whether it sends a file again that has grown; `followed` is whether an operator follows its files."""
        return self.grown == "read" or (self.grown is None and not followed)

    @property
    def _is_followed(self) -> bool:
        return self._context is not None and self._context.is_followed

    @property
    def _sends_grown(self) -> bool:
        return self.sends_grown(followed=self._is_followed)

    @property
    def _rules(self) -> CompletenessRules:
        """When a file is complete. TailFiles reads files that are still being written."""
        rules = self.completeness
        if self._is_followed and rules.minimum_age_millis is None:
            return rules.model_copy(update={"minimum_age_millis": 0})
        return rules

    def _identities(self) -> Identities:
        recorded = chain.from_iterable(self.known.values())
        return Identities(
            recorded,
            by_time=self.overwritten_by == "time",
            by_length=self._sends_grown,
            by_inode=self._is_followed,  # TailFiles loses a file that was deleted, and reads another one from its start
        )

    def _now_millis(self) -> int:
        """The time by the clock of the driver; on a worker, that at which it began the window."""
        context = self._context
        began = None if context is None else context.began
        if context is not None and context.now is not None:
            began = context.now()
        return int((began or datetime.now(UTC)).timestamp() * 1000)


@lru_cache(maxsize=4096)  # once in each process, however often a pattern is scanned
def _log_unmatched(place: str) -> None:
    if is_pattern(place):
        _log.warning(f"no file matches %s\n  help: check the pattern; {RELATIVE}", shown(place))
    elif exists(place):
        _log.warning("there is no file in %s", shown(place))
    else:
        _log.warning("there is no file or directory %s; each scan looks for it again", shown(place))
