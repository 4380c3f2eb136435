"""The applications that were launched in a folder."""

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from dagkit.api.application import HOME
from dagkit.engine.record.history import seen_in
from dagkit.engine.record.status_file import SeenRun
from dagkit.engine.run.launch_record import is_kept
from dagkit.engine.run.restart_mark import MADE_BESIDE, unfinished_restart
from dagkit.ground.application_folder import LEDGER
from dagkit.ground.urls import absolute, is_url
from dagkit.ledger import Fault, Ledger, LedgerError
from dagkit.ledger.stores import open_store


def applications(folder: str) -> Iterator[str]:
    """The folders of the applications in a folder.

    The folder is an application's, or holds those of applications, or is the one from which they were launched.
    """
    if os.path.isdir(Path(folder, HOME)):  # noqa: PTH112 - unlike Path, accepts names that no file can have
        folder = str(Path(folder, HOME))
    return folders_in(folder)


def last_launch_in(place: str) -> tuple[SeenRun | None, tuple[Fault, ...]]:
    """The last launch of an application, as its driver wrote it; None if it wrote no status.

    Also the faults of a ledger that cannot be read: the other applications in a folder are shown nevertheless.
    """
    try:
        return seen_in(Ledger.open(absolute(place))), ()
    except LedgerError as error:
        return None, tuple(error.faults)


def folders_in(folder: str) -> Iterator[str]:
    """The folders of the applications in a folder, or the folder itself if it is an application's."""
    place = absolute(folder)
    store = open_store(place)
    for name in [""] if store.exists(LEDGER) else sorted(store.folders("")):
        path = f"{place.rstrip('/')}/{name}" if name else place
        if open_store(path).exists(LEDGER) and not _is_being_made(path):
            yield path if is_url(path) else f"{folder.rstrip('/')}/{name}".rstrip("/")


def launched_in(folder: str) -> list[str]:
    """The same, without the earlier runs that `launch --fresh` and `restart` kept."""
    return [place for place in folders_in(folder) if not is_kept(name_of(place))]


def name_of(place: str) -> str:
    """The name of an application's folder."""
    return PurePosixPath(place).name


def _is_being_made(path: str) -> bool:
    """Whether a restart makes this folder, or was killed before it could be used: it is no application's."""
    home = path.removesuffix(MADE_BESIDE)
    return home != path and unfinished_restart(home) is None
