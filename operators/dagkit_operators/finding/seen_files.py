"""The files that a splitter has seen, each as a digest of twelve bytes.

The first half of a digest is that of the path, the second one that of everything that identifies the file. So a file
that changed is distinguished from a new one without a further byte for each file. Digests in older ledgers are of
everything at once.
"""

import base64
import hashlib
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import filterfalse, islice

from dagkit_operators.filesystem.access import Found

BYTES = 12
"""The bytes of a digest: two given files share it with a probability of 2^-96, two versions of a file of 2^-48."""
OF_PATH = 6
"""The bytes of a digest that depend on the path alone."""
MARK = "*"
"""In the place of a version: the file was recorded with some version."""
CHARACTERS = 16
"""The characters of a digest in Base64."""
ASKED_EVERY = 1000
"""The files in a portion of a scan to which all files are new."""
# A digest of each file would make a later scan take twice as long as the first one. So the files of a scan are divided
# into portions, and a portion that is as in the last scan costs one hash. Portions of a fixed number of files would not
# do: a new file would change all portions after it.
_BORDER = 255
"""The bits of the hash of a path that are 0 for the last file of a portion. So a portion has 256 files on average, and
a file that comes or goes changes the portion that it belongs to, and no other."""


class Digests:
    """Digests that a state holds as one text."""

    def __init__(self, text: str = "") -> None:
        self._known = {text[at : at + CHARACTERS] for at in range(0, len(text), CHARACTERS)}

    @property
    def text(self) -> str:
        """The digests, for the state."""
        return "".join(sorted(self._known))

    def __contains__(self, digest: str | None) -> bool:
        return digest in self._known

    def add(self, digest: str) -> str:
        """Add a digest. Return it if it is new, else ""."""
        if digest in self._known:
            return ""
        self._known.add(digest)
        return digest

    def discard(self, digest: str) -> None:
        """Forget a digest, if it is known."""
        self._known.discard(digest)


class SeenFiles:
    """The digests of files, and which of them the current scan found."""

    def __init__(self, text: str = "", *, by_path: bool = True) -> None:
        """Take the digests as text. `by_path` is whether they begin with those of the paths."""
        self._by_path = by_path
        content = base64.b64decode(text)
        self._scans = dict.fromkeys((content[at : at + BYTES] for at in range(0, len(content), BYTES)), 0)
        """The last scan that found each file."""
        self._scan = 0
        self.there = 0
        """How many of them the current scan found."""
        self._portions: dict[int, int] = {}
        """How many digests each portion of the last scan had, by its hash, if all of its files had been seen."""
        self._portions_now: dict[int, int] = {}
        """`_portions` of the current scan, for the next one."""

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
        self._portions, self._portions_now = self._portions_now, {}

    def unseen(self, there: Iterable[Found], *, once: bool) -> Iterator[list[Found]]:
        """The files that were not seen before, as a list for each portion of those that are there.

        With `once`, no file is there twice, and a portion that is as in the last scan costs no digests.
        """
        if not self._scans:
            yield from _slices(there)
            return
        for portion in _portions(there):
            # Two portions with one hash would hide new files with a probability of 2^-64.
            known = hash(tuple(portion)) if once else 0
            before = self.there
            self.there += self._portions.get(known, 0)
            new = [] if self.there > before else list(filterfalse(self.has, portion))
            if once and not new:
                self._portions_now[known] = self.there - before
            yield new

    def look_at_each(self) -> None:
        """Let the next scan look up each file, so that `forget_gone` knows all that are there."""
        self._portions_now.clear()

    def has(self, found: Found) -> bool:
        """Whether a file of this path, length, time and version was seen; the current scan has found it then."""
        # Whether a store reports versions may change from scan to scan: with the credentials, or the client. No file is
        # read again for that.
        known = self._digest(found)
        if not found.version and known not in self._scans:
            known = self._digest(found, MARK)  # its versions were known before
        elif found.version and self._is_there(self._digest(found, MARK)):
            pass  # it was recorded with a version, this one or another
        elif found.version:
            known = self._digest(found, "")  # as it is recorded without a version
        return self._is_there(known)

    def _is_there(self, known: bytes) -> bool:
        scan = self._scans.get(known)
        if scan is not None and scan != self._scan:
            self._scans[known] = self._scan
            self.there += 1
        return scan is not None

    def _digest(self, found: Found, version: str | None = None) -> bytes:
        whole = digest(found, version)
        return path_digest(found.path) + whole[OF_PATH:] if self._by_path else whole

    def paths(self) -> "SeenPaths":
        """The paths of the files that are known now; empty if the digests do not begin with those of paths."""
        return SeenPaths(self._scans if self._by_path else ())

    def add(self, found: Found) -> str:
        """Add a file, and return its digests in Base64. A file with a version has two: see `has`."""
        added = b""
        for known in [self._digest(found), self._digest(found, MARK)] if found.version else [self._digest(found)]:
            if known not in self._scans:
                added += known
            self.there += self._scans.get(known) != self._scan
            self._scans[known] = self._scan
        return base64.b64encode(added).decode()

    def forget(self, found: Found) -> bool:
        """Forget a file. Return whether it was known."""
        possible = {self._digest(found, version) for version in (None, MARK, "")}
        digests = [known for known in possible if known in self._scans]
        for known in digests:
            self.there -= self._scans.pop(known) == self._scan
        # A portion that is as in the last scan is not looked up, and would hide that the file is unknown now.
        self._portions.clear()
        self._portions_now.clear()
        return bool(digests)

    def forget_gone(self) -> None:
        """Forget the files that the current scan did not find. `look_at_each` was called before it."""
        self._scans = {known: scan for known, scan in self._scans.items() if scan == self._scan}


class SeenPaths:
    """The paths of all files that were seen in any version, in eight bytes each."""

    def __init__(self, digests: Iterable[bytes]) -> None:
        import numpy as np  # noqa: PLC0415 - only a scan that finds changes needs it

        known = np.frombuffer(b"".join(digests), np.uint8).reshape(-1, BYTES)
        numbers = np.zeros((len(known), 8), np.uint8)
        numbers[:, 8 - OF_PATH :] = known[:, :OF_PATH]
        self._sorted = array("Q", np.sort(numbers.view(">u8").ravel().astype(np.uint64)).tobytes())

    def __contains__(self, path: str) -> bool:
        sought = int.from_bytes(path_digest(path))
        at = bisect_left(self._sorted, sought)
        return at < len(self._sorted) and self._sorted[at] == sought


def _slices(there: Iterable[Found]) -> Iterator[list[Found]]:
    remaining = iter(there)
    while some := list(islice(remaining, ASKED_EVERY)):
        yield some


def _portions(there: Iterable[Found]) -> Iterator[list[Found]]:
    portion: list[Found] = []
    for found in there:
        portion.append(found)
        # `hash` differs from process to process. That does no harm, since portions are kept in the process only.
        if not hash(found[0]) & _BORDER:
            yield portion
            portion = []
    yield portion


def path_digest(path: str) -> bytes:
    """A digest of a path: two given paths share it with a probability of 2^-48."""
    return hashlib.blake2b(path.encode(), digest_size=OF_PATH).digest()


def digest(found: Found, version: str | None = None) -> bytes:
    """A digest of what identifies a file: its path, length, time of change, and this or its own version."""
    version = found.version if version is None else version
    facts = f"{found.length} {found.modified_millis} {found.path}{' ' if version else ''}{version}"
    # A directory is described once: its time changes with each file in it.
    if found.is_directory:
        facts = f"{found.path}/"
    return hashlib.blake2b(facts.encode(), digest_size=BYTES).digest()
