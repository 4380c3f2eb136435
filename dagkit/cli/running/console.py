"""`dagkit console`: a page about an application, or about all in a folder, running or finished."""

import signal
import socket

import rich_click as click

from dagkit.cli.application.located import Located, holds_applications, of_one_or_several
from dagkit.cli.application.options import WholeNumber
from dagkit.cli.terminal.output import Output
from dagkit.console.run_folder import RunFolder
from dagkit.console.serving import LOCAL, Console, FolderOfApplications
from dagkit.ledger import Ledger


@click.command()
@of_one_or_several
@click.option("--port", metavar="N", type=WholeNumber(0, 65535), default=0, help="The port; default: the last one.")
@click.option("--address", metavar="ADDRESS", default=LOCAL, show_default=True, help="The address to serve at.")
@click.option("--allow-control", is_flag=True, help="Let the page stop the application.")
def console(
    *,
    there: Located,
    port: int,
    address: str,
    allow_control: bool,
    output: Output,
) -> None:
    """Serve a page about an application until interrupted. It may be running or finished.

    PATH may also be a folder of applications, such as `.dagkit`: the page lists them, with the page of each.

    The printed address contains a token: with it, one may read all that the ledger names.
    """
    place = there.place
    folder: RunFolder | FolderOfApplications
    if holds_applications(place):
        folder = FolderOfApplications(place)
    else:
        Ledger.open(place)  # a folder without a ledger is refused at once
        folder = RunFolder(place)
    with Console(folder, allows_control=allow_control).served(port, address) as url:
        if output.as_json:
            output.document("dagkit.console.address/1", {"url": url})
        else:
            output.result(f"console: {url}")
        _until_interrupted()


def _until_interrupted() -> None:
    """Wait for SIGINT or SIGTERM, also if the first was ignored at the start, as shells do in background."""
    woken, wakes = socket.socketpair()
    with woken, wakes:
        wakes.setblocking(False)
        # Python runs a handler only after the system call that a signal comes right before. This needs no handler.
        signal.set_wakeup_fd(wakes.fileno())
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        woken.recv(1)
        signal.set_wakeup_fd(-1)
