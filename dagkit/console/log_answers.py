"""Answers about the log of an application's drivers."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from dagkit.console.run_folder import RunFolder
from dagkit.console.tables import Row
from dagkit.engine.program.operator_output import LOG
from dagkit.ground.urls import is_url
from dagkit.observers.log_lines import fields_of, is_detail, newest_first, sentence

MOST_LINES = 100_000
"""The highest number of lines that one answer looks at."""
_HEAD = 80
"""The level is within this many characters."""
_LEVELS = ("debug", "info", "warning", "error", "critical")
_OF_EACH_WINDOW = ("found", "started", "committed", "found_nothing")


def log(folder: RunFolder, least: str, *, of_windows: bool = True) -> Iterator[Row]:
    """The lines of the log from this level on, the newest first; if asked, without those that each window writes."""
    place = Path(folder.place, LOG)
    if is_url(folder.place) or not place.is_file():
        return
    lowest = _LEVELS.index(least) if least in _LEVELS else 0
    lower = [f'"level": "{level}"' for level in _LEVELS[:lowest]]
    hidden = () if of_windows else _OF_EACH_WINDOW
    for line in islice(newest_first(place), MOST_LINES):
        if any(level in line[:_HEAD] for level in lower):  # most lines need not be read as JSON
            continue
        fields = fields_of(line)
        if fields is None:
            yield {"at": None, "level": "", "operator": None, "window": None, "text": line}
        elif not (is_detail(fields) or fields["level"] in _LEVELS[:lowest] or fields["event"] in hidden):
            operator = fields.get("operator")
            yield {
                "at": fields["ts"],
                "level": fields["level"],
                "operator": operator if isinstance(operator, str) else None,
                "window": fields.get("window") or None,
                "text": sentence(fields),
            }
