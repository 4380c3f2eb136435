"""`dagkit kill`: end the process of a running application at once."""

import os
import signal
import socket
import time

import rich_click as click

from dagkit.cli.application.located import Located, of_application
from dagkit.cli.operating.run_views import running_at, seen_at
from dagkit.cli.terminal.output import Output, WrongUsage
from dagkit.engine.record.status_file import presence
from dagkit.errors import printable

_PAUSE_SECONDS = 0.05


@click.command()
@of_application
def kill(*, there: Located, output: Output) -> None:
    """Kill the process of a running application on this host. The window in flight runs again at the next launch.

    No record is lost or doubled. Use `dagkit stop` to let the window end.
    """
    place = there.place
    seen = running_at(place)
    driver = seen.launch.driver
    if seen.presence != "here":
        raise WrongUsage(f"{seen.launch.application} runs on {driver.host}, not on this host, {socket.gethostname()}")
    if driver.pid == os.getpid():
        raise WrongUsage("the application runs in this very process")
    try:
        os.kill(driver.pid, signal.SIGKILL)
    except ProcessLookupError:  # it has just ended
        pass
    except PermissionError as refused:
        problem = f"process {driver.pid} belongs to {printable(driver.user)}, and only that user or root can kill it"
        raise WrongUsage(problem) from refused
    # A launch right after this command is refused while the process exists.
    while presence(seen.snapshot, seen.at) == "here":
        time.sleep(_PAUSE_SECONDS)
    name, after = seen.launch.application, seen_at(place).window
    if output.as_json:
        output.document("dagkit.kill/1", {"application": name, "pid": driver.pid, "window": after})
    else:
        output.result(f"{name}: process {driver.pid} was killed; the next launch resumes after window {after}")
