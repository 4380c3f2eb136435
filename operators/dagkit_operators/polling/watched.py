"""What is known of a polled element, and the tracker that grants polls."""

from dataclasses import dataclass, replace
from datetime import datetime
from threading import Lock

from dagkit.ranges import Progress, RestrictionTracker, SplitRestriction, WorkUnclaimed
from dagkit.ranges.cursor import Run


@dataclass(frozen=True, slots=True, order=True)
class Poll:
    """The result of one poll that is to be sent; polls are ordered by their times."""

    at: datetime
    new: tuple[str, ...] = ()
    """The digests of the outputs that are new."""
    known: tuple[str, ...] | None = None
    """The digests that are known after the poll; None: those known before, and the new ones."""
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class Watched:
    """The polls of an element that are still to come, as its restriction."""

    known: tuple[str, ...] = ()
    """The digests of the outputs that were sent."""
    began: datetime | None = None
    """When the first poll was; None before it."""
    newest: datetime | None = None
    """When the last new output was found; at first, when the first poll was."""

    def after(self, poll: Poll) -> "Watched":
        """Return what is known after a poll."""
        known = (*self.known, *poll.new) if poll.known is None else poll.known
        newest = poll.at if poll.new or self.newest is None else self.newest
        return replace(self, known=known, began=self.began or poll.at, newest=newest)


class WatchedTracker(RestrictionTracker[Watched, Poll]):
    """Grants one poll. All later polls are the rest, which is split off; there is none after the last poll."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self._claimed: Poll | None = None
        self._is_split = False
        self._lock = Lock()

    def current_restriction(self) -> Watched:
        return self._watched

    def is_bounded(self) -> bool:
        return False

    def is_started(self) -> bool:
        return self._claimed is not None

    def try_claim(self, position: Poll) -> bool:
        with self._lock:
            is_granted = self._claimed is None and not self._is_split
            if is_granted:
                self._claimed = position
            return is_granted

    def claim_many(self, positions: Run[Poll]) -> int:
        return int(len(positions) > 0 and self.try_claim(positions[0]))

    def try_split(self, fraction_of_remainder: float) -> SplitRestriction[Watched] | None:
        with self._lock:
            is_over = self._claimed is not None and self._claimed.is_last
            if fraction_of_remainder > 0.0 or self._is_split or is_over:
                return None
            self._is_split = True
            rest = self._watched if self._claimed is None else self._watched.after(self._claimed)
            return SplitRestriction(self._watched, rest)

    def current_progress(self) -> Progress:
        return Progress(float(self.is_started()), float("inf"))

    def check_done(self) -> None:
        if not self._is_split and not (self._claimed is not None and self._claimed.is_last):
            raise WorkUnclaimed(self._claimed, None)
