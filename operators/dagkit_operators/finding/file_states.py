"""What a scanning splitter would do with each file that exists, without doing it."""

from collections.abc import Iterator

from dagkit.api.files import FileState
from dagkit.urls import absolute, plain
from dagkit_operators.filesystem.access import Found, exists, looked_up, reading_from
from dagkit_operators.filesystem.listing import files_below
from dagkit_operators.filesystem.renames import KnownInodes, inode_of
from dagkit_operators.finding.completeness import IncompleteFiles
from dagkit_operators.finding.contents import KnownContents
from dagkit_operators.finding.scanner import DirectoryScanner
from dagkit_operators.finding.seen_files import SeenFiles


def states_of(
    scanner: DirectoryScanner,
    seen: SeenFiles,
    contents: KnownContents,
    inodes: KnownInodes,
    *,
    now_millis: int,
    path: str | None,
) -> Iterator[FileState]:
    """The states of all files in the scanned places, or of the one at a path. A file in two places is listed twice."""
    for place in map(absolute, scanner.files):
        with reading_from(place):
            for found in _there(place, path):
                rule = scanner.rule_against(plain(place), below(place, found.path))
                if rule:
                    yield FileState(found.path, "ignored", rule)
                elif seen.has(found):
                    yield FileState(found.path, "seen")
                else:
                    yield _unseen(found, scanner, contents, inodes, now_millis)


def _there(place: str, path: str | None) -> Iterator[Found]:
    """The files at and below a place, or the one at a path if it is there."""
    if path is not None:
        found = looked_up(path) if path == place or below(place, path) else None
        if found is not None:
            yield found
        return
    named = looked_up(place)
    if named is not None:
        yield named
    elif exists(place):
        yield from files_below(place, recursive=True)


def below(place: str, path: str) -> str:
    """The path of a file relative to a place; empty if it is not below it."""
    root = plain(place).rstrip("/") + "/"
    name = plain(path)
    return name[len(root) :] if name.startswith(root) else ""


def _unseen(
    found: Found, scanner: DirectoryScanner, contents: KnownContents, inodes: KnownInodes, now_millis: int
) -> FileState:
    incomplete = IncompleteFiles(scanner)
    incomplete.begin_scan()
    state = incomplete.state_of(found, now_millis)
    if state is not None:
        return state
    inode = inode_of(found) if scanner.renamed == "skip" else None
    if inode is not None and inodes.has_renamed(inode):
        return FileState(found.path, "ignored", "it was read under another name (renamed)")
    if scanner.skip_known_content and any(map(contents.knows, contents.examine([found]))):
        return FileState(found.path, "ignored", "its content was read before (skip_known_content)")
    return FileState(found.path, "new")
