"""File identities: recognise a file after it grew or was renamed, and distinguish it from a later file of its name.

An identity combines the inode, which the system may reuse, with digests of the first and last bytes known. The device
number may change when the machine restarts; it only distinguishes files with different names. A remote file is
identified by its name, and in an object store also by the version of its content: an object can only be overwritten.
On other remote filesystems, its length and time of change stand for a version.

A recorded identity of a local file ends in its times. While they stay, the file is the same and need not be opened. If
its time of change differs and its length does not, it was overwritten, although its first and last bytes may be equal.
If it is longer than when it was recorded, and begins with what it had then, it has grown.

A file with another inode, and the name, the length, the time of change and the first and last bytes of a recorded one,
was brought back as a copy.
"""

import hashlib
import os
import re
import time
from collections.abc import Iterable
from io import FileIO
from typing import NamedTuple

from dagkit.ground.urls import is_url, local_path
from dagkit_operators.filesystem.access import Found, NotRegular, exists, opened_here, status_of

# A file that is overwritten within the tick of its last change, with the same length, keeps its time, and the new
# content would be lost. Git's index has the same problem and compares contents; a splitter has none to compare with, so
# it leaves such a file pending. A file that is written every few milliseconds is not read until its writer pauses.
TICK_MILLIS = 20
"""More than a tick of the clock by which a system sets the times of files: on Linux at most 10 ms."""
COARSE_TICK_MILLIS = 2000
"""The coarsest resolution of a filesystem's times. Filesystems that are this coarse keep whole seconds."""

_SECOND_NANOS = 10**9


def settles_in_millis(found: Found, now_millis: int) -> int:
    """How long to wait until each later change of a file gives it another time; 0 if it does now.

    An object with a version is recognised by that. The clock of this machine must agree with the one that sets the
    times; a file with a time in the future gets an earlier one when it is changed, and is settled.
    """
    age_millis = now_millis - found.modified_millis
    if abs(age_millis) >= COARSE_TICK_MILLIS or found.version or found.is_directory:
        return 0
    tick = COARSE_TICK_MILLIS if _has_coarse_time(found) else TICK_MILLIS
    return tick - age_millis if abs(age_millis) < tick else 0


def is_settled(nanos: int, now_nanos: int) -> bool:
    """Whether each later change of a local file with this time of change gives it another time."""
    tick_millis = TICK_MILLIS if nanos % _SECOND_NANOS else COARSE_TICK_MILLIS
    return abs(now_nanos - nanos) >= tick_millis * 1_000_000


def _has_coarse_time(found: Found) -> bool:
    """Whether its time may be one of whole seconds."""
    if found.modified_millis % 1000:
        return False
    status = None if is_url(found.path) else status_of(local_path(found.path))
    return status is None or not status.st_mtime_ns % _SECOND_NANOS


EDGE = 256
"""The most bytes digested at the beginning of a file, and before its known end."""
_TIMES = "@"
"""Separates the identity of a local file from its time of change, and the time when its status changed."""
_REMOTE_STATE = re.compile(r" version=(?P<version>.*)| @(?P<length>[0-9a-f]+)\.(?P<millis>[0-9a-f]+)\Z", re.DOTALL)
"""What follows the URL in the identity of a remote file: its version, or else its length and its time of change. Older
ledgers hold the URL alone for a file without a version."""


def has_identity(path: str, identity: str) -> bool:
    """Whether the file at a path has this identity. An empty identity matches any file that exists."""
    if not identity or is_url(path):
        return exists(path)
    try:
        file = opened_here(path)
    except (FileNotFoundError, NotRegular):
        return False
    with file:
        return _is_of(file, path, identity)


class Recognised(NamedTuple):
    """The result of identifying a file as it is now."""

    identity: str | None
    """Its identity; None if the file is empty or gone."""
    was_known: bool
    """Whether the file is known as it is now."""
    recorded: tuple[str, ...] = ()
    """The identities with times to record, if it is to be known from now on."""
    earlier: tuple[str, ...] = ()
    """Those that were recorded of it before."""
    was_other: bool = False
    """Whether the file is known only as it was before: it has grown since, or was overwritten in its place."""
    status: os.stat_result | None = None
    """The status of the local file when its identity was taken, if it was opened for that."""


class Identities:
    """The identities of known files."""

    def __init__(
        self, recorded: Iterable[str], *, by_time: bool = True, by_length: bool = False, by_inode: bool = True
    ) -> None:
        """Take the identities as they were recorded.

        With `by_time`, a local file whose time of change differs and whose length does not is another file. With
        `by_length`, so is a file that has grown. Without it, a remote file without a version is another one only if it
        has become shorter: nothing else distinguishes an overwritten one from one that has grown.
        """
        self._by_inode: dict[str, list[str]] = {}
        self._by_name: dict[str, list[str]] = {}
        """The identities of local files by the digest of the name."""
        self._by_number: dict[str, str] = {}
        """The identities of local files by device and inode; "" if several have both."""
        self._unindexed: list[str] = []
        """Identities that are in neither index yet. A scan that finds no changes does not need them there."""
        self._identified: set[str] = set()
        self.unchanged: dict[str, None] = {}
        """The recorded identities of the files that `is_unchanged` recognised."""
        self._by_time = by_time
        self._by_length = by_length
        self._is_by_inode = by_inode
        for identity in recorded:
            self.add(identity)

    def identify(self, file: Found) -> Recognised:
        """Recognise a file that was found. Of a local one, the path is enough.

        An object without a version, then or now, is known whatever its content.
        """
        if is_url(file.path):
            recognised = self._identify_remote(file)
        else:
            recognised = self._unchanged(file.path) or self._identify_opened(file.path)
        self._identified.update(recognised.earlier)
        return recognised

    def is_unchanged(self, status: os.stat_result) -> bool:
        """Whether the local file of this status is known, and has the times that were recorded with it."""
        recorded = self._recorded_of(status)
        if recorded is None:
            return False
        self.unchanged[recorded] = None
        return True

    def gone(self, recorded: Iterable[str]) -> set[str]:
        """Those of these identities whose files were not found."""
        return set(recorded).difference(self.unchanged, self._identified)

    def add(self, recorded: str) -> None:
        """Know a file from now on."""
        number = recorded.partition("-")[0]
        self._by_number[number] = recorded if self._by_number.get(number, recorded) == recorded else ""
        self._unindexed.append(recorded)

    def _indexed(self) -> dict[str, list[str]]:
        """The identities by inode, or by URL."""
        for recorded in self._unindexed:
            key = _REMOTE_STATE.split(recorded, 1)[0] if is_url(recorded) else _inode(recorded)
            self._by_inode.setdefault(key, []).append(recorded)
            if not (self._is_by_inode or is_url(recorded)):
                self._by_name.setdefault(_name(recorded), []).append(recorded)
        self._unindexed.clear()
        return self._by_inode

    def _identify_remote(self, file: Found) -> Recognised:
        state = f" version={file.version}" if file.version else f" @{file.length:x}.{file.modified_millis:x}"
        now = file.path + state
        # An overwritten object may get its old content and version back, so replaced versions are not kept.
        known = tuple(self._indexed().pop(file.path, ()))
        # A URL alone, which a pattern that is no longer scanned recorded in an older ledger, matches whatever the file
        # holds. So it counts only if there is nothing else.
        states = [recorded for recorded in known if recorded != file.path] or known
        was_known = now in known or any(self._is_as_recorded(file, recorded) for recorded in states)
        return Recognised(now, was_known, (now,), known, was_other=bool(known) and not was_known)

    def _is_as_recorded(self, file: Found, recorded: str) -> bool:
        """Whether nothing shows that a remote file has changed since it was recorded."""
        state = _REMOTE_STATE.search(recorded)
        if state is None:
            return True
        if state["length"] is None:
            return not file.version or state["version"] == file.version
        length, millis = int(state["length"], 16), int(state["millis"], 16)
        if not self._by_length:
            return length <= file.length
        has_times = bool(millis and file.modified_millis) and not file.version
        return length == file.length and (not has_times or millis == file.modified_millis)

    def _unchanged(self, path: str) -> Recognised | None:
        """The file if it has the times that were recorded with it; None if it must be opened."""
        status = status_of(local_path(path))
        recorded = None if status is None else self._recorded_of(status)
        if recorded is None:
            return None
        return Recognised(recorded.partition(_TIMES)[0], True, (recorded,), (recorded,))

    def _recorded_of(self, status: os.stat_result) -> str | None:
        """The recorded identity of the only known file with this device and inode, if times and length are equal."""
        number = _number(status)
        recorded = self._by_number.get(number)
        if not recorded or not recorded.endswith(f"{_TIMES}{_times(status)}"):
            return None
        return recorded if recorded.startswith(f"{number}-{status.st_size}-") else None

    def _identify_opened(self, path: str) -> Recognised:
        try:
            file = opened_here(path)
        except (FileNotFoundError, NotRegular):
            return Recognised(None, False)
        with file:  # an open file stays the same if another one takes its name
            identity = _identity(file, path)
            if identity is None:
                return Recognised(None, False)
            status = os.fstat(file.fileno())
            candidates = self._indexed().get(_inode(identity), [])
            same = tuple(recorded for recorded in candidates if _is_of(file, path, recorded.partition(_TIMES)[0]))
            same = same or tuple(
                recorded for recorded in self._by_name.get(_name(identity), ()) if _is_copy(identity, status, recorded)
            )
        overwritten = self._by_time and _has_other_time(status, same)
        # A writer that appends may just have set the time, and the length follows. So the file counts as known for
        # another tick.
        if overwritten and not is_settled(status.st_mtime_ns, time.time_ns()):
            return Recognised(identity, True, same, same)
        if overwritten:
            identity += f"-{status.st_mtime_ns:x}"
        # Within the tick, another change would leave both times as they are. Then one of them is not recorded, so that
        # the next scan opens the file again.
        is_final = is_settled(status.st_ctime_ns, time.time_ns())
        times = _times(status) if is_final else f"{status.st_mtime_ns:x}"
        grown = self._by_length and _has_grown(status, same)
        rewritten = not same and any(_name(recorded) == _name(identity) for recorded in candidates)
        return Recognised(
            identity,
            bool(same) and not overwritten and not grown,
            (f"{identity}{_TIMES}{times}",),
            same,
            was_other=overwritten or grown or rewritten,
            status=status,
        )


def _number(status: os.stat_result) -> str:
    return f"{status.st_dev:x}.{status.st_ino:x}"


def _times(status: os.stat_result) -> str:
    return f"{status.st_mtime_ns:x}.{status.st_ctime_ns:x}"


def _has_other_time(status: os.stat_result, same: Iterable[str]) -> bool:
    """Whether a file of the same length was recorded, with its time of change, and only with others than this one."""
    times = {
        recorded.partition(_TIMES)[2].partition(".")[0]
        for recorded in same
        if _TIMES in recorded and recorded.split("-")[1] == str(status.st_size)
    }
    return bool(times) and f"{status.st_mtime_ns:x}" not in times


def _is_copy(identity: str, status: os.stat_result, recorded: str) -> bool:
    """Whether a file with another inode than it was recorded with is the same in everything else."""
    known, _, times = recorded.partition(_TIMES)
    return known.split("-")[1:4] == identity.split("-")[1:4] and times.partition(".")[0] == f"{status.st_mtime_ns:x}"


def _has_grown(status: os.stat_result, same: Iterable[str]) -> bool:
    """Whether a file is longer than it was each time when it was recorded. Without a name, that is unknown."""
    lengths = [int(recorded.split("-")[1]) for recorded in same if _name(recorded)]
    return bool(lengths) and max(lengths) < status.st_size


def _name(recorded: str) -> str:
    """The digest of the name of a local file; empty in an older ledger."""
    return "".join(recorded.partition(_TIMES)[0].split("-")[3:4])


def _identity(file: FileIO, path: str) -> str | None:
    status = os.fstat(file.fileno())
    if not status.st_size:
        return None
    return f"{_number(status)}-{status.st_size}-{witness_of(file, status.st_size)}-{_digest(os.fsencode(path))}"


def _is_of(file: FileIO, path: str, identity: str) -> bool:
    number, length, witness, *rest = identity.split("-")
    name = rest[:1]  # then the time of an overwrite
    status = os.fstat(file.fileno())
    # Older ledgers hold neither devices nor names. The number of a device may change at a restart of the machine, so a
    # file with its old name needs no equal device.
    is_there = name in ([], [_digest(os.fsencode(path))]) or number == _number(status)
    return is_there and _inode(identity) == f"{status.st_ino:x}" and witness_of(file, int(length)) == witness


def _inode(identity: str) -> str:
    """The inode number of an identity, without the device."""
    return identity.partition("-")[0].rpartition(".")[2]


def witness_of(file: FileIO, length: int) -> str:
    """A digest of a file's first bytes, and of the last bytes before `length`.

    If the file has become shorter, the digest differs. For a file of at most two edges it covers all bytes.
    """
    end = max(EDGE, length - EDGE)
    return _digest(os.pread(file.fileno(), min(EDGE, length), 0) + os.pread(file.fileno(), max(0, length - end), end))


def witness_in(identity: str, length: int) -> str:
    """The digest of the first and last bytes in the identity of a local file of a length; empty if it has none.

    An author who sends a file may give it an identity of any form.
    """
    number, *rest = identity.split("-") if not is_url(identity) else ("",)
    return rest[1] if number and len(rest) > 1 and rest[0] == str(length) else ""


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()
