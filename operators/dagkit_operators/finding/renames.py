"""Recognising local files that were renamed, at the cost of a status and two small reads for each."""

import base64
import hashlib
import os
from typing import NamedTuple

from dagkit.ground.urls import is_url
from dagkit_operators.filesystem.access import Found, leads_nowhere, opened_here
from dagkit_operators.filesystem.identities import EDGE, witness_of
from dagkit_operators.finding.seen_files import BYTES, Digests


class Inode(NamedTuple):
    """What stays the same of a local file while it is renamed."""

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


class KnownInodes(Digests):
    """The inodes of the files that were read."""

    def has_renamed(self, inode: Inode) -> bool:
        """Whether a file was known by another name. A file with several hard links is read by each of its names."""
        return inode.has_one_name and inode.digest in self


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
            ends = os.pread(file.fileno(), EDGE, 0) + os.pread(file.fileno(), EDGE, max(0, found.length - EDGE))
            witness = witness_of(file, found.length)
    except OSError as error:  # a file that cannot be opened is reported by its reader
        return None if leads_nowhere(error) else UNKNOWN
    facts = f"{status.st_dev} {status.st_ino} {status.st_size} {status.st_mtime_ns} ".encode()
    digest = base64.b64encode(hashlib.blake2b(facts + ends, digest_size=BYTES).digest()).decode()
    return Inode(digest, status.st_nlink == 1, witness)
