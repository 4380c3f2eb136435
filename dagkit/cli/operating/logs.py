"""`dagkit logs`: the log of an application's drivers."""

import json
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import rich_click as click

from dagkit.cli.application.grouping import WholeNumber
from dagkit.cli.application.located import Located, of_application_or_only
from dagkit.cli.operating.run_views import seen_at
from dagkit.cli.terminal.output import Output
from dagkit.engine.program.operator_output import LOG
from dagkit.errors import ApplicationNotFound, printable
from dagkit.ground.amounts import counted, in_bytes, in_units
from dagkit.ground.urls import is_url
from dagkit.observers.run_log import BACKUPS

Fields = Mapping[str, Any]

DETAILS = ("working",)
"""The events that come once a second and say how far work is."""
_ALWAYS = ("ts", "level", "event")
_KNOWN = ("ts", "level", "logger", "app", "event", "message", "window", "operator", "exception")


def fields_of(line: str) -> dict[str, Any] | None:
    """The fields of a line; None if no driver wrote it, or one that was killed meanwhile."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict) or not all(isinstance(fields.get(name), str) for name in _ALWAYS):
        return None
    return fields if isinstance(fields.get("message", ""), str) else None


def as_text(fields: Fields) -> str:
    """A line: `2026-11-23 10:10:11.250 warning window 3, Parse: …`. Further lines of its text are indented."""
    window, operator = fields.get("window"), fields.get("operator")
    scope = [f"window {window}"] if window and fields["event"] != "resumed" else []
    scope += [operator] if isinstance(operator, str) else []
    text = f"{', '.join(scope)}: {_sentence(fields)}" if scope else _sentence(fields)
    first, *more = text.splitlines() or [""]
    shown = [f"{_time(fields['ts'])} {fields['level']:7} {first}", *(f"  {line}" for line in more)]
    return "\n".join(map(printable, shown))


def _time(text: str) -> str:
    """A moment of the log by the clock of the reader."""
    try:
        return datetime.fromisoformat(text).astimezone().isoformat(" ", "milliseconds")[:23]
    except ValueError:
        return text


def _sentence(fields: Fields) -> str:
    """What an event means, or its fields if this dagkit does not know it in this form."""
    try:
        return _SENTENCES[fields["event"]](fields)
    except (KeyError, TypeError, ValueError, AttributeError):
        rest = [f"{name}={_value(value)}" for name, value in fields.items() if name not in _KNOWN]
        return " ".join([fields["event"], *([fields["message"]] if "message" in fields else []), *rest])


def _value(value: Any) -> str:
    return value if isinstance(value, str) and " " not in value else json.dumps(value, ensure_ascii=False)


def _message(fields: Fields) -> str:
    exception = f"\n{fields['exception']}" if "exception" in fields else ""
    return f"{fields['message']}{exception}"


def _resumed(fields: Fields) -> str:
    pending = f"; {counted(fields['waiting'], 'element')} pending" if fields["waiting"] else ""
    return f"resuming after window {fields['window']}{pending}" if fields["window"] else "starting"


def _found(fields: Fields) -> str:
    found = [f"{counted(fields['blocks'], 'element')}, {in_units(fields['amounts'])}"] if fields["blocks"] else []
    found += [counted(fields["items"], "item")] if fields["items"] else []
    return f"found {' and '.join(found) or 'nothing'}"


def _committed(fields: Fields) -> str:
    files = f", {counted(fields['files'], 'file')} completed" if fields["files"] else ""
    pending = f"; {counted(fields['waiting'], 'element')} pending" if fields["waiting"] else ""
    done = f"{in_units(fields['read'])} read, {in_bytes(fields['written'])} written{files}"
    return f"{done} in {fields['millis'] / 1000:.1f} s{pending}"


def _reshaped(fields: Fields) -> str:
    if fields["fact"] != "scaled":
        return f"{fields['name']} is {_value(fields['after'])} (before: {_value(fields['before'])})"
    return f"{counted(fields['after'], 'partition')} (before: {fields['before']}): {fields['rule']}"


def _working(fields: Fields) -> str:
    return "at work: " + "; ".join(
        f"{each['operator']} {each['source']}" + ("" if each["fraction"] is None else f" {each['fraction']:.0%}")
        for each in fields["work"]
    )


_SENTENCES: Mapping[str, Callable[[Fields], str]] = {
    "starting": lambda fields: str(fields["step"]),
    "plan_differs": lambda fields: "\n".join(["the application differs from its last launch:", *fields["changes"]]),
    "resumed": _resumed,
    "found": _found,
    "started": lambda fields: f"begins with {counted(fields['blocks'], 'element')}",
    "working": _working,
    "waiting": lambda fields: f"waiting: {'; '.join(fields['reasons'])}",
    "failed": lambda fields: f"{fields['message']}; {'the window runs again' if fields['again'] else 'the run ends'}",
    "committed": _committed,
    "reshaped": _reshaped,
    "draining": lambda _: "stopping: the windows in flight end first",
    "ended": lambda _: "ended",
    "stopped": _message,
    "logged": _message,
    "printed": _message,
    "diagnosed": lambda fields: str(fields["problem"]),
}


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
    return as_text(fields) if details or not _is_detail(fields) else None


def _is_detail(fields: Fields) -> bool:
    """Whether an event is shown only if asked: one of each second, or a failure with which the run ends.

    Such a failure is followed by the error that ended the run, which names the window, the operator and the record.
    """
    return fields["event"] in DETAILS or (fields["event"] == "failed" and fields.get("again") is False)


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
