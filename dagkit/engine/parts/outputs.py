"""The output of one run: where attempts stage it, what still has to be put in place or delivered, what may be swept."""

import logging
import secrets
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from dagkit.api.running import Until
from dagkit.engine.files.checks import (
    begun_elsewhere,
    make_output_folders,
    refuse_blocked,
    refuse_unseen,
    refuse_written_again,
    when_began,
)
from dagkit.engine.files.deliveries import Deliveries
from dagkit.engine.files.publish import (
    attempts_in,
    forget,
    gathered,
    is_begun,
    is_finished,
    many,
    note_begun,
    note_finished,
    refuse_lost,
    staged_in,
    still_to_place,
    sweep,
    sweep_attempts,
    sweep_windows,
)
from dagkit.engine.files.receipt import write_receipts
from dagkit.engine.files.regions import region_name
from dagkit.engine.files.staging import Part, StagingPlace, by_file, next_wake
from dagkit.engine.parts.in_flight import InFlightWindow
from dagkit.engine.parts.run_part import Action, EndedWindow, Finish, RunPart, Saved, Want, Wants
from dagkit.engine.parts.run_state import RunState
from dagkit.engine.parts.setting_aside import Aside
from dagkit.engine.program.failures import OperatorFailed, WindowLost
from dagkit.engine.program.points import Point
from dagkit.engine.program.program import Program
from dagkit.engine.record.checkpoint import Checkpoint, WindowOutput
from dagkit.engine.record.redistribute import State
from dagkit.engine.record.whole_files import elements_of, refuse_late, refuse_shared, settled, with_numbers
from dagkit.engine.work.waiting import Waiting
from dagkit.engine.worker.instances import incomplete_keys
from dagkit.engine.worker.protocol import Answer, WindowTask
from dagkit.errors import DagkitError
from dagkit.ground.amounts import counted
from dagkit.ground.urls import shown

_logger = logging.getLogger(__name__)


class Outputs(RunPart):
    """The staged and committed files of a run, and what waits for external systems."""

    def __init__(self, run: RunState, aside: Aside) -> None:
        self._run = run
        self._aside = aside
        chain, settings = run.journal.chain, run.settings
        self._deliveries = Deliveries(chain.dataset_id, settings.application_path, run.clock)
        self.next_wake = self._next_wake(self._last, None)
        """When a window is wanted although there may be no work, so that an operator can complete a file."""
        self._unfinished: Mapping[str, list[Part]] = {}
        """The pieces of complete files that are not in place yet, and of external outputs that are not delivered."""
        self._owes_receipts = False
        self._unswept = True
        self._began: int | None = None
        self._replaced: Sequence[Part] = ()
        """Pieces that the next commit replaces."""
        self._folders: set[str] = set()
        """The folders in which files lie, and those above them, as far as they are remembered."""
        self._warned: set[str] = set()
        """Older files of which a warning has been logged."""
        self._uncommitted: list[StagingPlace] = []
        # The launch before this one may have ended between its last commit and the end of its publishing.
        if self._last.is_owed and not is_finished(self._path, run.window):
            self._owe(self._last)

    def _owe(self, output: WindowOutput) -> None:
        """Note what is to be put in place after a commit."""
        self._unfinished, self._owes_receipts = by_file(output.finished), bool(output.receipted)

    def _next_wake(self, output: WindowOutput, began: datetime | None) -> datetime | None:
        """The next request of an operator. The window that began then was the answer to all earlier ones."""
        run = self._run
        if run.settings.until is not Until.STOPPED:
            return None
        return next_wake(output.files, run.program.operators, began)

    @property
    def _last(self) -> WindowOutput:
        """The output of the last committed window."""
        last = self._run.checkpoint
        return last.output

    @property
    def _path(self) -> str:
        settings = self._run.settings
        return settings.application_path

    @property
    def unplaced(self) -> Mapping[str, list[Part]]:
        """The pieces of complete files that are not in place yet."""
        return {file: parts for file, parts in self._unfinished.items() if not parts[0].is_external}

    def begin(self) -> None:
        settings = self._run.settings
        make_output_folders(self._run.program, settings.home, durable=settings.durable)
        elsewhere = begun_elsewhere(self._run.program, settings.home, self._last.files)
        for name, files in elsewhere.items():
            # Not refused: the author may have given the operator another folder.
            _logger.warning(
                "%s completes %s that earlier windows began in another folder than it writes to now, such as "
                "%s: if this application was moved or copied, stop it and launch it at its first place",
                name,
                counted(len(files), "file"),
                shown(files[0]),
            )

    def wants(self, now: datetime, known: Wants) -> Iterator[tuple[Want, datetime]]:
        """Want to finish the last window, at once or at the next attempt, and windows in which files are completed."""
        is_prepared = self._deliveries.is_prepared(self._run.program)
        if self._is_unfinished or not is_prepared:
            yield Want.FINISH, self._deliveries.due or now
            if is_prepared and self._unfinished and not self.unplaced and self._deliveries.due is None:
                yield Want.BESIDE, now
        wake = self.next_wake
        if wake is not None:
            yield Want.EMPTY, wake

    @property
    def _is_unfinished(self) -> bool:
        """Whether files of the last commit are not in place, entries not delivered, or receipts not written."""
        return bool(self._unfinished) or self._owes_receipts

    # ---- one window

    def before(self, window: InFlightWindow) -> None:
        """Give the first attempt a place to stage in, if any operator stages files or entries."""
        window.task = self._staging(window.task)
        is_finished = not self._is_unfinished and self._deliveries.is_prepared(self._run.program)
        # A delivery beside the window takes time of the driver, which would count as the overhead of the window.
        window.is_alone = window.is_alone and is_finished

    def again(self, window: InFlightWindow, task: WindowTask, error: OperatorFailed | WindowLost) -> WindowTask:
        return self._staging(task)

    def _staging(self, task: WindowTask) -> WindowTask:
        summary = self._run.summary
        return task.trying(staging=self._attempt(task.window_id)) if summary.writes else task

    def _attempt(self, window_id: int) -> StagingPlace:
        """Return a new staging place for an attempt at a window."""
        if self._began is None:
            # before the first file is staged: so every file that this application completes is as young, or younger
            self._began = when_began(self._path)
        settings = self._run.settings
        # Operators complete files by time only if this is set: a launch that ends by itself completes them at its end.
        began = self._run.now() if settings.until is Until.STOPPED else None
        place = StagingPlace(self._path, window_id, secrets.token_hex(4), settings.durable, settings.home, began)
        self._uncommitted.append(place)
        return place

    def is_changed_by(self, window: InFlightWindow, answer: Answer) -> bool:
        return bool(answer.parts)

    def drop(self, window: InFlightWindow, answer: Answer) -> None:
        self._forget_attempts(window.window_id)

    def _forget_attempts(self, window_id: int) -> None:
        """Forget the attempts at an ended window: one is committed or the window had no effect; no other will be."""
        self._uncommitted = [place for place in self._uncommitted if place.window != window_id]

    def after(self, ended: EndedWindow, saved: Saved) -> Saved:
        """Return the pieces of complete and of incomplete files. Raise unless they can be committed."""
        waiting: Waiting = saved["queue"]
        output = ended.before.output
        decided, before, parts = self._aside.decided, self._gathered(ended), ended.answer.parts
        worked_on = elements_of([*ended.window.work, *decided.ended])
        written = elements_of([*before, *parts])
        open_elements = waiting.elements_among(worked_on | written)
        refuse_late(ended.before, worked_on, parts)
        refuse_shared(before, parts, ended.program.operators)
        finished, files = settled([*before, *parts], open_elements, last=ended.task.last)
        self._check(finished, parts)
        # an element of which nothing was written when it was set aside does not count as read: a retry may write its
        # file
        read = worked_on - open_elements - (elements_of(decided.aside) - written)
        return {
            "files": tuple(files),
            "finished": tuple(finished),
            "read": with_numbers(output.read, read),
        }

    def _gathered(self, ended: EndedWindow) -> Sequence[Part]:
        """Return the pieces of incomplete files; join the pieces of files without blocks if they are too many."""
        output = ended.before.output
        files: Sequence[Part] = output.files
        self._replaced = ()
        if not many(files):
            return files
        files, self._replaced = gathered(files, self._attempt(ended.window_id))
        return files

    def _check(self, finished: Sequence[Part], parts: Sequence[Part]) -> None:
        """Raise unless all staged pieces exist and all files can be put in place.

        No file that this application completed is replaced.
        """
        refuse_unseen(parts, self._path)
        # A part without a piece asks for a window: its file is examined again once it is complete.
        staged = (part for part in parts if part.part)
        written = [part for part in (*staged, *finished) if not part.is_external]
        if written:
            self._began = self._began or when_began(self._path)
            # Names come from data, and no partition knows those of the others. Refused before the commit, a corrected
            # operator continues; committed, no launch could put both files in place.
            refuse_blocked(written, self._last.files, self._folders)
            older = refuse_written_again(written, self._began)
            self._warn_of_replacing([file for file in older if file not in self._warned])

    def _warn_of_replacing(self, files: Sequence[str]) -> None:
        """Warn once of each file that will be replaced, while the user can still copy it."""
        if files:
            self._warned.update(files)
            others = f" and {len(files) - 1} more" if len(files) > 1 else ""
            _logger.warning("%s%s: older than this application, and replaced by what it writes", files[0], others)

    def committed(self, ended: EndedWindow, checkpoint: Checkpoint) -> None:
        self._forget_attempts(checkpoint.window)
        output = checkpoint.output
        self._owe(output)
        attempt = ended.task.attempt
        staging = attempt.staging
        self.next_wake = self._next_wake(output, None if staging is None else staging.began)
        if self._replaced:
            forget(self._replaced, self._path)
            sweep_windows(self._path, staged_in(self._replaced) - self._needed() - staged_in(output.finished))
            self._replaced = ()

    def announce(self, ended: EndedWindow, checkpoint: Checkpoint) -> None:
        """Remove what earlier runs left: the commit fences off other drivers."""
        if self._unswept:
            is_alone = not self._run.in_flight  # else a window may write files that slots write together
            kept, output = checkpoint.operators, checkpoint.output
            keys = incomplete_keys_in(ended.program, kept.state) if is_alone else ()
            needed = self._needed() | staged_in(output.finished) | set(map(region_name, keys))
            # Later folders stay, since another driver may have committed those windows; a later commit sweeps them.
            self._unswept = bool(sweep(self._path, needed, checkpoint.window, regions=is_alone))

    # ---- finishing

    def perform(self, action: Action) -> None:
        """Connect external systems, put files in place, and deliver to these systems if they are there."""
        if not isinstance(action, Finish):
            return
        try:
            self._deliveries.attempt(self._finish)
        except DagkitError as error:
            journal = self._run.journal
            journal.refuse_overtaken(error)
            raise

    def _finish(self) -> None:
        """Put the files of the last commit in place, deliver to external systems, then write receipts.

        This is safe to repeat after a crash.
        """
        run, window_id = self._run, self._run.window
        # Even without entries: a launch connects to its systems before it reads anything.
        self._deliveries.prepare(run.program, window_id + 1)
        if not self._is_unfinished:
            return
        # Files come first, since entries may refer to them. A receipt states that all output of its file is visible.
        # Pieces are removed last: until the window is noted as finished, each launch takes all of these steps again.
        self._place()
        for output in list(self._unfinished):
            self._deliveries.deliver(run.program, window_id, output, self._unfinished[output])
            # One by one, so that an attempt after an outage continues with the output that failed.
            self._unfinished = {other: parts for other, parts in self._unfinished.items() if other != output}
        run.probe(Point.DELIVERED, window_id)
        if self._owes_receipts:
            last, durable = run.journal.last_hash, run.settings.durable
            write_receipts(self._last.receipted, self._path, last, window_id, durable=durable)
            self._owes_receipts = False
        run.probe(Point.RECEIPTED, window_id)
        note_finished(self._path, window_id)
        sweep_windows(self._path, staged_in(self._last.finished) - self._needed())
        run.probe(Point.FINISHED, window_id)

    def _place(self) -> None:
        """Put the files of the last commit in place."""
        run, window_id, settings = self._run, self._run.window, self._run.settings
        durable = settings.durable
        files = {file: parts for file, parts in self.unplaced.items() if any(part.part for part in parts)}
        # The mark decides what a missing piece means: before it, the piece is lost; after it, its file was put in
        # place, and other programs may have taken it since.
        if is_begun(self._path, window_id):
            files = still_to_place(files, self._path)
        elif files:
            refuse_lost(files, self._path)
            note_begun(self._path, window_id, durable=durable)
        if len(files) > 1:  # the cheapest goes first, so that every run passes the state that tests interrupt
            first = min(files, key=lambda file: (len(files[file]), sum(part.length for part in files[file])))
            run.backend.put_in_place({first: files.pop(first)}, self._path, durable=durable)
            run.probe(Point.HALF_FINISHED, window_id)
        if files:
            run.backend.put_in_place(files, self._path, durable=durable)
        self._unfinished = {file: parts for file, parts in self._unfinished.items() if parts[0].is_external}

    # ---- the end

    def end(self) -> None:
        self._deliveries.log_left()

    def overtaken(self) -> None:
        """Remove uncommitted attempts, which no run will ever commit.

        A commit may have succeeded although its answer was lost, so keep what the newest checkpoint names.
        """
        journal = self._run.journal
        newest = journal.newest_checkpoint()
        named = attempts_in(newest.output.pieces)
        sweep_attempts(self._path, [place for place in self._uncommitted if place.folder not in named])

    def close(self) -> None:
        self._deliveries.close()

    def _needed(self) -> set[str]:
        """The windows whose staged pieces are still needed."""
        return staged_in(self._last.files) | {str(place.window) for place in self._uncommitted}


def incomplete_keys_in(program: Program, state: State) -> Iterator[str]:
    """The keys of the files that slots write together, and that operators will adopt."""
    for name, (operator, *_) in program.operators.items():
        for saved in state.get(name, ()):
            yield from incomplete_keys(operator, saved)
