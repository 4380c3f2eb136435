"""`dagkit ls`: the applications in a folder, with their states."""

import rich_click as click

from dagkit.api.application import HOME
from dagkit.cli.application.options import spoken
from dagkit.cli.operating.run_views import document
from dagkit.cli.terminal.output import Output
from dagkit.engine.record.status_file import SeenRun
from dagkit.errors import printable
from dagkit.ground.amounts import aligned
from dagkit.runs.inventory.applications import applications

_HEADER = ("application", "state", "window", "pending", "since", "folder")


@click.command()
@click.argument("folder", metavar="[FOLDER]", default=HOME)
@spoken
def ls(*, folder: str, output: Output) -> None:
    """List the applications that were launched in a folder, by default in this one, with their states.

    FOLDER may also be the folder that holds the folders of applications, `.dagkit` by default.

    An application that never launched since it writes its status has the state `unknown`.
    """
    found = list(applications(folder))
    if output.as_json:
        output.document(
            "dagkit.applications/1",
            {"applications": [{"path": place, **(document(seen) if seen else {})} for place, seen in found]},
        )
    elif not found:
        output.result(f"there is no application in {printable(folder)}")
    else:
        output.result(aligned([_HEADER, *(_row(place, seen) for place, seen in found)], to_right=True))


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
