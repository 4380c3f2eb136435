"""Which new files are complete. A file that is still being written is pending: a later scan examines it again."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, NonNegativeInt, field_validator

from dagkit.api.files import FileState
from dagkit.errors import InputUnreadable
from dagkit.ground.urls import as_text, below, is_url, local_path, parent, shown
from dagkit_operators.filesystem.access import Found, looked_up, reading_from
from dagkit_operators.filesystem.identities import settles_in_millis
from dagkit_operators.finding.contents import is_gone
from dagkit_operators.finding.control_files import (
    ALGORITHMS,
    Trailer,
    TrailerMissing,
    contradiction,
    name_of,
    stated_checksum,
    stated_totals,
)
from dagkit_operators.finding.seen_files import digest
from dagkit_operators.payloads import QuarantinedFile

NAME = "{name}"
"""Stands for the name of the file in the name of another one beside it."""

UNCHANGED_MILLIS = 2000
"""How long ago a file must have been changed last by default: longer than most pauses of a writer, and shorter than a
user who has just written a file minds."""

_log = logging.getLogger(__name__)


class CompletenessRules(BaseModel):
    """When a file is complete and can be read. By default it must have been unchanged for two seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stable_scans: NonNegativeInt = 0
    """How many scans must find a file unchanged after the scan that found it first."""
    minimum_age_millis: NonNegativeInt | None = None
    """How long ago a file must have been changed last. None: two seconds, or 0 if another setting says when a file is
    complete, if it is an object with a version, if its time is in the future, or if TailFiles reads it."""
    marker_file: str | None = None
    """The name of the file beside a file that shows that it is complete: `{name}.done`, where `{name}` is the name of
    the file, or one for all files of a folder: `_SUCCESS`. Markers are not read."""

    checksum_file: str | None = None
    """The name of the file beside a file that states its checksum, in the format of md5sum: `{name}.md5`, or one for
    all files of a folder: `all.sha256`. A file with another checksum is quarantined. Checksum files are not read."""
    control_file: str | None = None
    """The name of the file beside a file that states its totals in lines such as `rows=3` and `bytes=12`: `{name}.ctl`.
    The rows are the lines of the decompressed content. A file with other totals is quarantined. Control files are not
    read."""

    trailer: Trailer | None = None
    """How the last line of a file states its rows, or the sum of a column. A file with other totals is quarantined; one
    without such a line is pending. Readers read the line like any other."""

    @field_validator("checksum_file")
    @classmethod
    def _names_an_algorithm(cls, template: str | None) -> str | None:
        if template is not None and template.rpartition(".")[2].lower() not in ALGORITHMS:
            raise ValueError(f"its name does not end in one of .{', .'.join(ALGORITHMS)}")
        return template

    @field_validator("marker_file", "checksum_file", "control_file")
    @classmethod
    def _is_another_name(cls, template: str | None) -> str | None:
        if template is not None and ("/" in template or template in ("", NAME)):
            raise ValueError("it names no file beside the file; give a name such as _SUCCESS or {name}.done")
        return template

    @property
    def waits_by_default(self) -> bool:
        """Whether no setting says when a file is complete."""
        return self.minimum_age_millis is None and not (self.stable_scans or self.marker_file or self.reads_content)

    @property
    def waits(self) -> bool:
        """Whether any file may be pending."""
        return self.minimum_age_millis != 0 or bool(self.stable_scans or self.marker_file or self.reads_content)

    def is_too_young(self, found: Found, now_millis: int) -> bool:
        """Whether a file was changed just now, so that it may still be written."""
        age_millis = now_millis - found.modified_millis  # negative if the clocks differ
        if self.waits_by_default:
            # An object with a version appears when it is complete. A time far in the future says nothing about the age
            # of a file, so such a file does not wait.
            return abs(age_millis) < UNCHANGED_MILLIS and not found.version and not found.is_directory
        # Without a minimum, no file is too young: its age is compared with itself.
        return age_millis < (self.minimum_age_millis or age_millis)

    def setting_beside(self, path: str) -> str:
        """The setting by which the file at a path describes another one, and is not read; "" if there is none."""
        for setting in ("marker_file", "checksum_file", "control_file"):
            template = getattr(self, setting)
            if template and _is_named_by(template, path):
                return setting
        return ""

    @property
    def reads_content(self) -> bool:
        """Whether the content of a file is read to know whether it is complete."""
        return bool(self.checksum_file or self.control_file or self.trailer)


class Refused(NamedTuple):
    """A file that contradicts its checksum or its totals."""

    found: Found
    reason: str
    state: str
    """The states of the file and of what contradicts it. When either changes, the file is examined again. Empty if a
    change within the tick of the last one would not change it: see `settles_in_millis`."""

    @property
    def quarantined(self) -> QuarantinedFile:
        """The file as the output `quarantined` sends it."""
        found = self.found
        return QuarantinedFile(found.path, found.length, found.modified_millis, reason=self.reason)

    def log(self) -> None:
        """Log that it is quarantined."""
        _log.warning("%s is quarantined: %s", shown(self.found.path), self.reason)


class IncompleteFiles:
    """The files that are pending, and those that the current scan found complete."""

    def __init__(
        self,
        rules: CompletenessRules,
        refused: dict[str, str] | None = None,
        unchanged: dict[str, int] | None = None,
    ) -> None:
        """Take the states of the files that were refused before, by their paths, and `unchanged` of the last scan."""
        self._rules = rules
        self._waits, self._waits_by_default = rules.waits, rules.waits_by_default
        self.refused = dict(refused or {})
        """The states of the files that are refused, by their paths."""
        self._newly_refused: dict[str, Refused] = {}
        self._refused_there: set[str] = set()
        """The paths of the refused files that the current scan found."""
        self._before: dict[str, int] = {}
        """`unchanged` after the last scan."""
        self.unchanged = dict(unchanged or {})
        """How many scans after its first have found each new file of the current scan unchanged, if `stable_scans`."""
        self._complete: set[bytes] = set()
        self._pending: dict[str, str] = {}
        """Why each pending file is not read yet."""
        self._young: dict[str, int] = {}
        """The times of change, in milliseconds, of those that are only too young."""
        self._young_before: dict[str, int] = {}
        """`_young` after the last scan."""

    @property
    def pending(self) -> int:
        """How many files the current scan found incomplete."""
        return len(self._pending)

    @property
    def waiting(self) -> bool:
        """Whether a later scan must examine files again although they may be unchanged."""
        return bool(self._pending or self.refused)

    def _ripe_at_millis(self) -> int | None:
        """When no file is too young any more, unless one is changed again; None if none is."""
        minimum = UNCHANGED_MILLIS if self._waits_by_default else self._rules.minimum_age_millis or 0
        return max(self._young.values()) + minimum if self._young else None

    def brought_forward(self, scan: datetime) -> datetime:
        """When to scan next instead of at this time: earlier if no file is too young any more before."""
        ripe_millis = self._ripe_at_millis()
        return scan if ripe_millis is None else min(scan, datetime.fromtimestamp(ripe_millis / 1000, UTC))

    def holds_launch(self, launched: datetime | None) -> bool:
        """Whether a launch that ends by itself waits for files that are too young by default.

        It waits for those that were changed last before it began, so for two seconds at most.
        """
        if launched is None or not self._waits_by_default:
            return False
        # The user who writes a file and launches expects its lines. Files that are changed later could delay the end
        # for ever.
        return any(changed <= launched.timestamp() * 1000 for changed in self._young.values())

    @property
    def sentence(self) -> str:
        """How many files are pending, which one, why, and when it is read, if that is known; empty if none is."""
        path, ripe = min(self._pending, default=None), self._ripe_at_millis()
        if path is None:
            return ""
        sentence = f"pending files: {self.pending}; {shown(path)} {self._pending[path]}"
        if path not in self._young or ripe is None:
            return sentence
        ripe += self._young[path] - max(self._young.values())
        at = datetime.fromtimestamp(ripe / 1000, UTC).astimezone()
        return f"{sentence}; it can be read from {at:%H:%M:%S} on, if it is not changed again"

    def leave(self, path: str, reason: str) -> None:
        """Leave a file to a later scan."""
        self._pending[path] = reason

    def take_refused(self) -> list[Refused]:
        """The files that were refused since the last call."""
        refused, self._newly_refused = list(self._newly_refused.values()), {}
        return refused

    def begin_scan(self) -> None:
        """Begin another scan, which has found nothing yet."""
        self._before, self.unchanged = self.unchanged, {}
        self._complete.clear()
        self._pending.clear()
        self._young_before, self._young = self._young, {}
        self._refused_there.clear()

    def forget_gone(self, most: int, would_find: Callable[[Sequence[str]], Iterable[str]] = iter) -> None:
        """Forget the refused files that the current scan did not find, if they outnumber the others by `most`.

        `would_find` filters paths by whether the scan looks there.
        """
        there = self._refused_there & self.refused.keys()
        away = [path for path in self.refused if path not in there]
        if len(away) > len(there) + most:
            gone = set(would_find(away))
            if len(gone) > len(there) + most:
                self.refused = {path: state for path, state in self.refused.items() if path not in gone}

    def complete(self, new: Iterable[Found], now_millis: int) -> Iterator[Found]:
        """Those of the new files that are complete. The others are pending, and markers are left out."""
        first, last = now_millis - UNCHANGED_MILLIS, now_millis + UNCHANGED_MILLIS
        for found in new:
            if found.is_directory or not self._waits:
                yield found
            elif self._waits_by_default:
                is_old = not first < found.modified_millis < last  # as most files, which cost no further call
                if (is_old and not self._pending) or not self._is_left(found, now_millis):
                    yield found
            elif not self._rules.setting_beside(found.path):
                self._young.pop(found.path, None)
                self._pending.pop(found.path, None)
                if found.path in self.refused:
                    self._refused_there.add(found.path)
                reason = self._why_pending(found, now_millis)
                if reason is not None:
                    self._pending[found.path] = reason
                elif self._still_agrees(found, now_millis):
                    self._complete.add(digest(found))
                    yield found

    def is_complete(self, status: Found, now_millis: int) -> bool:
        """Whether the current scan found this file complete, as it is now. If it does not, it may be pending again."""
        if self._waits_by_default:
            return not self._is_left(status, now_millis)
        return not self._waits or status.is_directory or digest(status) in self._complete

    def state_of(self, found: Found, now_millis: int) -> FileState | None:
        """The state of a new file that is not complete; None if it is."""
        complete = list(self.complete([found], now_millis))
        refused = self.take_refused()
        if refused:
            return FileState(found.path, "quarantined", refused[0].reason)
        return None if complete else FileState(found.path, "pending", f"it {self._pending.get(found.path)}")

    def log(self, logged: str) -> str:
        """Log how many files are pending, unless that was `logged` after the last scan. Return the message."""
        # By default each new file is pending for a moment, which is no news. A file that changes between two scans is.
        reported = self._still_written() if self._waits_by_default else self._pending
        path = min(reported, default=None)
        message = f"pending files: {self.pending}; {shown(path)} {self._pending[path]}" if path is not None else ""
        if message and message != logged:
            _log.warning("%s", message)
        return message

    def _still_written(self) -> list[str]:
        """The files that were too young in the last scan, and have changed since."""
        before = self._young_before
        return [path for path, changed in self._young.items() if before.get(path, changed) != changed]

    def _is_left(self, found: Found, now_millis: int) -> bool:
        """Whether a file is left to a later scan, because it was changed just now."""
        if not self._rules.is_too_young(found, now_millis):
            self._young.pop(found.path, None)
            self._pending.pop(found.path, None)
            return False
        self._young[found.path] = found.modified_millis
        seconds = UNCHANGED_MILLIS // 1000
        self._pending[found.path] = f"was changed less than {seconds} s ago, and may still be written"
        return True

    def _why_pending(self, found: Found, now_millis: int) -> str | None:
        rules = self._rules
        # First, since it counts this scan also if the file is pending for another reason.
        is_unstable = self._is_unstable(found)
        if rules.is_too_young(found, now_millis):
            self._young[found.path] = found.modified_millis
            return f"was changed within the last {rules.minimum_age_millis} ms (minimum_age_millis)"
        if is_unstable:
            return f"must be unchanged in {rules.stable_scans} more scans than its first (stable_scans)"
        if rules.marker_file is not None and found_beside(found.path, rules.marker_file) is None:
            return f"has no {rules.marker_file.replace(NAME, name_of(found.path))} beside it (marker_file)"
        return None

    def _is_unstable(self, found: Found) -> bool:
        """Whether more scans must find a file unchanged. This scan is counted."""
        if not self._rules.stable_scans:
            return False
        known = digest(found).hex()
        self.unchanged[known] = min(self._before.get(known, -1) + 1, self._rules.stable_scans)
        return self.unchanged[known] < self._rules.stable_scans

    def _still_agrees(self, found: Found, now_millis: int) -> bool:
        """Return `_agrees`; if the file, or one beside it, is deleted meanwhile, it is pending."""
        try:
            return self._agrees(found, now_millis)
        except InputUnreadable as error:
            if not is_gone(error):
                raise
            self._pending[found.path] = "or a file beside it was deleted while it was examined"
            return False

    def _agrees(self, found: Found, now_millis: int) -> bool:
        """Whether the file agrees with its checksum and its totals. If it does not, it is pending or refused."""
        controls = list(self._controls_of(found))
        if found.path in self._pending:
            return False
        # A correction of the same length within the tick of the last change would keep the state. Then no state is
        # recorded, and the next scan examines the file again.
        files = [found, *[control for control, _ in controls]]
        is_final = not any(settles_in_millis(file, now_millis) for file in files)
        state = " ".join(digest(file).hex() for file in files) if is_final else ""
        if self.refused.get(found.path) == state:
            return False
        for control, setting in controls:
            stated = stated_checksum(control, found) if setting == "checksum_file" else stated_totals(control)
            if stated is None:
                self._pending[found.path] = f"is not described by the {name_of(control.path)} beside it ({setting})"
                return False
            reason = contradiction(found, control, stated)
            if reason is not None:
                self._refuse(Refused(found, reason, state))
                return False
        if not self._agrees_with_trailer(found, state):
            return False
        self.refused.pop(found.path, None)
        return True

    def _agrees_with_trailer(self, found: Found, state: str) -> bool:
        """Whether a file agrees with its trailer. If it does not, it is pending or refused."""
        trailer = self._rules.trailer
        try:
            reason = None if trailer is None else trailer.contradiction(found)
        except TrailerMissing:
            self._pending[found.path] = "has no last line that states its totals (trailer)"
            return False
        if reason is not None:
            self._refuse(Refused(found, reason, state))
        return reason is None

    def _controls_of(self, found: Found) -> Iterator[tuple[Found, str]]:
        """The checksum and control files of a file, and their settings. If one is missing, the file is pending."""
        rules = self._rules
        for template, setting in [(rules.checksum_file, "checksum_file"), (rules.control_file, "control_file")]:
            if template is not None:
                control = found_beside(found.path, template)
                if control is None:
                    name = template.replace(NAME, name_of(found.path))
                    self._pending[found.path] = f"has no {name} beside it ({setting})"
                else:
                    yield control, setting

    def _refuse(self, refused: Refused) -> None:
        # The file may have been written to while it was read. It is refused only if it is still as it was found.
        path = refused.found.path
        with reading_from(path):
            now = looked_up(path)
        if now is None or digest(now) != digest(refused.found) or not refused.state:
            self._pending[path] = "or a file beside it was changed just before it was examined"
            return
        self.refused[path] = refused.state
        self._refused_there.add(path)
        self._newly_refused[path] = refused


def found_beside(path: str, template: str) -> Found | None:
    """The file beside another one that a template names; None if there is none."""
    other = template.replace(NAME, name_of(path))
    folder = "" if is_url(path) else local_path(path).rpartition("/")[0]
    place = below(parent(path), other) if is_url(path) else as_text(f"{folder}/{other}")
    with reading_from(place):
        return looked_up(place)


def _is_named_by(template: str, path: str) -> bool:
    """Whether a file has the name that a template gives to a file beside some other one."""
    before, mark, after = template.partition(NAME)
    name = name_of(path)
    if not mark:
        return name == template
    return name.startswith(before) and name.endswith(after) and len(name) > len(before) + len(after)
