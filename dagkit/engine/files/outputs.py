"""The files of one run: where its attempts stage them, which are whole and not in place, and what may be swept."""

import logging
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from dagkit.engine.files.checks import refuse_unseen, refuse_written_again, when_began
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
from dagkit.engine.files.staging import Part, StagingPlace, by_file
from dagkit.engine.points import Point

_logger = logging.getLogger(__name__)

PutInPlace = Callable[[Mapping[str, Iterable[Part]]], object]
"""Makes files of their pieces."""


class CommittedFiles(Protocol):
    """What a checkpoint says of files."""

    @property
    def window(self) -> int: ...
    @property
    def files(self) -> Sequence[Part]:
        """The pieces of files that are not whole."""

    @property
    def finished(self) -> Sequence[Part]:
        """The pieces of the files that became whole with this window."""


class Outputs:
    """What a run stages, and what becomes of it."""

    def __init__(self, committed: CommittedFiles, application_path: str, *, durable: bool, home: str) -> None:
        self.unfinished: Mapping[str, list[Part]] = {}
        """The pieces of files that are whole and not in place yet."""
        self._committed = committed
        self._path = application_path
        self._durable = durable
        self._home = home
        self._unswept = True
        self._began: int | None = None
        self._replaced: Sequence[Part] = ()
        """Pieces that the next commit no longer names."""
        self._told: set[str] = set()
        """Files of another life that were said to be replaced."""
        self._uncommitted: list[StagingPlace] = []
        if committed.finished and not is_finished(application_path, committed.window):
            self.unfinished = by_file(committed.finished)

    def attempt(self, window_id: int) -> StagingPlace:
        """Where one more attempt at a window stages what it writes."""
        if self._began is None:
            self._began = when_began(self._path)
        place = StagingPlace(self._path, window_id, secrets.token_hex(4), self._durable, self._home)
        self._uncommitted.append(place)
        return place

    def gathered(self, window_id: int) -> tuple[Part, ...]:
        """The pieces that the next checkpoint starts from, with no file of no block in many of them."""
        self._replaced = ()
        if not many(self._committed.files):
            return tuple(self._committed.files)
        found = gathered(self._committed.files, self.attempt(window_id))
        self._replaced = found.replaced
        return found.files

    def check(self, finished: Sequence[Part], parts: Sequence[Part]) -> None:
        """Returns only if the window may be committed: what it staged is there, and no file would be replaced."""
        refuse_unseen(parts, self._path)
        written = [*parts, *finished]
        if written:
            self._began = self._began or when_began(self._path)
            older = refuse_written_again(written, self._began)
            self._tell_of_replacing([file for file in older if file not in self._told])

    def _tell_of_replacing(self, files: Sequence[str]) -> None:
        """Whoever did not mean it hears of it while copies may still be made, and once of each file."""
        if files:
            self._told.update(files)
            others = f" and {len(files) - 1} more" if len(files) > 1 else ""
            _logger.warning("%s%s: older than this application, and replaced by what it writes", files[0], others)

    def commit(self, committed: CommittedFiles) -> None:
        """A window is in the ledger, and with it what it staged."""
        self._committed = committed
        self.over(committed.window)
        self.unfinished = by_file(committed.finished)
        if self._replaced:
            forget(self._replaced, self._path)
            sweep_windows(self._path, staged_in(self._replaced) - self._needed() - staged_in(committed.finished))
            self._replaced = ()

    def over(self, window_id: int) -> None:
        """A window has ended: one attempt at it is committed, or nothing came of it; none still will be."""
        self._uncommitted = [place for place in self._uncommitted if place.window != window_id]

    def sweep(self) -> None:
        """What earlier runs left is gone; only after a commit, which fences off whoever might still be at work."""
        if self._unswept:
            needed = self._needed() | staged_in(self._committed.finished)
            self._unswept = bool(sweep(self._path, needed, self._committed.window))

    def finish(self, place: PutInPlace, between: Callable[[Point], None]) -> None:
        """The files of the last commit are where they belong; a crash in between does no harm."""
        files = {file: parts for file, parts in self.unfinished.items() if any(part.part for part in parts)}
        if is_begun(self._path, self._committed.window):
            files = still_to_place(files, self._path)
        elif files:
            refuse_lost(files, self._path)
            note_begun(self._path, self._committed.window, durable=self._durable)
        if len(files) > 1:  # one that takes no time goes first, so that every run takes the way that tests take
            first = min(files, key=lambda file: (len(files[file]), sum(part.length for part in files[file])))
            place({first: files.pop(first)})
            between(Point.HALF_FINISHED)
        if files:
            place(files)
        self.unfinished = {}
        note_finished(self._path, self._committed.window)
        sweep_windows(self._path, staged_in(self._committed.finished) - self._needed())

    def abandon(self, newest: CommittedFiles) -> None:
        """What was not committed is gone: nobody ever will commit it.

        A commit may have got through though its answer was lost: what the newest checkpoint names stays.
        """
        named = attempts_in([*newest.files, *newest.finished])
        sweep_attempts(self._path, [place for place in self._uncommitted if place.folder not in named])

    def _needed(self) -> set[str]:
        """The windows whose staged pieces somebody still needs."""
        return staged_in(self._committed.files) | {str(place.window) for place in self._uncommitted}
