"""Patterns of paths: the files that a pattern with wildcards matches."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from dagkit.errors import InputUnreadable
from dagkit.ground.patterns import is_whole
from dagkit.ground.urls import absolute, is_url, shown
from dagkit_operators.filesystem.access import Found, to_read
from dagkit_operators.filesystem.listing import NOTHING, Skips, files_below, paths_below, unfinished


def missing(place: str, then: str) -> InputUnreadable:
    """The error for a path that must exist and does not."""
    if is_pattern(place):
        then = "or ask for a pattern by file_pattern_regular_exp, or by MatchFiles: here it is a name like any other"
    return InputUnreadable(f"cannot read {shown(place)}: there is no such file or directory", f"make it, {then}")


def would_match(pattern: str, paths: Sequence[str]) -> Iterator[str]:
    """The paths, which have no symbolic links, at which `files_like(pattern)` would yield a file."""
    folder, likeness = _folder_and_likeness(absolute(pattern))
    matches = matching(likeness)
    for path, below_it in paths_below(paths, folder):
        if not unfinished(below_it) and matches(below_it):
            yield path


def files_like(
    pattern: str,
    skips: Skips = NOTHING,
    is_known: Callable[[os.stat_result], bool] | None = None,
) -> Iterator[Found]:
    """The files that a pattern matches: the file of this name; all files in the folder of this name; else all matches.

    `*` and `?` match characters of one name, `**` also matches folders; a local folder of such a name is that
    folder. In URLs `?` begins the options as usual. Below the part of the pattern without wildcards, hidden and
    unfinished files are skipped. See `files_below` for `is_known`, which is not asked about a file of this name.
    """
    place = absolute(pattern)
    named = to_read(place)
    if named is not None:
        yield named
        return
    folder, likeness = _folder_and_likeness(place)
    recursive = not likeness or "/" in likeness or "**" in likeness
    yield from files_below(
        folder,
        recursive=recursive,
        wanted=matching(likeness) if likeness else None,
        skip_unfinished=True,
        is_known=is_known,
        skips=skips,
    )


def files_beside(pattern: str, skips: Skips) -> Iterator[Found]:
    """The files in the folders that a pattern searches, whether they match it or not."""
    folder, likeness = _folder_and_likeness(absolute(pattern))
    recursive = not likeness or "/" in likeness or "**" in likeness
    yield from files_below(folder, recursive=recursive, skips=skips)


def is_pattern(pattern: str) -> bool:
    """Whether it contains wildcards, so that it may match any number of files."""
    return bool(_folder_and_likeness(absolute(pattern))[1])


def _folder_and_likeness(place: str) -> tuple[str, str]:
    """Divide a pattern into the folder before the first wildcard, and the pattern of the paths below it.

    A local folder whose name contains wildcards is that folder.
    """
    path, mark, options = place.partition("?") if is_url(place) else (place, "", "")
    wildcard = re.compile(r"[*\[]" if is_url(place) else r"[*?\[]")
    first = wildcard.search(path)
    while first is not None and not is_url(place):
        end = path.find("/", first.start())
        named = path if end < 0 else path[:end]
        if not os.path.isdir(named):  # noqa: PTH112 - a Path would change what it names
            break
        first = wildcard.search(path, len(named))
    if first is None:
        return place, ""
    folder, _, _ = path[: first.start()].rpartition("/")
    return (folder or "/") + mark + options, path[len(folder) :].lstrip("/")


_NOTHING = r"[^\x00-\x{10FFFF}]"
"""A character class of RE2 that matches nothing."""


def matching(likeness: str) -> Callable[[str], Any]:
    """A test of paths below a folder by the pattern; it accepts all paths if the pattern is empty."""
    if not likeness:
        return lambda _: True
    from fsspec.utils import glob_translate  # noqa: PLC0415 - only patterns need it

    # fsspec writes it for `re`. RE2 has neither `\Z` nor `(?!)`, which stands for an empty class of characters.
    translated = glob_translate(likeness).removesuffix(r"\Z").replace("(?!)", _NOTHING)
    return partial(is_whole, translated)
