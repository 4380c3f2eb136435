"""`dagkit ls`: the applications in a folder, with their states."""

from dataclasses import replace

import rich_click as click

from dagkit.api.application import HOME
from dagkit.cli.application.options import spoken
from dagkit.cli.operating.run_views import document
from dagkit.cli.terminal.output import Output
from dagkit.engine.record.status_file import SeenRun
from dagkit.errors import printable
from dagkit.ground.amounts import aligned
from dagkit.ledger import Fault, LedgerError
from dagkit.runs.inventory.applications import applications, last_launch_in

_HEADER = ("application", "state", "window", "pending", "since", "folder")


@click.command()
@click.argument("folder", metavar="[FOLDER]", default=HOME)
@spoken
def ls(*, folder: str, output: Output) -> None:
    """List the applications that were launched in a folder, by default in this one, with their states.

    FOLDER may also be the folder that holds the folders of applications, `.dagkit` by default.

    An application that never launched since it writes its status has the state `unknown`, as has one whose ledger
    cannot be read: the others are listed nevertheless.
    """
    found: list[tuple[str, SeenRun | None]] = []
    faults: list[Fault] = []
    for place in applications(folder):
        seen, unreadable = last_launch_in(place)
        found.append((place, seen))
        faults += [replace(fault, problem=f"{fault.problem}, in {place}") for fault in unreadable]
    if output.as_json:
        output.document(
            "dagkit.applications/1",
            {"applications": [{"path": place, **(document(seen) if seen else {})} for place, seen in found]},
        )
    elif not found:
        output.result(f"there is no application in {printable(folder)}")
    else:
        output.result(aligned([_HEADER, *(_row(place, seen) for place, seen in found)], to_right=True))
    if faults:
        output.end(LedgerError(*faults))


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
