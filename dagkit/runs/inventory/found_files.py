"""How far the committed windows have come with the files that were found."""

from array import array
from bisect import bisect_left
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Literal, Self

from dagkit.engine.record.checkpoint import Checkpoint
from dagkit.engine.record.work_history import untaken
from dagkit.ledger import Ledger
from dagkit.runs.inventory.arrivals import Noted, path_of
from dagkit.runs.inventory.readings import sources_in

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


Stage = Literal["waiting", "read", "quarantined", "given-up"]
"""What became of a file that was found."""
UNTAKEN = "no window has taken it yet"
FOLLOWED = "it is followed: what is appended to it is read"


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """The files of which work is not done, by their paths; all others that were found are read."""

    noted: Noted
    waiting: Mapping[str, Hashes]
    """Those of which work waits, by the reason."""
    aside: Mapping[str, str]
    """Those of which work is set aside, with the reason."""
    given_up: Mapping[str, str]
    """Those of which work was given up when they were read last, with the reason."""
    followed: Hashes
    """Those of which work without an end has begun."""

    @classmethod
    def of(cls, ledger: Ledger, checkpoint: Checkpoint) -> Self:
        """What is not done after the last window, whose checkpoint is given."""
        noted, waiting, followed = Noted.of(ledger), dict[str, Hashes](), Hashes()
        for item in checkpoint.queue:
            if item.has_end or not item.turn:
                waiting.setdefault(f"it waits for {item.into.operator}", Hashes()).add(path_of(item.name))
            else:
                followed.add(path_of(item.name))
        for work in untaken(ledger):
            waiting.setdefault(UNTAKEN, Hashes()).add(path_of(work.place.source))
        aside = {path_of(each.item.name): f"set aside: {each.reason}" for each in checkpoint.aside}
        return cls(noted, waiting, aside, _given_up(ledger, noted), followed)

    def stage_of(self, path: str) -> tuple[Stage, str]:
        """What became of a file that was found, and why it is not read."""
        if path in self.aside:
            return "quarantined", self.aside[path]
        reason = next((reason for reason, paths in self.waiting.items() if path in paths), None)
        if reason is not None:
            return "waiting", reason
        if path in self.given_up:
            return "given-up", self.given_up[path]
        return "read", FOLLOWED if path in self.followed else ""


def _given_up(ledger: Ledger, noted: Noted) -> Mapping[str, str]:
    """The files of which work was given up, and which were not found again since."""
    if not noted.given_up:
        return {}
    last = {path_of(source): source for source in noted.given_up}
    for source in (*noted.receivers, *sources_in(ledger)):
        if (path := path_of(source)) in last:
            last[path] = source
    return {path: noted.given_up[source] for path, source in last.items() if source in noted.given_up}
