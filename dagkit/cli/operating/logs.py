"""`dagkit logs`: the log of an application's drivers."""

import json
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

import rich_click as click

from dagkit.cli.application.located import app_or_path_or_only, located
from dagkit.cli.application.options import Asked, configured, spoken
from dagkit.cli.operating.run_views import seen_at
from dagkit.cli.terminal.output import Output
from dagkit.cli.terminal.whole_number import WholeNumber
from dagkit.errors import ApplicationNotFound, printable
from dagkit.observers.run_log import BACKUPS, LOG
from dagkit.urls import is_url

_PAUSE_SECONDS = 0.2
_SHOWN_FIRST = ("ts", "level", "event")
_ALWAYS = ("ts", "level", "logger", "app", "event", "message")


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
    """Print the log of an application's drivers: run events and log records, also those of earlier launches.

    With --json, each line is the JSON object that the driver wrote. Only a folder on this machine holds a log.
    """
    place = located(target, path, configuring, output).place
    newest = Path(place) / LOG
    if is_url(place) or not newest.is_file():
        raise ApplicationNotFound(
            f"{printable(place)} holds no log", "only launches whose folder is on this machine keep one, in logs/"
        )
    shown = (lambda line: line) if output.as_json else _as_text
    with _opened(newest) as file:
        for line in deque(_all_lines(newest, file), maxlen=lines):
            output.result(shown(line.rstrip("\n")))
        if follow:
            for line in _new_lines(file, lambda: seen_at(place).runs):
                output.result(shown(line.rstrip("\n")))


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


def _as_text(line: str) -> str:
    """A line of JSON as text: `2026-11-23T09:10:11.000Z info committed window=3 …`."""
    fields = _fields(line)
    if fields is None:
        return printable(line)
    rest = [f"{name}={_value(value)}" for name, value in fields.items() if name not in _ALWAYS]
    message = [fields["message"]] if "message" in fields else []
    return " ".join([*(fields[name] for name in _SHOWN_FIRST), *message, *rest])


def _fields(line: str) -> dict[str, Any] | None:
    """The fields of a line; None if no driver wrote it, or one that was killed meanwhile."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict) or not all(isinstance(fields.get(name), str) for name in _SHOWN_FIRST):
        return None
    return fields if isinstance(fields.get("message", ""), str) else None


def _value(value: Any) -> str:
    return value if isinstance(value, str) and " " not in value else json.dumps(value, ensure_ascii=False)
