"""Reads the log of an application's drivers: its lines, what each means, and the newest ones first."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

from dagkit.errors import printable
from dagkit.ground.amounts import counted, in_bytes, in_units, part_done, what_was_read
from dagkit.observers.run_log import BACKUPS

Fields = Mapping[str, Any]

_EACH_SECOND = ("working",)
"""The events that come once a second and report how far work is."""
_ALWAYS = ("ts", "level", "event")
_KNOWN = ("ts", "level", "logger", "app", "event", "message", "window", "operator", "exception")


def fields_of(line: str) -> dict[str, Any] | None:
    """The fields of a line; None if no driver wrote it, or one that was killed meanwhile."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):  # a line that no driver wrote may nest thousands of lists
        return None
    if not isinstance(fields, dict) or not all(isinstance(fields.get(name), str) for name in _ALWAYS):
        return None
    return fields if isinstance(fields.get("message", ""), str) else None


def is_detail(fields: Fields) -> bool:
    """Whether an event is shown only if asked: one of each second, or a failure with which the run ends.

    Such a failure is followed by the error that ended the run, which names the window, the operator and the record.
    """
    return fields["event"] in _EACH_SECOND or (fields["event"] == "failed" and fields.get("again") is False)


def as_text(fields: Fields) -> str:
    """A line: `2026-11-23 10:10:11.250 warning window 3, Parse: …`. Further lines of its text are indented."""
    window, operator = fields.get("window"), fields.get("operator")
    scope = [f"window {window}"] if window and fields["event"] != "resumed" else []
    scope += [operator] if isinstance(operator, str) else []
    if fields["event"] == "stopped":  # its message names them
        scope = []
    text = f"{', '.join(scope)}: {sentence(fields)}" if scope else sentence(fields)
    first, *more = text.splitlines() or [""]
    shown = [f"{_time(fields['ts'])} {fields['level']:7} {first}", *(f"  {line}" for line in more)]
    return "\n".join(map(printable, shown))


def _time(text: str) -> str:
    """A moment of the log by the clock of the reader."""
    try:
        return datetime.fromisoformat(text).astimezone().isoformat(" ", "milliseconds")[:23]
    except ValueError:
        return text


def sentence(fields: Fields) -> str:
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
    found += [f"{in_units(fields['amounts'])} more"] if fields["amounts"] and not fields["blocks"] else []
    found += [f"{counted(fields['unsent'], 'element')} to send"] if fields.get("unsent") else []
    return f"found {' and '.join(found) or 'nothing'}"


def _committed(fields: Fields) -> str:
    files = f", {counted(fields['files'], 'file')} completed" if fields["files"] else ""
    pending = f"; {counted(fields['waiting'], 'element')} pending" if fields["waiting"] else ""
    read = what_was_read(fields["read"], fields.get("received") or 0, of_items="handled")
    return f"{read}, {in_bytes(fields['written'])} written{files} in {fields['millis'] / 1000:.1f} s{pending}"


def _reshaped(fields: Fields) -> str:
    if fields["fact"] != "scaled":
        return f"{fields['name']} is {_value(fields['after'])} (before: {_value(fields['before'])})"
    return f"{counted(fields['after'], 'partition')} (before: {fields['before']}): {fields['rule']}"


def _working(fields: Fields) -> str:
    return "at work: " + "; ".join(
        f"{each['operator']} {each['source']}" + ("" if each["fraction"] is None else f" {part_done(each['fraction'])}")
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
    "found_nothing": lambda _: "found nothing, and is not committed",
    "draining": lambda _: "stopping: the windows in flight end first",
    "ended": lambda _: "ended",
    "stopped": _message,
    "logged": _message,
    "printed": _message,
    "diagnosed": lambda fields: str(fields["problem"]),
}


def opened(path: Path) -> TextIO:
    """A file of the log; other bytes than UTF-8 are shown escaped."""
    return path.open(encoding="utf-8", errors="backslashreplace")


def _older(newest: Path) -> list[Path]:
    """The older files of a log, the newest of them first."""
    names = (f"{newest.name}.{number}" for number in range(1, BACKUPS + 1))
    return [path for path in map(newest.with_name, names) if path.is_file()]


def all_lines(newest: Path, file: TextIO) -> Iterator[str]:
    """The lines of the older files, the oldest first, then those of the open one."""
    for older in reversed(_older(newest)):
        with opened(older) as lines:
            yield from lines
    yield from file


def new_lines(newest: Path, file: TextIO, wait: Callable[[], bool]) -> Iterator[str]:
    """The lines that are appended to the log after those of the open file, until `wait` returns False and all are read.

    `wait` is called when there is no new line.
    """
    part, is_last, is_renamed = "", False, False
    try:
        while True:
            if line := file.readline():
                part += line
                if part.endswith("\n"):
                    yield part
                    part = ""
            elif is_renamed:
                file.close()
                file, is_renamed = opened(newest), False
            elif _is_renamed(newest, file):
                is_renamed = True  # what was written before that is read first
            elif is_last:
                return
            else:
                is_last = not wait()  # what the driver wrote before it ended is read once more
    finally:
        file.close()


def _is_renamed(newest: Path, file: TextIO) -> bool:
    """Whether the driver has begun the next file of the log."""
    try:
        return not os.path.samestat(newest.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:  # it has renamed this one, and opens the next one now
        return False


_BLOCK = 1 << 16
"""How many bytes are read at a time from the end of a file."""


def newest_first(newest: Path) -> Iterator[str]:
    """The lines of all files, the newest first; only as much is read as is asked for."""
    for path in (newest, *_older(newest)):
        with path.open("rb") as file:
            begin, end = b"", file.seek(0, os.SEEK_END)
            while end:
                start = max(0, end - _BLOCK)
                file.seek(start)
                # the first part may be the end of a line that begins in the block before
                begin, *lines = (file.read(end - start) + begin).split(b"\n")
                yield from (line.decode(errors="backslashreplace") for line in reversed(lines) if line)
                end = start
            if begin:
                yield begin.decode(errors="backslashreplace")
