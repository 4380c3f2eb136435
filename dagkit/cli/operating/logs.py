"""`dagkit logs`: the log of an application's drivers."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import rich_click as click

from dagkit.cli.application.located import app_or_path_or_only, located
from dagkit.cli.application.options import Asked, configured, spoken
from dagkit.cli.operating.log_text import DETAILS, as_text, fields_of
from dagkit.cli.operating.run_views import seen_at
from dagkit.cli.terminal.output import Output
from dagkit.cli.terminal.whole_number import WholeNumber
from dagkit.engine.operator_output import LOG
from dagkit.errors import ApplicationNotFound, printable
from dagkit.ground.urls import is_url
from dagkit.observers.run_log import BACKUPS

_PAUSE_SECONDS = 0.2


@click.command()
@app_or_path_or_only
@click.option("--path", metavar="FOLDER", help="The application's folder, if APP is launched with --path.")
@click.option("-n", "--lines", metavar="N", type=WholeNumber(min=0), default=100, help="The last lines; default 100.")
@click.option("-f", "--follow", is_flag=True, help="Print new lines as they come, until the application ends.")
@configured
@spoken
def logs(
    *,
    target: str,
    path: str | None,
    lines: int,
    follow: bool,
    configuring: Callable[[str], Asked],
    output: Output,
) -> None:
    """Print the log of an application's drivers, also of earlier launches.

    It holds run events, log records, and what operators print and log on this machine. With --json, each line is the
    JSON object that was written. Only a folder on this machine holds a log.
    """
    place = located(target, path, configuring, output).place
    newest = Path(place) / LOG
    if is_url(place) or not newest.is_file():
        raise ApplicationNotFound(
            f"{printable(place)} holds no log", "only launches whose folder is on this machine keep one, in logs/"
        )
    shown = partial(_shown, as_json=output.as_json, details=output.verbose)
    with _opened(newest) as file:
        for text in deque(filter(None, map(shown, _all_lines(newest, file))), maxlen=lines):
            output.result(text)
        if follow:
            for text in filter(None, map(shown, _new_lines(file, lambda: seen_at(place).runs))):
                output.result(text)


def _shown(line: str, *, as_json: bool, details: bool) -> str | None:
    """A line as it is printed; None if it is left out."""
    line = line.rstrip("\n")
    fields = None if as_json else fields_of(line)
    if fields is None:
        return line if as_json else printable(line)
    return as_text(fields) if details or fields["event"] not in DETAILS else None


def _opened(path: Path) -> TextIO:
    """A file of the log; other bytes than UTF-8 are shown escaped."""
    return path.open(encoding="utf-8", errors="backslashreplace")


def _all_lines(newest: Path, file: Any) -> Iterator[str]:
    """The lines of the older files, the oldest first, then those of the open one."""
    for number in range(BACKUPS, 0, -1):
        older = newest.with_name(f"{newest.name}.{number}")
        if older.is_file():
            with _opened(older) as lines:
                yield from lines
    yield from file


def _new_lines(file: Any, is_running: Callable[[], bool]) -> Iterator[str]:
    """The lines that are appended, until the application has ended and all are read."""
    part, is_last = "", False
    while True:
        line = file.readline()
        if line:
            part += line
            if part.endswith("\n"):
                yield part
                part = ""
        elif is_last:
            return
        else:
            is_last = not is_running()  # what it wrote before it ended is read once more
            if not is_last:
                time.sleep(_PAUSE_SECONDS)
