"""Listing the files in folders, on this machine and on remote filesystems."""

import logging
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from dagkit.errors import printable
from dagkit.ground.application_folder import LEDGER, OWN
from dagkit.ground.urls import as_text, below, is_url, local_path, resolved, without_links
from dagkit_operators.filesystem.access import DANGLING, Found, is_of_file, leads_nowhere, millis_of, special_kind
from dagkit_operators.filesystem.identities import COARSE_TICK_MILLIS
from dagkit_operators.filesystem.object_store import VersionsUnknown, has_versions, log_unknown, versioned_below

UNFINISHED = (".tmp", "._COPYING_")
"""How the names of unfinished files end."""
OWN_OUTPUT = "output of this application behind a link"

_NEW = tuple.__new__
"""Makes a `Found` in half the time of a call of its class; a scan makes one for each file."""

_log = logging.getLogger(__name__)


class _Listed(NamedTuple):
    """The content of a folder when it was listed."""

    modified_nanos: int
    files: int
    folders: tuple[str, ...]


class FolderMemory:
    """The folders of earlier scans. A folder with the same time of change is not listed again.

    A folder's time changes when files are created, renamed or deleted in it, but not when a file is written to.
    """

    def __init__(self) -> None:
        self._listed: dict[str, _Listed] = {}
        self.files = 0
        """The number of files in folders that this scan did not list again."""

    def begin(self) -> None:
        """Begin another scan."""
        self.files = 0

    def unchanged(self, folder: str, modified_nanos: int) -> tuple[str, ...] | None:
        """The folders in a folder that need not be listed again; None if it must be listed."""
        listed = self._listed.get(folder)
        if listed is None or listed.modified_nanos != modified_nanos:
            return None
        self.files += listed.files
        return listed.folders

    def note(self, folder: str, modified_nanos: int, files: int, folders: list[str]) -> None:
        """Remember a folder that was listed, unless it may still change without another time."""
        if time.time_ns() - modified_nanos > COARSE_TICK_MILLIS * 1_000_000:
            self._listed[folder] = _Listed(modified_nanos, files, tuple(folders))
        else:
            self._listed.pop(folder, None)


@lru_cache(maxsize=4096)  # once in each process, however often a folder is scanned
def _log_skipped(path: str, kind: str) -> None:
    _log.warning("%s is %s, and is skipped: only regular files are read", printable(path), kind)


@dataclass(frozen=True, slots=True)
class Skips:
    """The folders and files that a walk does not read, and how it reports them."""

    written: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The folders into which an application writes, without links, each with examples of the names of its files.

    A walk skips those to which a link leads, if they may contain files that are wanted. Without a link, the compiler
    refuses to write there.
    """
    leave_out: Callable[[str, OSError], Any] | None = None
    """Called with each local folder that cannot be read, and the error; None: the error is raised."""
    unreadable: Callable[[str, str], Any] = _log_skipped
    """Called with the path and the kind of each wanted FIFO, device, socket or dangling link, and of each folder of
    `written` that is skipped."""


NOTHING = Skips()


def unfinished(below: str) -> bool:
    """Whether a relative path is that of a hidden or unfinished file, or lies in a hidden folder."""
    return below.startswith(".") or "/." in below or below.endswith(UNFINISHED)


def files_below(
    folder: str,
    *,
    recursive: bool,
    wanted: Callable[[str], Any] | None = None,
    skip_unfinished: bool = False,
    directories: bool = False,
    memory: FolderMemory | None = None,
    is_known: Callable[[os.stat_result], bool] | None = None,
    skips: Skips = NOTHING,
) -> Iterator[Found]:
    """The files in a folder, with `recursive` also in its subfolders, whose path relative to the folder is `wanted`.

    What dagkit keeps in the folder of an application is left out. With `skip_unfinished`, hidden and unfinished files
    are skipped, and hidden folders are not entered. With `directories`, the subfolders are yielded too, and the folder
    itself if it is empty. Local folders that `memory` knows unchanged are not listed. Local files for whose status
    `is_known` holds are left out.
    """
    if is_url(folder):
        for below_it, found in _without_own(_remote_files(folder, recursive=recursive)):
            if not (skip_unfinished and unfinished(below_it)) and (wanted is None or wanted(below_it)):
                yield found
        return
    place = local_path(folder)
    walk = _Walk(place, recursive, wanted, skip_unfinished, directories, memory, is_known, skips)
    yield from walk.files()


def paths_below(paths: Sequence[str], folder: str) -> Iterator[tuple[str, str]]:
    """The paths that lie in a folder or are its own, each with its relative path, which is empty for the folder.

    The paths have no symbolic links; those in the folder's own path are resolved.
    """
    itself = without_links(folder)
    start = f"{itself.rstrip('/')}/"
    for path in paths:
        if path == itself or path.startswith(start):
            yield path, path[len(start) :]


@dataclass
class _Walk:
    """One walk through a local folder. It follows links, and enters no folder twice, so that cycles of links end."""

    root: str
    recursive: bool
    wanted: Callable[[str], Any] | None
    skip_unfinished: bool
    directories: bool
    memory: FolderMemory | None
    is_known: Callable[[os.stat_result], bool] | None
    skips: Skips
    _entered: set[tuple[int, int]] = field(default_factory=set)
    _linked: list[str] = field(default_factory=list)
    """Links to folders that are still to be followed: last, so that a folder that is also there itself has its own
    name."""
    _follows: bool = False
    """Whether only folders behind links are left."""

    def files(self) -> Iterator[Found]:
        folders = [self.root]
        while folders or self._linked:
            self._follows = self._follows or not folders
            folder = (folders or self._linked).pop()
            if self._follows and self.skips.written and self._reads_output_in(folder):
                self.skips.unreadable(folder, OWN_OUTPUT)
                continue
            try:
                found = self._files_in(folder, folders)
            except OSError as error:
                if self.skips.leave_out is None or not is_of_file(error):
                    raise
                self.skips.leave_out(folder, error)
            else:
                yield from found

    def _reads_output_in(self, folder: str) -> bool:
        """Whether output of the application in a folder behind a link would be read."""
        names = self.skips.written.get(os.path.realpath(folder), ())
        below_root = folder[len(self.root) :].lstrip("/")
        return any(
            (self.recursive or "/" not in name)
            and not (self.skip_unfinished and unfinished(name))
            and (self.wanted is None or self.wanted(f"{below_root}/{name}"))
            for name in names
        )

    def _files_in(self, folder: str, folders: list[str]) -> list[Found]:
        """The wanted files of one folder, unless it was entered before; its subfolders are added to `folders`."""
        status = self._enter(folder)
        if status is None:
            return []
        inner = None if self.memory is None else self.memory.unchanged(folder, status.st_mtime_ns)
        if inner is None:
            return self._list(folder, status, folders)
        for path in inner:
            (self._linked if Path(path).is_symlink() else folders).append(path)
        return []

    def _enter(self, folder: str) -> os.stat_result | None:
        """The status of a folder; None if it is no folder, is gone, or was entered before."""
        try:
            status = Path(folder).stat()
        except OSError as error:
            if leads_nowhere(error):  # it was deleted since its folder was listed
                return None
            raise
        if not stat.S_ISDIR(status.st_mode) or (status.st_dev, status.st_ino) in self._entered:
            return None
        self._entered.add((status.st_dev, status.st_ino))
        return status

    def _is_folder(self, start: str, entry: os.DirEntry[str]) -> bool:
        try:
            return entry.is_dir()
        except OSError as error:
            error.filename = start + entry.name
            if leads_nowhere(error) or (self.skips.leave_out is not None and _is_bad_link(entry, error)):
                return False
            raise

    def _list(self, folder: str, status: os.stat_result, folders: list[str]) -> list[Found]:
        """The wanted files of one folder; its subfolders are added to `folders`."""
        start = f"{folder.rstrip('/')}/"
        with _entries(folder) as everything:
            entries = everything
            # In the folder of an application, its ledger, status and output would be read as input, and more of them by
            # each launch.
            if os.path.isfile(start + LEDGER):  # noqa: PTH113 - once for each folder
                entries = [entry for entry in entries if entry.name not in OWN]
            skips = self.skip_unfinished and _has_unfinished(entries)
            if skips:
                entries = [entry for entry in entries if not entry.name.startswith(".")]
            inner = [entry for entry in entries if self._is_folder(start, entry)]
            if inner:
                entries = [entry for entry in entries if not self._is_folder(start, entry)]
                inner = inner if self.recursive else []
            if skips:
                entries = [entry for entry in entries if not entry.name.endswith(UNFINISHED)]
            if self.wanted is not None:
                below_root = start[len(self.root) :].lstrip("/")
                entries = [entry for entry in entries if self.wanted(below_root + entry.name)]
            bad: dict[str, OSError] = {}
            leave_out, unreadable = self.skips.leave_out, self.skips.unreadable
            found = _files_of(start, entries, unreadable, self.is_known, None if leave_out is None else bad)
            for entry in inner:
                (self._linked if entry.is_symlink() else folders).append(start + entry.name)
        for path, error in bad.items():
            assert leave_out is not None, "it is asked above"
            leave_out(path, error)
        # A folder with a bad link is listed again: the link may be repaired while the time of its folder stays.
        if self.memory is not None and not bad:
            self.memory.note(folder, status.st_mtime_ns, len(found), [start + entry.name for entry in inner])
        if self.directories and (not everything or folder != self.root):
            found.append(Found(as_text(folder), 0, status.st_mtime_ns // 1_000_000, is_directory=True))
        return found


def _files_of(
    start: str,
    entries: list[os.DirEntry[str]],
    skip: Callable[[str, str], Any],
    is_known: Callable[[os.stat_result], bool] | None,
    bad: dict[str, OSError] | None,
) -> list[Found]:
    """The regular files of these entries that are not known. `start` is the path of their folder, with a slash.

    Others are passed to `skip`, and those that are gone are left out. Links that cannot be followed are added to `bad`.
    """
    found: list[Found] = []
    for entry in entries:
        try:
            status = entry.stat()
        except OSError as error:
            error.filename = start + entry.name  # an entry of an open folder knows only its name
            if bad is not None and _is_bad_link(entry, error):
                bad[error.filename] = error
                continue
            if not leads_nowhere(error):
                raise
            if entry.is_symlink():
                skip(error.filename, DANGLING)
            continue
        if status.st_mode & 0o170000 == stat.S_IFREG:  # `stat.S_ISREG`, without a call for each file
            if is_known is not None and is_known(status):
                continue
            path = start + entry.name
            text = path if path.isascii() else as_text(path)
            found.append(_NEW(Found, (text, status.st_size, status.st_mtime_ns // 1_000_000, "", False)))
        elif (kind := special_kind(status.st_mode)) is not None:
            skip(start + entry.name, kind)
    return found


def _has_unfinished(entries: list[os.DirEntry[str]]) -> bool:
    """Whether any entry may be skipped. Searching all names at once is faster than asking each."""
    names = "/".join(["", *[entry.name for entry in entries], ""])
    return "/." in names or any(f"{end}/" in names for end in UNFINISHED)


def _is_bad_link(entry: os.DirEntry[str], error: OSError) -> bool:
    """Whether an error is that of one link. One of another entry is that of its folder, and of all that is in it."""
    return entry.is_symlink() and is_of_file(error) and not leads_nowhere(error)


@contextmanager
def _entries(folder: str) -> Iterator[list[os.DirEntry[str]]]:
    """The entries of a folder, none if it is gone. Ask them for a status within the context.

    The folder is open there: the system finds a file in an open folder faster than by its path.
    """
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:  # it may have been deleted meanwhile
        if leads_nowhere(error):
            yield []
            return
        raise
    try:
        with os.scandir(opened) as entries:
            listed = list(entries)
        yield listed
    finally:
        os.close(opened)


def _without_own(listed: Iterable[tuple[str, Found]]) -> Iterator[tuple[str, Found]]:
    """The files without those that dagkit keeps in folders of applications."""
    # All of them first: the ledger, which shows that a folder belongs to an application, may come after other files.
    files = list(listed)
    homes = [name.removesuffix(LEDGER) for name, _ in files if f"/{name}".endswith(f"/{LEDGER}")]
    for name, found in files:
        if not any(name.startswith(home) and name[len(home) :].partition("/")[0] in OWN for home in homes):
            yield name, found


def _remote_files(folder: str, *, recursive: bool) -> Iterator[tuple[str, Found]]:
    if has_versions(folder):
        try:
            yield from _objects(folder, recursive=recursive)
        except VersionsUnknown as error:
            log_unknown(folder, str(error))
        else:
            return
    import pyarrow.fs as pa_fs  # noqa: PLC0415 - Arrow is not loaded when only compiling

    filesystem, inner, _ = resolved(folder)
    root = inner.rstrip("/")
    for info in filesystem.get_file_info(pa_fs.FileSelector(inner, allow_not_found=True, recursive=recursive)):
        if info.is_file:
            name = info.path[len(root) :].lstrip("/")
            yield name, Found(below(folder, name), info.size or 0, millis_of(info))


def _objects(folder: str, *, recursive: bool) -> Iterator[tuple[str, Found]]:
    """The objects below a URL. Of an object without bytes, the filesystem is asked whether it marks a directory."""
    filesystem, inner, _ = resolved(folder)
    bucket, _, prefix = inner.rstrip("/").partition("/")
    for stored in versioned_below(folder):
        name = stored.key[len(prefix) :].lstrip("/")
        if not name or ("/" in name and not recursive):
            continue
        if stored.length or filesystem.get_file_info(f"{bucket}/{stored.key}").is_file:
            yield name, Found(below(folder, name), *stored[1:])
