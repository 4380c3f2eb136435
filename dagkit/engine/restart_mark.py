"""The mark of a restart: what is left to do once the folder that it made is complete, so that a crash loses no step.

PATH.restarting/restart.json, later PATH/restart.json    removed with the last step
"""

import shutil
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from dagkit.urls import is_url, local_path

WITHDRAWN = "withdrawn"
"""The folder, in that of the earlier run, into which the files of its later windows move, under their whole paths."""
_MARK = "restart.json"


class RestartMark(BaseModel):
    """The steps of a restart that follow the making of its folder."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kept: str
    """The new name of the folder of the earlier run."""
    withdrawn: tuple[str, ...]
    """The files that move there."""

    def write(self, made: Path) -> None:
        """Write the mark into the folder that was made, as the last of its files."""
        (made / _MARK).write_text(self.model_dump_json(), encoding="utf-8")


def made_beside(place: str) -> Path:
    """The folder in which a restart makes the new one."""
    return Path(f"{place}.restarting")


def finish_restart(place: str) -> None:
    """Take the steps that a restart of the application has left; also those of one that was killed between two."""
    if is_url(place):
        return
    home, made = Path(place), made_beside(place)
    found = home if (home / _MARK).is_file() else made if (made / _MARK).is_file() and not home.exists() else None
    if found is None:
        return
    mark = RestartMark.model_validate_json((found / _MARK).read_text(encoding="utf-8"))
    if not Path(mark.kept).is_dir():  # it was killed before it began to rename
        return
    if found == made:
        made.rename(home)
    for file in mark.withdrawn:
        into = Path(f"{mark.kept}/{WITHDRAWN}{local_path(file)}")
        with suppress(FileNotFoundError):  # it moved before, or another program took it
            into.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(local_path(file), into)
    for folder in {Path(local_path(file)).parent for file in mark.withdrawn}:
        _remove_emptied(folder)
    (home / _MARK).unlink(missing_ok=True)


def _remove_emptied(folder: Path) -> None:
    """Remove a folder, and those around it, that hold nothing since a file moved away: often one for each window."""
    here = Path.cwd()
    with suppress(OSError):  # it is not empty, or stays: a link, the root of a disk, in another user's folder
        while folder not in (here, *here.parents):
            folder.rmdir()
            folder = folder.parent
