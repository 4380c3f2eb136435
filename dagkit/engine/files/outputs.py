"""The files of one run: where attempts stage them, which still have to be put in place, and what may be swept."""

import logging
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from dagkit.engine.files.checks import refuse_blocked, refuse_unseen, refuse_written_again, when_began
from dagkit.engine.files.compact import forget, gathered, many
from dagkit.engine.files.publish import (
    attempts_in,
    is_begun,
    is_finished,
    note_begun,
    note_finished,
    refuse_lost,
    staged_in,
    still_to_place,
    sweep,
    sweep_attempts,
    sweep_windows,
)
from dagkit.engine.files.regions import region_name
from dagkit.engine.files.staging import Part, StagingPlace, by_file
from dagkit.engine.points import Point

_logger = logging.getLogger(__name__)

PutInPlace = Callable[[Mapping[str, Iterable[Part]]], object]
"""Assembles files from their pieces."""
Deliver = Callable[[str, Sequence[Part]], object]
"""Sends the pieces of one external output to its system."""


class CommittedFiles(Protocol):
    """The files of a checkpoint."""

    @property
    def window(self) -> int: ...
    @property
    def files(self) -> Sequence[Part]:
        """The pieces of incomplete files."""

    @property
    def finished(self) -> Sequence[Part]:
        """The pieces of the files that this window completed."""

    @property
    def receipted(self) -> Sequence[object]:
        """The receipts that are due with this window."""


class Outputs:
    """The staged and committed files of a run."""

    def __init__(self, committed: CommittedFiles, application_path: str, *, durable: bool, home: str) -> None:
        self.unfinished: Mapping[str, list[Part]] = {}
        """The pieces of complete files that are not in place yet, and of external outputs that are not delivered."""
        self._committed = committed
        self._path = application_path
        self._durable = durable
        self._home = home
        self._unswept = True
        self._began: int | None = None
        self._replaced: Sequence[Part] = ()
        """Pieces that the next commit replaces."""
        self._folders: set[str] = set()
        """The folders in which files lie, and those above them."""
        self._warned: set[str] = set()
        """Older files of which a warning has been logged."""
        self._uncommitted: list[StagingPlace] = []
        self._owes_receipts = False
        if (committed.finished or committed.receipted) and not is_finished(application_path, committed.window):
            self.unfinished, self._owes_receipts = by_file(committed.finished), bool(committed.receipted)

    @property
    def is_unfinished(self) -> bool:
        """Whether files of the last commit are not in place, entries not delivered, or receipts not written."""
        return bool(self.unfinished) or self._owes_receipts

    def attempt(self, window_id: int, began: datetime | None = None) -> StagingPlace:
        """Return a new staging place for an attempt at a window."""
        if self._began is None:
            self._began = when_began(self._path)
        place = StagingPlace(self._path, window_id, secrets.token_hex(4), self._durable, self._home, began)
        self._uncommitted.append(place)
        return place

    def gathered(self, window_id: int) -> tuple[Part, ...]:
        """Return the pieces for the next checkpoint; join the pieces of files without blocks if they are too many."""
        self._replaced = ()
        if not many(self._committed.files):
            return tuple(self._committed.files)
        found = gathered(self._committed.files, self.attempt(window_id))
        self._replaced = found.replaced
        return found.files

    def check(self, finished: Sequence[Part], parts: Sequence[Part]) -> None:
        """Raise unless all staged pieces exist and all files can be put in place.

        No file that this application completed is replaced.
        """
        refuse_unseen(parts, self._path)
        written = [part for part in (*parts, *finished) if not part.is_external]
        if written:
            self._began = self._began or when_began(self._path)
            refuse_blocked((*self._committed.files, *written), self._folders)
            older = refuse_written_again(written, self._began)
            self._warn_of_replacing([file for file in older if file not in self._warned])

    def _warn_of_replacing(self, files: Sequence[str]) -> None:
        """Warn once of each file that will be replaced, while the user can still copy it."""
        if files:
            self._warned.update(files)
            others = f" and {len(files) - 1} more" if len(files) > 1 else ""
            _logger.warning("%s%s: older than this application, and replaced by what it writes", files[0], others)

    def commit(self, committed: CommittedFiles) -> None:
        """Record a committed window and its staged files."""
        self._committed = committed
        self.over(committed.window)
        self.unfinished, self._owes_receipts = by_file(committed.finished), bool(committed.receipted)
        if self._replaced:
            forget(self._replaced, self._path)
            sweep_windows(self._path, staged_in(self._replaced) - self._needed() - staged_in(committed.finished))
            self._replaced = ()

    def over(self, window_id: int) -> None:
        """Forget the attempts at an ended window: one is committed or the window had no effect; no other will be."""
        self._uncommitted = [place for place in self._uncommitted if place.window != window_id]

    def sweep(self, incomplete: Callable[[], Iterable[str]] | None) -> None:
        """Remove what earlier runs left. Call it only after a commit, which fences off other drivers.

        `incomplete` gives the keys of the files that slots write together; None if a window in flight may write others.
        """
        if self._unswept:
            needed = self._needed() | staged_in(self._committed.finished)
            needed |= set() if incomplete is None else set(map(region_name, incomplete()))
            later = sweep(self._path, needed, self._committed.window, regions=incomplete is not None)
            self._unswept = bool(later)

    @property
    def unplaced(self) -> Mapping[str, list[Part]]:
        """The pieces of complete files that are not in place yet."""
        return {file: parts for file, parts in self.unfinished.items() if not parts[0].is_external}

    def finish(
        self, place: PutInPlace, deliver: Deliver, acknowledge: Callable[[], None], between: Callable[[Point], None]
    ) -> None:
        """Put the files of the last commit in place, deliver to external systems, then write receipts.

        This is safe to repeat after a crash.
        """
        self._place(place, between)
        for output in list(self.unfinished):
            deliver(output, self.unfinished[output])
            self.unfinished = {other: parts for other, parts in self.unfinished.items() if other != output}
        between(Point.DELIVERED)
        if self._owes_receipts:
            acknowledge()
            self._owes_receipts = False
        between(Point.RECEIPTED)
        note_finished(self._path, self._committed.window)
        sweep_windows(self._path, staged_in(self._committed.finished) - self._needed())

    def _place(self, place: PutInPlace, between: Callable[[Point], None]) -> None:
        """Put the files of the last commit in place."""
        files = {file: parts for file, parts in self.unplaced.items() if any(part.part for part in parts)}
        if is_begun(self._path, self._committed.window):
            files = still_to_place(files, self._path)
        elif files:
            refuse_lost(files, self._path)
            note_begun(self._path, self._committed.window, durable=self._durable)
        if len(files) > 1:  # the cheapest goes first, so that every run passes the state that tests interrupt
            first = min(files, key=lambda file: (len(files[file]), sum(part.length for part in files[file])))
            place({first: files.pop(first)})
            between(Point.HALF_FINISHED)
        if files:
            place(files)
        self.unfinished = {file: parts for file, parts in self.unfinished.items() if parts[0].is_external}

    def abandon(self, newest: CommittedFiles) -> None:
        """Remove uncommitted attempts, which no run will ever commit.

        A commit may have succeeded although its answer was lost, so keep what the newest checkpoint names.
        """
        named = attempts_in([*newest.files, *newest.finished])
        sweep_attempts(self._path, [place for place in self._uncommitted if place.folder not in named])

    def _needed(self) -> set[str]:
        """The windows whose staged pieces are still needed."""
        return staged_in(self._committed.files) | {str(place.window) for place in self._uncommitted}
