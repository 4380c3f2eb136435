"""The status of a run, with its last error in parts that the page formats: sentences, and lines of a traceback."""

import re
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from dagkit.api.traces import is_authored
from dagkit.console.tables import Row
from dagkit.engine.record.status_file import SeenRun
from dagkit.observers.run_health import Remark, remarks

_TABLES: Any = {"format": True, "operators": True, "stages": True, "metrics": {"user_metrics"}}
"""The parts of a status that grow with the graph: tables have them, a page at a time."""


def status_of(run: SeenRun | None) -> Row | None:
    """A run as JSON, in the state that users see, with remarks and sums instead of the figures of each operator."""
    if run is None:
        return None
    sums = {"read": run.snapshot.read, "pending": run.snapshot.pending, "to_do": run.snapshot.to_do}
    reported = run.snapshot.status.at.isoformat()
    last = {"window": run.window, "at": run.last_sign.isoformat(), "reported": reported, "state": run.state}
    remarked = {"remarks": [_shown(each) for each in remarks(run.snapshot, runs=run.runs)]}
    status = {**run.snapshot.model_dump(mode="json", exclude=_TABLES), **sums, **last, **remarked}
    return status if status["error"] is None else {**status, "error": _error_of(status["error"])}


def _shown(remark: Remark) -> Row:
    """A remark as JSON: the page writes the time in its own time zone."""
    since = None if remark.since is None else remark.since.isoformat()
    return {**asdict(remark), "since": since}


_FRAME = re.compile(r' +File "(?P<file>.+)", line (?P<line>\d+), in (?P<function>.+)')
_HEAD = "Traceback (most recent call last):"


def _parts_of(message: str) -> Iterator[Row]:
    """The parts of a message: lines of text, and frames, each with its lines of code and whether an author wrote it."""
    frame: dict[str, Any] | None = None
    for line in message.splitlines():
        found = _FRAME.fullmatch(line)
        if found is not None:
            if frame is not None:
                yield frame
            file = found["file"]
            place = {"file": file, "line": int(found["line"]), "function": found["function"]}
            frame = {**place, "code": [], "is_authors": is_authored(file)}
        elif frame is not None and line.startswith("    "):
            frame["code"].append(line[4:])
        else:
            if frame is not None:
                yield frame
            frame = None
            if line != _HEAD:
                yield {"text": line}
    if frame is not None:
        yield frame


def _error_of(error: Row) -> Row:
    """The last error of a status, with the `parts` of its message; one part for frames of libraries in a row."""
    parts: list[Row] = []
    for part in _parts_of(error["message"]):
        # Lines of text have no `is_authors`, and stay.
        if part.get("is_authors") is not False:
            parts.append(part)
        elif parts and "library" in parts[-1]:
            parts[-1]["library"].append(part)
        else:
            parts.append({"library": [part]})
    return {**error, "parts": parts}
