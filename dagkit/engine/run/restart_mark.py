"""The mark of a restart: what is left to do once the folder that it made is complete, so that a crash loses no step.

PATH.restarting/restart.json, later PATH/restart.json    removed with the last step
"""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dagkit.engine.program.stored_value import StoredValue
from dagkit.errors import RunFailure, printable
from dagkit.ground.urls import is_url, local_path, shown

WITHDRAWN = "withdrawn"
"""The folder, in that of the earlier run, into which the files of its later windows move, under their whole paths."""
MADE_BESIDE = ".restarting"
"""The end of the name of the folder in which a restart makes the new one."""
_MARK = "restart.json"


def restart_refused(problem: str, remedy: str) -> RunFailure:
    """The application cannot resume after this window; nothing was changed."""
    return RunFailure(problem, remedy, code="restart-refused")


class RestartMark(StoredValue):
    """The steps of a restart that follow the making of its folder."""

    kept: str
    """The new name of the folder of the earlier run."""
    withdrawn: tuple[str, ...]
    """The files that move there."""

    def write(self, made: Path) -> None:
        """Write the mark into the folder that was made, as the last of its files."""
        (made / _MARK).write_text(self.model_dump_json(), encoding="utf-8")


def made_beside(place: str) -> Path:
    """The folder in which a restart makes the new one."""
    return Path(f"{place}{MADE_BESIDE}")


@contextmanager
def alone(place: str) -> Iterator[None]:
    """Lock an application's folder, also under its next name.

    Raise restart-refused if another process restarts the application now, or begins to launch it.
    """
    folder = os.open(place, os.O_RDONLY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            problem = "another process restarts or launches the application now"
            raise restart_refused(problem, "wait for its end") from None
        yield
    finally:
        os.close(folder)


def unfinished_restart(place: str) -> RestartMark | None:
    """The mark of a restart that has renamed the earlier run and has steps left; None if there is none."""
    if is_url(place):
        return None
    home, made = Path(place), made_beside(place)
    # The functions of `os.path`, unlike those of Path, accept names that no file can have, and denied folders.
    if os.path.isfile(home / _MARK):  # noqa: PTH113
        found = home
    # A restart that was killed between its two renames leaves no folder under the name of the application.
    elif os.path.isfile(made / _MARK) and not os.path.exists(home):  # noqa: PTH110, PTH113
        found = made
    else:
        return None
    try:
        mark = RestartMark.model_validate_json((found / _MARK).read_bytes())
    except ValueError as error:
        raise RunFailure(
            f"{shown(str(found / _MARK))}, which holds the steps that a restart has left, is damaged: "
            f"{printable(str(error).splitlines()[0])}",
            "restore it from a backup; without it, files of repeated windows stop the launch that writes them again",
            code="restart-unfinished",
        ) from error
    return mark if Path(mark.kept).is_dir() else None  # else it was killed before it began to rename


def finish_restart(place: str) -> RestartMark | None:
    """Take the steps that a killed restart has left, and return its mark; None if there are none.

    Raise restart-refused if its process still runs, or restart-unfinished if a step cannot be taken.
    """
    mark = unfinished_restart(place)
    if mark is None:
        return None
    # The restart locked the folder before it renamed it, and the lock goes with the folder.
    with alone(mark.kept):
        if unfinished_restart(place) == mark:  # its process may have ended meanwhile
            take_steps(place, mark)
    return mark


def take_steps(place: str, mark: RestartMark) -> None:
    """Take the steps after the first rename, under the lock. Raise `restart-unfinished` if one cannot be taken."""
    home, made = Path(place), made_beside(place)
    try:
        if not home.exists():
            made.rename(home)
        for file in mark.withdrawn:
            _withdraw(local_path(file), f"{mark.kept}/{WITHDRAWN}")
        for folder in {Path(local_path(file)).parent for file in mark.withdrawn}:
            _remove_emptied(folder)
        # last: until then, each launch and restart takes the steps again
        (home / _MARK).unlink(missing_ok=True)
    except OSError as error:
        raise RunFailure(
            f"the restart of {shown(place)} has steps left: {printable(str(error))}",
            "free some space or allow writing there; then launch: the launch takes these steps first",
            code="restart-unfinished",
        ) from error


def _withdraw(file: str, folder: str) -> None:
    into = Path(f"{folder}{file}")
    with suppress(FileNotFoundError):  # it moved before, or another program took it
        into.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(file, into)


def _remove_emptied(folder: Path) -> None:
    """Remove a folder, and those around it, that hold nothing since a file moved away: often one for each window."""
    here = Path.cwd()
    with suppress(OSError):  # it is not empty, or stays: a link, the root of a disk, in another user's folder
        # the working directory stays: relative paths of operators start from it
        while folder not in (here, *here.parents):
            folder.rmdir()
            folder = folder.parent
