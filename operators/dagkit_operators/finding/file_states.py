"""States of files for `dagkit files`, as a scanning splitter would judge them now; and found files as bytes."""

import struct
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from dagkit.api.files import READ_BEFORE, FileState
from dagkit.errors import RunFailure
from dagkit.ground.urls import absolute, as_text, plain
from dagkit_operators.filesystem.access import (
    Found,
    exists,
    is_bad_file,
    is_of_file,
    looked_up,
    reading_from,
    unreadable_kind,
)
from dagkit_operators.filesystem.identities import COARSE_TICK_MILLIS, settles_in_millis
from dagkit_operators.filesystem.listing import Skips, files_below
from dagkit_operators.finding.bad_places import cause_of, state_left_out
from dagkit_operators.finding.completeness import IncompleteFiles
from dagkit_operators.finding.contents import bytes_of_file
from dagkit_operators.finding.read_before import ReadBefore
from dagkit_operators.finding.scanner import DirectoryScanner
from dagkit_operators.finding.seen_files import SeenPaths


def states_of(
    scanner: DirectoryScanner,
    before: ReadBefore,
    *,
    now_millis: int,
    path: str | None,
    stops: bool,
    opens: bool,
    written: Mapping[str, Sequence[str]],
) -> Iterator[FileState]:
    """The states of all files in the scanned places, or of the one at a path. A file in two places is listed twice.

    A file or folder that may not be read has a state, too: with `stops`, a scan stops at it. With `opens`, a scan reads
    new files.
    """
    paths: SeenPaths | None = None
    for place in map(absolute, scanner.files):
        unreadable: dict[str, str] = {}
        left_out: dict[str, Exception] = {}
        root = plain(place)
        with reading_from(place):
            for found in _there(place, path, Skips(written, left_out.__setitem__, unreadable.__setitem__)):
                rule = scanner.rule_against(root, _below(root, found.path))
                if rule:
                    yield FileState(found.path, "ignored", rule)
                elif before.seen.has(found):
                    yield FileState(found.path, "seen")
                else:
                    paths = before.seen.paths() if paths is None else paths
                    try:
                        state = _unseen(found, scanner, before, now_millis, opens=opens)
                    except RunFailure as error:
                        if not is_bad_file(error):
                            raise
                        left_out[found.path] = cause_of(error)
                        continue
                    is_again = state.state == "new" and found.path in paths
                    yield replace(state, reason=READ_BEFORE) if is_again else state
        yield from map(ignored_kind, unreadable.items())
        yield from (state_left_out(at, error, stops=stops) for at, error in left_out.items())


def ignored_kind(unreadable: tuple[str, str]) -> FileState:
    """The state of a FIFO, a device, a socket or a dangling link, given its path and its kind."""
    path, kind = unreadable
    return FileState(as_text(path), "ignored", f"it is {kind}, and only regular files are read")


def _there(place: str, path: str | None, skips: Skips) -> Iterator[Found]:
    """The files at and below a place, or the one at a path if it is there."""
    if path is not None and path != place and not _below(plain(place), path):
        return
    at = place if path is None else path
    try:
        named, kind = looked_up(at), unreadable_kind(at)
    except OSError as error:
        if not is_of_file(error) or skips.leave_out is None:
            raise
        skips.leave_out(at, error)
        return
    if named is not None:
        yield named
    elif kind is not None:
        skips.unreadable(at, kind)
    elif path is None and exists(place):
        yield from files_below(place, recursive=True, skips=skips)


def _below(root: str, path: str) -> str:
    """The path of a file relative to a place, as people read it; empty if it is not below it."""
    start, name = f"{root.rstrip('/')}/", plain(path)
    return name[len(start) :] if name.startswith(start) else ""


def _unseen(found: Found, scanner: DirectoryScanner, before: ReadBefore, now_millis: int, *, opens: bool) -> FileState:
    incomplete = IncompleteFiles(scanner)
    incomplete.begin_scan()
    state = incomplete.state_of(found, now_millis)
    if state is not None:
        return state
    reason = before.why_known(found)
    if reason:
        return FileState(found.path, "ignored", reason)
    if opens and not found.is_directory:
        # As the scan does for a receipt, so that a file that cannot be read is reported now.
        next(bytes_of_file(found), b"")
    return FileState(found.path, "new")


_TIME = struct.Struct(">Q")
_EPOCH = 1 << 63
"""Added to times before they are packed, so that those before 1970 come first."""
_MARK = b"\0"
"""Precedes the length and the version of an object; paths do not contain it."""


# A scan may find a million new files, and keeps them until they are split. As bytes they take a third of the
# memory, and sorted bytes are in order of time, then of path.
def packed(found: Found) -> bytes:
    """A file as bytes. Its length is left out unless it has a version: the file is looked up again when it is split."""
    path = _TIME.pack(found[2] + _EPOCH) + found[0].encode()  # by index, which is faster: it is done for each file
    return path if not found[3] else b"%b\0%d\0%b" % (path, found[1], found[3].encode())


def unpacked(content: bytes) -> Found:
    """The file; its length is -1 unless it has a version."""
    path, _, rest = content[_TIME.size :].partition(_MARK)
    length, _, version = rest.partition(_MARK)
    return Found(path.decode(), int(length) if version else -1, _time_in(content), version.decode())


def settle_in_millis(found: Sequence[bytes], now_millis: int) -> int:
    """How long to wait until all these files, which are sorted, are settled: see `settles_in_millis`."""
    first, last = (
        bisect_left(found, _TIME.pack(now_millis + distance + _EPOCH))
        for distance in (-COARSE_TICK_MILLIS, COARSE_TICK_MILLIS)
    )
    return max((settles_in_millis(unpacked(content), now_millis) for content in found[first:last]), default=0)


def _time_in(content: bytes) -> int:
    (time,) = _TIME.unpack_from(content)
    return int(time) - _EPOCH
