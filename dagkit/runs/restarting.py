"""Restarting: make an application resume after an earlier window than its last one, beside the run that went further.

A new folder gets the ledger as it was when that window was committed: the application's chain up to its block, and the
chains of the input operators as they are now. So everything that was found stays found, and waits for the next launch.
The folder of the run that went further is renamed and kept, as for `--fresh`. Files that its later windows completed
move into it, since the application writes them again.
"""

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from dagkit.engine.files.checks import BEGAN
from dagkit.engine.files.publish import FINISHED
from dagkit.engine.files.regions import is_region_path
from dagkit.engine.files.staging import Part, by_file
from dagkit.engine.record.checkpoint import Checkpoint
from dagkit.engine.record.history import Window, application_chain, history, newest_checkpoint
from dagkit.engine.record.snapshot import DriverState, Launch, RunSnapshot, Windows, bytes_of
from dagkit.engine.record.status_file import STATUS, refuse_second, this_process
from dagkit.engine.record.written_file import PiecePlace, place_of
from dagkit.engine.run.launch_record import LAUNCHED, kept_place, rename_to_keep
from dagkit.engine.run.restart_mark import (
    RestartMark,
    alone,
    finish_restart,
    made_beside,
    restart_refused,
    take_steps,
)
from dagkit.errors import RunFailure, printable
from dagkit.ground.urls import absolute, is_url, local_path
from dagkit.ledger import Ledger
from dagkit.ledger.chain.chain import Chain
from dagkit.ledger.chain.contents import Objects, contents_named
from dagkit.ledger.chain.log import Log
from dagkit.ledger.format.block import unseal
from dagkit.ledger.stores import Store, open_store


@dataclass(frozen=True, slots=True)
class Restart:
    """The plan of a restart."""

    application: str
    place: str
    window: int
    """The application resumes after this window."""
    last: int
    """The last window of the run that went further."""
    withdrawn: tuple[str, ...]
    """Files that later windows completed, and their receipts, which move into the folder of that run."""
    missing: tuple[str, ...]
    """Other files and receipts of later windows: they are not there any more."""
    unset: bool
    """Whether properties or partitions that were set after the window are as before again."""
    pieces: tuple[PiecePlace, ...]
    """Where the staged pieces are of files that were not complete after the window."""
    block: int
    """The number of the window's block."""

    @classmethod
    def planned(cls, place: str, window: int) -> "Restart":
        """Plan a restart without changing anything. Raise if there can be none."""
        if is_url(place):
            raise restart_refused("an application's folder in an object store cannot be renamed", "use another folder")
        finish_restart(place)
        refuse_second(open_store(place), datetime.now(UTC))
        ledger = Ledger.open(place)
        chain, newest = application_chain(ledger), newest_checkpoint(ledger)
        if chain is None or not 1 <= window < newest.window:
            raise _no_such_window(window, newest.window)
        reached, *beyond = _from(ledger, window)
        later = [part for entry in beyond for part in entry.output.finished]
        receipts = {absolute(receipt.file) for entry in beyond for receipt in entry.output.receipted}
        _refuse_unrepeatable(later, receipts, Path(place))
        files = by_file(part for part in later if part.part)
        there = {file for file in receipts.union(files) if Path(local_path(file)).is_file()}
        staged = {file for file, parts in files.items() if any(Path(place, part.part).is_file() for part in parts)}
        return cls(
            application=chain.name,
            place=place,
            window=window,
            last=newest.window,
            withdrawn=tuple(sorted(there)),
            missing=tuple(sorted(receipts.union(files) - there - staged)),
            unset=_set_in(newest) != _set_in(reached.checkpoint),
            pieces=tuple(_places(reached.output.files, files, place, window)),
            block=reached.block,
        )

    @classmethod
    def finished(cls, place: str) -> "tuple[Restart, str] | None":
        """Finish a restart that was killed; return it with the folder of the earlier run. None if nothing is left."""
        mark = finish_restart(place)
        if mark is None:
            return None
        ledger = Ledger.open(place)
        chain, reached = application_chain(ledger), newest_checkpoint(ledger)
        assert chain is not None, "a restart copies it"
        return cls(
            application=chain.name,
            place=place,
            window=reached.window,
            last=newest_checkpoint(Ledger.open(mark.kept)).window,
            withdrawn=mark.withdrawn,
            missing=(),
            unset=False,
            pieces=(),
            block=chain.head.seq,
        ), mark.kept

    def perform(self, now: datetime) -> str:
        """Make the new folder and return the one in which the earlier run is kept.

        Raise if another restart runs, or the application was launched since this one was planned, and
        `restart-unfinished` if files cannot be moved. A restart that is killed has changed nothing, or is finished by
        the next launch or restart.
        """
        made = made_beside(self.place)
        with alone(self.place):
            # a user may have thought about the question for long, while a driver ran
            if Restart.planned(self.place, self.window) != self:
                raise restart_refused("the application or its output changed meanwhile", "look at what it would do now")
            shutil.rmtree(made, ignore_errors=True)  # what an interrupted restart left
            self._make(made, now)
            mark = RestartMark(kept=kept_place(self.place, now), withdrawn=self.withdrawn)
            mark.write(made)
            # the copy and its mark must be on the disk before the rename after which launches rely on them
            os.sync()
            refuse_second(open_store(self.place), datetime.now(UTC))  # a launch that began meanwhile
            rename_to_keep(self.place, mark.kept)
            take_steps(self.place, mark)
        return mark.kept

    def _make(self, made: Path, now: datetime) -> None:
        """Make the new folder beside the application's."""
        # Not synced block by block: `perform` syncs everything before it renames a folder.
        earlier, ledger = Ledger.open(self.place), Ledger.create(str(made), durable=False)
        for name in earlier.names():
            chain = earlier.chain(name)
            copy_chain(chain, ledger.store, self.block if name == self.application else chain.head.seq)
        for name in (BEGAN, LAUNCHED):  # what the application writes must not replace what it wrote
            there = Path(self.place, name)
            if there.is_dir():
                shutil.copytree(there, made / name)
            elif there.is_file():
                shutil.copy2(there, made / name)
        # The output of this window is in place: the next launch must not look for its pieces, which are gone.
        (made / FINISHED / str(self.window)).mkdir(parents=True)
        for piece in self.pieces:
            staged = made / piece.part.part
            staged.parent.mkdir(parents=True, exist_ok=True)
            staged.write_bytes(piece.content())
        (made / STATUS).write_bytes(bytes_of(self._status(now)))

    def _status(self, now: datetime) -> RunSnapshot:
        """The status until the next launch."""
        launch = Launch(
            application=self.application,
            application_path=self.place,
            version=sys.modules["dagkit"].__version__,
            driver=this_process(),
            master="",
            until="",
            since=now,
        )
        windows = Windows(resumed_after=self.window, window=self.window, block=self.block)
        return RunSnapshot(launch=launch, status=DriverState(at=now, state="restarted"), windows=windows)


def _from(ledger: Ledger, window: int) -> Iterator[Window]:
    """The windows from this one on. A window's block has a higher number than the window."""
    return (entry for entry in history(ledger, window) if entry.checkpoint.window >= window)


def _set_in(checkpoint: Checkpoint) -> object:
    """The values and the partitions that were set while the application ran."""
    return checkpoint.changes.altered, checkpoint.changes.partitions


def _no_such_window(window: int, last: int) -> RunFailure:
    if not last:
        return restart_refused("no window is committed yet", "launch the application; it begins at the first window")
    if window == last:
        return restart_refused(f"window {window} is the last one", "launch the application: it resumes there")
    choice = "there is no earlier window" if last == 1 else f"choose a window from 1 to {last - 1}"
    return restart_refused(
        f"the ledger has no window {window} with later ones: its windows are 1 to {last}",
        f"{choice}; `dagkit launch --fresh` begins before the first",
    )


def _refuse_unrepeatable(later: Iterable[Part], receipts: Iterable[str], place: Path) -> None:
    """Raise if later windows left something outside of the folder that cannot be taken back."""
    for part in later:
        if part.is_external:
            problem = f"window {part.window} delivered entries of {part.operator} to an external system"
            raise restart_refused(
                f"{problem}, which dagkit cannot take back", "launch in another folder with --path, into other outputs"
            )
        if is_url(part.file):
            raise _not_movable(part.file)
        if is_region_path(part.part):
            raise _written_together()
    for file in filter(is_url, receipts):
        raise _not_movable(file)
    if any(map(is_region_path, (f"staging/{found.name}/" for found in place.glob("staging/*")))):
        raise _written_together()


def _not_movable(file: str) -> RunFailure:
    return restart_refused(
        f"{printable(file)} is in an object store, where files cannot be moved",
        "launch in another folder with --path, into another output folder",
    )


def _written_together() -> RunFailure:
    return restart_refused(
        "later windows wrote to files that several slots write together, and the ledger does not hold their slices",
        "launch in another folder with --path, into another output folder",
    )


def _places(
    open_parts: Iterable[Part], later: Mapping[str, Sequence[Part]], place: str, window: int
) -> Iterator[PiecePlace]:
    """Yield where the pieces are of files that were not complete after the window."""
    for part in open_parts:
        if not part.part:
            continue
        found = place_of(part, later, place)
        if found is None:
            raise restart_refused(
                f"{printable(part.file)} was not complete after window {window}, and what it held then was joined with "
                "later output or removed since",
                "choose another window, or begin again with `dagkit launch --fresh`",
            )
        yield found


def copy_chain(chain: Chain, store: Store, last: int) -> None:
    """Copy the blocks of a chain up to `last`, and the contents that they name, into the ledger in `store`.

    The promise of an uncommitted window is not copied.
    """
    copy, objects = Log(store, chain.log.folder, chain.name), Objects(store, chain.log.folder, chain.name)
    for seq, line in chain.log.lines(0, last):
        record = unseal(line, chain.name, seq)
        for shelf, content in contents_named(record.block.event):
            # A small content lies in the block itself.
            if content.physical_hash not in (record.objects or {}):
                objects.put(shelf, chain.objects.get(shelf, content.physical_hash, record))
        copy.create(seq, line)
    # without the hint, a copy that loses its last block would pass for one that never had it
    copy.set_hint(copy.record(last).pointer, chain.dataset_id)
