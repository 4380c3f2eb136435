"""`dagkit logs`: the log of an application's drivers."""

import time
from collections import deque
from functools import partial
from pathlib import Path

import rich_click as click

from dagkit.cli.application.located import Located, of_application_or_only
from dagkit.cli.application.options import WholeNumber
from dagkit.cli.operating.run_views import seen_at
from dagkit.cli.terminal.output import Output
from dagkit.engine.program.operator_output import LOG
from dagkit.errors import ApplicationNotFound, printable
from dagkit.ground.urls import is_url
from dagkit.observers.log_lines import all_lines, as_text, fields_of, is_detail, new_lines, opened

_PAUSE_SECONDS = 0.2


@click.command()
@of_application_or_only
@click.option("-n", "--lines", metavar="N", type=WholeNumber(min=0), default=100, help="The last lines; default 100.")
@click.option("-f", "--follow", is_flag=True, help="Print new lines as they come, until the application ends.")
def logs(
    *,
    there: Located,
    lines: int,
    follow: bool,
    output: Output,
) -> None:
    """Print the log of an application's drivers, also of earlier launches.

    It holds run events, log records, and what operators print and log on this machine. With --json, each line is the
    JSON object that was written. Only a folder on this machine holds a log.
    """
    place = there.place
    newest = Path(place) / LOG
    if is_url(place) or not newest.is_file():
        raise ApplicationNotFound(
            f"{printable(place)} holds no log", "only launches whose folder is on this machine keep one, in logs/"
        )
    shown = partial(_shown, as_json=output.as_json, details=output.verbose)
    with opened(newest) as file:
        for text in deque(filter(None, map(shown, all_lines(newest, file))), maxlen=lines):
            output.result(text)
        if follow:
            for text in filter(None, map(shown, new_lines(newest, file, partial(_waited, place)))):
                output.result(text)


def _shown(line: str, *, as_json: bool, details: bool) -> str | None:
    """A line as it is printed; None if it is left out."""
    line = line.rstrip("\n")
    fields = None if as_json else fields_of(line)
    if fields is None:
        return line if as_json else printable(line)
    return as_text(fields) if details or not is_detail(fields) else None


def _waited(place: str) -> bool:
    """Wait a moment for more lines; return whether the application still runs."""
    runs = seen_at(place).runs
    if runs:
        time.sleep(_PAUSE_SECONDS)
    return runs
