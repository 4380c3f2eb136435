"""`dagkit ls`: the applications in a folder, with their states."""

from collections.abc import Iterator
from pathlib import Path

import rich_click as click

from dagkit.cli.application.options import spoken
from dagkit.cli.operating.run_views import document
from dagkit.cli.terminal.output import Output
from dagkit.engine.record.history import seen_in
from dagkit.engine.record.status_file import SeenRun
from dagkit.engine.run.restart_mark import MADE_BESIDE, unfinished_restart
from dagkit.errors import printable
from dagkit.ground.amounts import aligned
from dagkit.ground.urls import absolute, is_url
from dagkit.launching import HOME
from dagkit.ledger import Ledger
from dagkit.ledger.stores import open_store

_HEADER = ("application", "state", "window", "pending", "since", "folder")


@click.command()
@click.argument("folder", metavar="[FOLDER]", default=HOME)
@spoken
def ls(*, folder: str, output: Output) -> None:
    """List the applications that were launched in a folder, by default in this one, with their states.

    FOLDER may also be the folder that holds the folders of applications, `.dagkit` by default.

    An application that never launched since it writes its status has the state `unknown`.
    """
    found = list(_seen(folder))
    if output.as_json:
        output.document(
            "dagkit.applications/1",
            {"applications": [{"path": place, **(document(seen) if seen else {})} for place, seen in found]},
        )
    elif not found:
        output.result(f"there is no application in {printable(folder)}")
    else:
        output.result(aligned([_HEADER, *(_row(place, seen) for place, seen in found)], to_right=True))


def _seen(folder: str) -> Iterator[tuple[str, SeenRun | None]]:
    """Each application's folder, with what is there to see."""
    if Path(folder, HOME).is_dir():
        folder = str(Path(folder, HOME))
    place = absolute(folder)
    store = open_store(place)
    names = [""] if store.exists("ledger/ledger.json") else sorted(store.folders(""))
    for name in names:
        path = f"{place.rstrip('/')}/{name}" if name else place
        here = open_store(path)
        if here.exists("ledger/ledger.json") and not _is_being_made(path):
            yield path if is_url(path) else f"{folder.rstrip('/')}/{name}".rstrip("/"), seen_in(Ledger.open(path))


def _is_being_made(path: str) -> bool:
    """Whether a restart makes this folder, or was killed before it could be used: it is no application's."""
    home = path.removesuffix(MADE_BESIDE)
    return home != path and unfinished_restart(home) is None


def _row(place: str, seen: SeenRun | None) -> tuple[str, ...]:
    if seen is None:
        return (printable(place.rpartition("/")[2]), "unknown", "-", "-", "-", printable(place))
    backlog, launch = seen.snapshot.backlog, seen.launch
    return (
        printable(launch.application),
        seen.state,
        str(seen.window),
        str(backlog.pending_elements),
        f"{launch.since.astimezone():%Y-%m-%d %H:%M:%S}",
        printable(place),
    )
