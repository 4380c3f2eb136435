"""Which files a splitter has read: by path, length and time; if renamed, by inode; and by content, if asked to."""

import base64
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from dagkit.errors import InputUnreadable
from dagkit.ground.urls import is_url
from dagkit_operators.filesystem.access import Found, leads_nowhere, opened_here
from dagkit_operators.filesystem.identities import EDGE, witness_of
from dagkit_operators.finding.contents import content_digest, is_gone
from dagkit_operators.finding.scanner import DirectoryScanner
from dagkit_operators.finding.seen_files import BYTES, Digests, SeenFiles


class Inode(NamedTuple):
    """The identity of a local file, which a rename does not change."""

    digest: str
    """A digest of its device, inode, length, time of change, and first and last bytes; empty if it has none.

    The bytes distinguish another file that reuses the inode and has the same length and time.
    """
    has_one_name: bool
    """Whether it has no other hard link. So if it was known by another name, that name is gone."""
    witness: str = ""
    """A digest of its first and last bytes: see `witness_of`."""


UNKNOWN = Inode("", has_one_name=False)
"""The inode of a file that is never taken for a renamed one."""


def inode_of(found: Found) -> Inode | None:
    """The inode of a file; None if it is no longer as it was found.

    Remote files, directories and files without bytes have none, and are never taken for renamed.
    """
    if is_url(found.path) or found.is_directory or not found.length:
        return UNKNOWN
    try:
        with opened_here(found.path) as file:
            status = os.fstat(file.fileno())
            if not status.st_ino:  # the filesystem does not number its files
                return UNKNOWN
            if (status.st_size, status.st_mtime_ns // 1_000_000) != (found.length, found.modified_millis):
                return None
            # Not `witness`: digests of ledgers have these bytes, which overlap in a file shorter than two edges.
            ends = os.pread(file.fileno(), EDGE, 0) + os.pread(file.fileno(), EDGE, max(0, found.length - EDGE))
            witness = witness_of(file, found.length)
    except OSError as error:  # a file that cannot be opened is reported by its reader
        return None if leads_nowhere(error) else UNKNOWN
    facts = f"{status.st_dev} {status.st_ino} {status.st_size} {status.st_mtime_ns} ".encode()
    digest = base64.b64encode(hashlib.blake2b(facts + ends, digest_size=BYTES).digest()).decode()
    return Inode(digest, status.st_nlink == 1, witness)


class Remembered(NamedTuple):
    """Digests, concatenated, as the state of a splitter has them."""

    known: str = ""
    """Of paths, lengths and times of change."""
    inodes: str = ""
    """Of inodes, unless `scanner.renamed` is `read`."""
    contents: str = ""
    """Of contents, if `scanner.skip_known_content`."""


class ReadBefore:
    """The files that were read before, and the digests that were added since `take_added` was called last."""

    def __init__(self, scanner: DirectoryScanner, remembered: Remembered, *, by_path: bool) -> None:
        """`by_path` is whether the digests in `remembered.known` begin with those of the paths."""
        self._skips_known_content = scanner.skip_known_content
        self._skips_renamed = scanner.renamed == "skip"
        self.seen = SeenFiles(remembered.known, by_path=by_path)
        self._inodes = Digests(remembered.inodes)
        self._contents = Digests(remembered.contents)
        self._added: list[Remembered] = []

    @property
    def remembered(self) -> Remembered:
        """All digests."""
        return Remembered(self.seen.text, self._inodes.text, self._contents.text)

    def take_added(self) -> Remembered | None:
        """The digests that were added since the last call, concatenated; None if there are none."""
        added, self._added = self._added, []
        return Remembered(*map("".join, zip(*added, strict=True))) if added else None

    def add(self, found: Found, inode: Inode, content: str | None) -> str:
        """Remember a file by its inode and the digest of its content. Return why not to read it; empty if it is new."""
        # Under its new name, too. Otherwise each later scan would examine the renamed file again.
        known = self.seen.add(found)
        if self._was_renamed(inode):
            self._added.append(Remembered(known))
            return "was split under another name"
        by_inode = self._inodes.add(inode.digest) if self._skips_renamed else ""
        by_content = "" if content is None else self._contents.add(content)
        self._added.append(Remembered(known, by_inode, by_content))
        return "" if content is None or by_content else "has the content of a file that was split before"

    def why_known(self, found: Found) -> str:
        """Why a file that is new by its path, length and time is not read; empty if it is."""
        if self._skips_renamed and self._was_renamed(inode_of(found)):
            return "it was read under another name (renamed)"
        try:
            if self._skips_known_content and content_digest(found) in self._contents:
                return "its content was read before (skip_known_content)"
        except InputUnreadable as error:
            if not is_gone(error):
                raise
        return ""

    def adopt(self, files: Iterable[Found], was_read: Callable[[str, int], bool]) -> None:
        """Remember the files that another program has read."""
        for found in files:
            if was_read(found.path, found.modified_millis) and not self.seen.has(found):
                self.seen.add(found)
                for digests, digest in self._more_of(found):
                    digests.add(digest)

    def forget(self, found: Found) -> bool:
        """Forget a file as it is now. Return whether it was known."""
        if not self.seen.forget(found):
            return False
        for digests, digest in self._more_of(found):
            digests.discard(digest)
        return True

    def _was_renamed(self, inode: Inode | None) -> bool:
        """Whether a file was known by another name. A file with several hard links is read by each of its names."""
        return self._skips_renamed and inode is not None and inode.has_one_name and inode.digest in self._inodes

    def _more_of(self, found: Found) -> Iterator[tuple[Digests, str]]:
        content = content_digest(found) if self._skips_known_content else None
        if content is not None:
            yield self._contents, content
        inode = inode_of(found) if self._skips_renamed else None
        if inode is not None:
            yield self._inodes, inode.digest
