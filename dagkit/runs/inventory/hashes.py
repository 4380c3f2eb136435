"""A set that remembers of each value only its hash, in eight bytes: a million of values take eight megabytes."""

from array import array
from bisect import bisect_left
from collections.abc import Hashable

RECENT = 1 << 16
"""As many hashes are kept in a Python set before they are merged into the array: each takes ten times as much there."""


class Hashes:
    """A set of values, of which two count as one if their hashes of 64 bits are equal."""

    def __init__(self) -> None:
        self._sorted = array("q")
        self._recent: set[int] = set()

    def __len__(self) -> int:
        return len(self._sorted) + len(self._recent)

    def __contains__(self, value: Hashable) -> bool:
        sought = hash(value)
        if sought in self._recent:
            return True
        at = bisect_left(self._sorted, sought)
        return at < len(self._sorted) and self._sorted[at] == sought

    def add(self, value: Hashable) -> bool:
        """Add a value; return whether it is new."""
        if value in self:
            return False
        self._recent.add(hash(value))
        if len(self._recent) >= RECENT:
            self._merge()
        return True

    def _merge(self) -> None:
        import numpy as np  # noqa: PLC0415 - few lists are that long

        merged = np.concatenate([np.frombuffer(self._sorted, np.int64), np.fromiter(self._recent, np.int64)])
        merged.sort()
        self._sorted = array("q", merged.tobytes())
        self._recent = set()
