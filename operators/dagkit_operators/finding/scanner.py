"""Scanning for files: which files, where, and how often."""

import logging
import os
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any, Literal

from pydantic import Field, NonNegativeInt, PrivateAttr, field_validator

from dagkit.ground.patterns import HELP, is_whole, refusal
from dagkit.ground.urls import absolute, is_url, plain, shown
from dagkit_operators.filesystem.access import Found, exists, reading_from, to_read
from dagkit_operators.filesystem.listing import NOTHING, FolderMemory, Skips, files_below, paths_below, unfinished
from dagkit_operators.filesystem.path_patterns import missing
from dagkit_operators.finding.bad_places import OR_LEAVE
from dagkit_operators.finding.completeness import CompletenessRules

_log = logging.getLogger(__name__)

_THEN = "or name another place in scanner.files"
RELATIVE = "relative paths begin in the folder from which you launch"
_GONE = (
    "scanner.files names %s, and there is no such file or directory; each scan looks for it again\n"
    f"  help: make it, {_THEN}; {RELATIVE}"
)


class DirectoryScanner(CompletenessRules):
    """Which files to scan for, where, how often, and when a file is complete."""

    files: tuple[str, ...] = Field(min_length=1)
    """The files and directories to scan: paths, or URLs that pyarrow or fsspec open."""
    recursive: bool = True
    """Whether directories inside directories are scanned too."""
    scan_interval_millis: NonNegativeInt = 5000
    """The time from the end of a scan to the start of the next."""
    file_pattern_regular_exp: str | None = None
    """A pattern that the whole path must match; None: every path."""
    ignore_file_pattern_regular_exp: str | None = None
    """A pattern that the whole path must not match."""
    skip_unfinished: bool = True
    """Whether hidden and unfinished files in directories are skipped: `.name`, `name.tmp`, `name._COPYING_`."""
    directories: bool = False
    """Whether directories on this machine are described too, without blocks, so that empty ones can be copied: those
    inside the scanned ones, and a scanned one that is empty."""
    rescan: Literal["files", "folders"] = "files"
    """What a later scan examines: `files`: every file; `folders`: only the files of local directories whose own time of
    change differs. That is faster, and does not notice a file that was changed in place: use it if files are renamed
    into their directories when they are complete."""
    skip_known_content: bool = False
    """Whether a new file is skipped if its content, decompressed, is that of a file that was split before: a copy, a
    renamed file, or one that rotation compressed. Each scan reads the new files for that."""
    renamed: Literal["read", "skip"] = "skip"
    """Whether a local file that was read and then renamed is read again or skipped. To skip it, it is recognised by its
    device, inode, length, time of change, and first and last 256 bytes. A file with several hard links is read by each
    of its names."""
    events: bool = False
    """Whether a change in a local place starts a scan at once. Events are a hint, and may be missing on network
    filesystems: scans by time remain. It needs the package `watchfiles`, and a launch that runs until it is stopped."""
    trigger: bool = False
    """Setting this with `dagkit set` scans at once, without waiting for the interval. Each launch begins with a scan
    anyway."""

    _missing: set[str] = PrivateAttr(default_factory=set)

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

    def scan(
        self,
        *,
        once_there: bool = False,
        memory: FolderMemory | None = None,
        skips: Skips = NOTHING,
    ) -> Iterator[Found]:
        """The files that exist now. Raise InputUnreadable if a named path is missing; with `once_there`, log it.

        Local directories that `memory` knows unchanged are left out.
        """
        for root in map(absolute, self.files):
            skipped = 0 if memory is None else memory.files
            is_empty = True
            with reading_from(root, _THEN if is_url(root) else f"{OR_LEAVE}, {_THEN}"):
                for found in self._scan(root, once_there=once_there, memory=memory, skips=skips):
                    is_empty = False
                    yield found
            # Files in folders that were not listed again were not yielded, and are there.
            if is_empty and not once_there and (memory is None or memory.files == skipped):
                _log_empty(root, self.file_pattern_regular_exp, self.ignore_file_pattern_regular_exp)

    def relative_path(self, path: str) -> str:
        """The name of the scanned directory, and the path of a file below it; empty if the file was named itself."""
        for root in (plain(absolute(file)).rstrip("/") for file in self.files):
            if path.startswith(f"{root}/"):
                return root.rpartition("/")[2] + path[len(root) :]
        return ""

    def _scan(self, root: str, *, once_there: bool, memory: FolderMemory | None, skips: Skips) -> Iterator[Found]:
        named, path = to_read(root), plain(root)
        is_missing = named is None and not exists(root)
        # Once, and not at each scan: it may be missing for days.
        if is_missing and once_there and root not in self._missing:
            _log.warning(_GONE, shown(root))
        (self._missing.add if is_missing else self._missing.discard)(root)
        if named is not None:
            if self._matches(path):
                yield named
        elif not is_missing:
            patterns, start = self.file_pattern_regular_exp or self.ignore_file_pattern_regular_exp, path.rstrip("/")
            yield from files_below(
                root,
                recursive=self.recursive,
                wanted=(lambda below: self._matches(f"{start}/{below}")) if patterns else None,
                skip_unfinished=self.skip_unfinished,
                directories=self.directories,
                memory=memory,
                skips=skips,
            )
        elif not once_there:
            raise missing(root, _THEN if is_url(root) else f"{_THEN}; {RELATIVE}")

    @property
    def missing_places(self) -> AbstractSet[str]:
        """The places that the last scan did not find."""
        return self._missing

    def would_find(self, paths: Sequence[str]) -> Iterator[str]:
        """The paths, which have no symbolic links, at which a scan would find a file."""
        for root in map(absolute, self.files):
            shown_root = root.partition("?")[0].rstrip("/") if is_url(root) else root
            for path, below in paths_below(paths, root):
                if not self.rule_against(shown_root, below):
                    yield path

    def rule_against(self, root: str, below: str) -> str:
        """Why a scan ignores a file, with the setting, given its path below a scanned place; "" if it does not.

        The path is empty if the file was named itself.
        """
        path = f"{root.rstrip('/')}/{below}" if below else root
        wanted, unwanted = self.file_pattern_regular_exp, self.ignore_file_pattern_regular_exp
        if below and self.skip_unfinished and unfinished(below):
            return "it is hidden or unfinished by its name (skip_unfinished)"
        if "/" in below and not self.recursive:
            return "it is in a folder inside the folder (recursive)"
        if wanted is not None and not is_whole(wanted, path):
            return f"it does not match {wanted!r} (file_pattern_regular_exp)"
        if unwanted is not None and is_whole(unwanted, path):
            return f"it matches {unwanted!r} (ignore_file_pattern_regular_exp)"
        setting = self.setting_beside(path)
        return f"it describes another file ({setting})" if setting else ""

    def _matches(self, path: str) -> bool:
        wanted, unwanted = self.file_pattern_regular_exp, self.ignore_file_pattern_regular_exp
        return (wanted is None or is_whole(wanted, path)) and (unwanted is None or not is_whole(unwanted, path))


@lru_cache(maxsize=4096)  # once in each process, however often a folder is scanned
def _log_empty(root: str, wanted: str | None, unwanted: str | None) -> None:
    settings = {"file_pattern_regular_exp": wanted, "ignore_file_pattern_regular_exp": unwanted}
    patterns = " and ".join(f"{name} {pattern!r}" for name, pattern in settings.items() if pattern)
    which = f"no file there passes {patterns}" if patterns else "there is no file there"
    _log.warning("scanner.files names %s, and %s", shown(root), which)
