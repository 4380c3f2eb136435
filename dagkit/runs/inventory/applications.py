"""The applications that were launched in a folder."""

from collections.abc import Iterator
from pathlib import Path

from dagkit.api.application import HOME
from dagkit.engine.record.history import seen_in
from dagkit.engine.record.status_file import SeenRun
from dagkit.engine.run.restart_mark import MADE_BESIDE, unfinished_restart
from dagkit.ground.urls import absolute, is_url
from dagkit.ledger import Ledger
from dagkit.ledger.stores import open_store

LEDGER = "ledger/ledger.json"


def applications(folder: str) -> Iterator[tuple[str, SeenRun | None]]:
    """Each application's folder, with its last launch; None if it never launched since launches write a status.

    The folder is an application's, or holds those of applications, or is the one from which they were launched.
    """
    if Path(folder, HOME).is_dir():
        folder = str(Path(folder, HOME))
    place = absolute(folder)
    store = open_store(place)
    for name in [""] if store.exists(LEDGER) else sorted(store.folders("")):
        path = f"{place.rstrip('/')}/{name}" if name else place
        if open_store(path).exists(LEDGER) and not _is_being_made(path):
            yield path if is_url(path) else f"{folder.rstrip('/')}/{name}".rstrip("/"), seen_in(Ledger.open(path))


def _is_being_made(path: str) -> bool:
    """Whether a restart makes this folder, or was killed before it could be used: it is no application's."""
    home = path.removesuffix(MADE_BESIDE)
    return home != path and unfinished_restart(home) is None
