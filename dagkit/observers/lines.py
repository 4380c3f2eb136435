"""Lines: what happens in a run as one line of JSON each, for whoever collects logs.

Every line has `ts`, `level`, `logger`, `app` and `event`; what is of a window also has `window`, and what is of an
operator `operator`. What else a line has depends on its event, and is the same for every line of that event.
"""

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from dagkit.api.stats import OperatorStats
from dagkit.engine.reports.run_events import (
    Committed,
    Ended,
    Failed,
    Found,
    Measured,
    Reshaped,
    Resumed,
    RunEvent,
    Started,
)

Write = Callable[[str], None]

EVENTS: Mapping[type, str] = {
    Resumed: "resumed",
    Found: "found",
    Started: "started",
    Failed: "failed",
    Committed: "committed",
    Measured: "measured",
    Reshaped: "reshaped",
    Ended: "ended",
}
"""What a line of each happening says as its `event`."""


class Lines:
    """An observer that writes a line for whatever happens, and for whatever is logged meanwhile."""

    def __init__(self, write: Write, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._write = write
        self._now = now
        self.app: str | None = None
        """Named in each line; the run says it, if nobody did before."""

    def __call__(self, happening: RunEvent) -> None:
        if isinstance(happening, Resumed):
            self.app = happening.application
        level = "warning" if isinstance(happening, Failed) else "info"
        self.tell(EVENTS[type(happening)], _told(happening), level=level)

    def tell(self, event: str, told: Mapping[str, Any], *, level: str = "info", logger: str = "dagkit.run") -> None:
        """Write one line."""
        line = {"ts": _iso(self._now()), "level": level, "logger": logger, "app": self.app, "event": event, **told}
        self._write(json.dumps(line, ensure_ascii=False, default=str))

    @contextmanager
    def with_logs(self) -> Iterator[None]:
        """For as long as this lasts, what is logged becomes lines too, and goes nowhere else."""
        root, handler = logging.getLogger(), _Handler(self)
        before, root.handlers = root.handlers, [handler]
        try:
            yield
        finally:
            root.handlers = before


class _Handler(logging.Handler):
    """Makes a line of each record of the standard library's logging."""

    def __init__(self, lines: Lines) -> None:
        super().__init__()
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        told: dict[str, Any] = {"message": record.getMessage()}
        if record.exc_info:
            told["exception"] = logging.Formatter().formatException(record.exc_info)
        self._lines.tell("logged", told, level=record.levelname.lower(), logger=record.name)


def _told(happening: RunEvent) -> dict[str, Any]:
    if isinstance(happening, Measured):
        return _measured(happening)
    if isinstance(happening, Reshaped):
        return {"window": happening.window_id, **happening.fact.model_dump(mode="json")}
    told = {name: round(held, 3) if isinstance(held, float) else held for name, held in asdict(happening).items()}
    told.pop("application", None)
    return {"window": told.pop("window_id"), **told} if "window_id" in told else told


def _measured(measured: Measured) -> dict[str, Any]:
    """All partitions of each operator together: a line must not grow with the cluster."""
    return {
        "window": measured.window_id,
        "began": _iso(measured.began),
        "committed": _iso(measured.committed),
        "operators": {name: _all_of(partitions) for name, partitions in measured.operators.items()},
        "metrics": {name: dict(metrics) for name, metrics in measured.metrics.items()},
        "facts": [fact.model_dump(mode="json") for fact in measured.facts],
    }


def _all_of(partitions: Sequence[OperatorStats]) -> dict[str, Any]:
    taken: dict[str, int] = {}
    sent: dict[str, int] = {}
    for stats in partitions:
        for into, ports in ((taken, stats.input_ports), (sent, stats.output_ports)):
            for port in ports:
                into[port.port] = into.get(port.port, 0) + port.tuple_count
    return {
        "partitions": len(partitions),
        "in": taken,
        "out": sent,
        "positions": sum(stats.positions for stats in partitions),
        "busy_millis": round(sum(stats.busy_millis for stats in partitions), 3),
        "cpu_millis": round(sum(stats.cpu_nanos for stats in partitions) / 1e6, 3),
    }


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
