"""The files that a splitter has seen, each as a digest of twelve bytes."""

import base64
import hashlib

from dagkit_operators.filesystem.access import Found

BYTES = 12
"""The bytes of a digest: two given files share it with a probability of 2^-96."""
CHARACTERS = 16
"""The characters of a digest in Base64."""


class SeenFiles:
    """The digests of files, and which of them the current scan found."""

    def __init__(self, text: str = "") -> None:
        content = base64.b64decode(text)
        self._scans = dict.fromkeys((content[at : at + BYTES] for at in range(0, len(content), BYTES)), 0)
        """The last scan that found each file."""
        self._scan = 0
        self.there = 0
        """How many of them the current scan found."""

    def __len__(self) -> int:
        return len(self._scans)

    @property
    def gone(self) -> int:
        """How many of them the current scan did not find."""
        return len(self._scans) - self.there

    @property
    def text(self) -> str:
        """The digests in Base64, for the state."""
        return base64.b64encode(b"".join(self._scans)).decode()

    def begin_scan(self) -> None:
        """Begin another scan, which has found nothing yet."""
        self._scan += 1
        self.there = 0

    def has(self, found: Found) -> bool:
        """Whether a file of this path, length, time and version was seen; the current scan has found it then."""
        if not self._scans:
            return False
        known = digest(found)
        if known not in self._scans and found.version:
            known = digest(found._replace(version=""))  # as an earlier release recorded it
        scan = self._scans.get(known)
        if scan is not None and scan != self._scan:
            self._scans[known] = self._scan
            self.there += 1
        return scan is not None

    def add(self, found: Found) -> str:
        """Add a file, and return its digest in Base64."""
        added = digest(found)
        self._scans[added] = self._scan
        self.there += 1
        return base64.b64encode(added).decode()

    def forget_gone(self) -> None:
        """Forget the files that the current scan did not find."""
        self._scans = {known: scan for known, scan in self._scans.items() if scan == self._scan}


def digest(found: Found) -> bytes:
    """A digest of what identifies a file."""
    kind, version = "/" if found.is_directory else "", f" {found.version}" if found.version else ""
    # a directory is described once, whatever its time: that changes with each file in it
    facts = f"{found.path}{kind}" if kind else f"{found.length} {found.modified_millis} {found.path}{version}"
    return hashlib.blake2b(facts.encode(), digest_size=BYTES).digest()
