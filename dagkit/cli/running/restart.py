"""`dagkit restart`: make an application resume after an earlier window than its last."""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime

import rich_click as click

from dagkit.cli.application.located import app_or_path, perhaps_restarting
from dagkit.cli.application.options import Asked, WholeNumber, configured, spoken
from dagkit.cli.terminal.output import Interrupted, Output, WrongUsage, is_terminal, shown_place
from dagkit.engine.run.restart_mark import WITHDRAWN
from dagkit.ground.amounts import counted, some_of
from dagkit.runs.restarting import Restart

_MOST_NAMED = 3


@click.command()
@app_or_path
@click.option(
    "--from", "window", metavar="WINDOW", type=WholeNumber(min=1), required=True, help="The window to resume after."
)
@click.option("--yes", is_flag=True, help="Do it without asking.")
@click.option("--path", metavar="FOLDER", help="The application's folder, if APP is launched with --path.")
@configured
@spoken
def restart(
    *, target: str, window: int, yes: bool, path: str | None, configuring: Callable[[str], Asked], output: Output
) -> None:
    """Make an application that does not run resume after WINDOW, as if it had gone no further.

    The next launch processes the input of later windows again. The folder of the earlier run is renamed and kept, and
    the output files of its later windows move into it.
    """
    # A restart that was killed may have left no folder, and this command finishes it.
    place = perhaps_restarting(target, path, configuring, output).place
    finished = Restart.finished(place)
    if finished is not None:
        output.message("an earlier restart was killed between its steps; the rest of them is done now")
    if finished is not None and finished[0].window == window:
        _report(*finished, output)
        return
    planned = Restart.planned(place, window)
    output.message("\n".join(_intended(planned)))
    if not yes:
        _confirm()
    _report(planned, planned.perform(datetime.now(UTC)), output)


def _report(done: Restart, kept: str, output: Output) -> None:
    if output.as_json:
        names = ("application", "place", "window", "last", "withdrawn", "missing")
        output.document("dagkit.restart/1", {name: asdict(done)[name] for name in names} | {"kept": kept})
    else:
        output.result(
            f"{done.application} resumes after window {done.window}; the earlier run is in {shown_place(kept)}"
        )


def _confirm() -> None:
    """Ask whether to do it; raise unless the user agrees."""
    if not is_terminal(sys.stdin):
        raise WrongUsage("nothing was changed: --yes restarts without asking")
    if not click.confirm("Restart?", err=True):
        raise Interrupted


def _intended(planned: Restart) -> Iterator[str]:
    """What the restart does, line by line."""
    again = f"windows {planned.window + 1} to {planned.last}"
    if planned.last == planned.window + 1:
        again = f"window {planned.last}"
    yield f"{planned.application} will resume after window {planned.window}: what {again} processed is processed again"
    yield f"  its folder is renamed to {shown_place(planned.place)}.TIME and kept"
    if planned.withdrawn:
        count = counted(len(planned.withdrawn), "file")
        yield f"  {count} of {again} move there, into {WITHDRAWN}: {_named(planned.withdrawn)}"
    if planned.missing:
        count = counted(len(planned.missing), "file")
        yield f"  {count} of {again}, gone since, are written again: {_named(planned.missing)}"
    if planned.unset:
        yield "  what was set since, while it ran, is as it was then"


def _named(files: Sequence[str]) -> str:
    return ", ".join(some_of(files, _MOST_NAMED, text=shown_place))
