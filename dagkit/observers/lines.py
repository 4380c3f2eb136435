"""Writes each run event as one line of JSON, for log collectors.

Every line has `ts`, `level`, `logger`, `app` and `event`; an event of a window also has `window`, and one of an
operator `operator`. The other fields depend on the event only.
"""

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, get_args

from dagkit.api.stats import OperatorStats
from dagkit.conf.grammar.names import snake
from dagkit.engine.program.operator_output import present
from dagkit.engine.record.run_events import Committed, Failed, Measured, Reshaped, Resumed, RunEvent

Write = Callable[[str], None]

EVENTS: Mapping[type, str] = {kind: snake(kind.__name__) for kind in get_args(RunEvent)}
"""The field `event` for each class of run events, so a class that is renamed changes the log."""


class Lines:
    """An observer that writes a line for each run event, and optionally for each log record."""

    def __init__(self, write: Write, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._write = write
        self._now = now
        self.app: str | None = None
        """The application's name, in each line; the run sets it, if it was not set before."""

    def __call__(self, event: RunEvent) -> None:
        if isinstance(event, Resumed):
            self.app = event.application
        level = "warning" if isinstance(event, Failed) else "info"
        self.report(EVENTS[type(event)], _fields(event), level=level)

    def report(self, event: str, fields: Mapping[str, Any], *, level: str = "info", logger: str = "dagkit.run") -> None:
        """Write one line."""
        line = {"ts": _iso(self._now()), "level": level, "logger": logger, "app": self.app, "event": event, **fields}
        self._write(json.dumps(line, ensure_ascii=False, default=str))

    @contextmanager
    def with_logs(self) -> Iterator[None]:
        """Within the block, write log records as lines too, instead of passing them to other handlers."""
        root, handler = logging.getLogger(), _Handler(self)
        before, root.handlers = root.handlers, [handler]
        try:
            yield
        finally:
            root.handlers = before

    @contextmanager
    def beside_other_handlers(self) -> Iterator[None]:
        """Within the block, write log records as lines, and leave them to other handlers as well."""
        root, handler = logging.getLogger(), _Beside(self)
        root.addHandler(handler)
        try:
            yield
        finally:
            root.removeHandler(handler)


class _Handler(logging.Handler):
    """Writes a line for each record of the standard library's logging."""

    def __init__(self, lines: Lines) -> None:
        super().__init__()
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        slot = present()
        fields: dict[str, Any] = {"message": record.getMessage()}
        if slot is not None:
            fields = {**slot.scope(), **fields}
        if record.exc_text:
            fields["exception"] = record.exc_text
        elif record.exc_info:
            fields["exception"] = logging.Formatter().formatException(record.exc_info)
        self._lines.report("logged", fields, level=record.levelname.lower(), logger=record.name)


class _Beside(_Handler):
    """Writes lines, and passes a record to Python's handler of last resort where that would be the only one."""

    def emit(self, record: logging.LogRecord) -> None:
        slot = present()
        if slot is not None and slot.is_muted:
            return
        super().emit(record)
        # logging calls it for a record that reaches no handler, and this is one
        last = logging.lastResort
        if last is not None and record.levelno >= last.level and not self._others(record.name):
            last.handle(record)

    def _others(self, name: str) -> list[logging.Handler]:
        """The other handlers that a record of this logger reaches."""
        logger: logging.Logger | None = logging.getLogger(name)
        found: list[logging.Handler] = []
        while logger is not None:
            found += [handler for handler in logger.handlers if handler is not self]
            logger = logger.parent if logger.propagate else None
        return found


def _fields(event: RunEvent) -> dict[str, Any]:
    if isinstance(event, Measured):
        return _measured(event)
    if isinstance(event, Reshaped):
        return {"window": event.window_id, **event.fact.model_dump(mode="json")}
    fields = {name: _shown(held) for name, held in asdict(event).items()}
    if isinstance(event, Committed):  # a line has the sums, so it does not grow with the graph
        del fields["queues"]
        sums = ("positions", "waiting", "waiting_positions", "pending")
        fields |= {name: getattr(event, name) for name in sums}
    if isinstance(event, Committed | Resumed):
        fields |= event.aside._asdict()
        del fields["aside"]
    # Each line has it as `app`.
    fields.pop("application", None)
    return {"window": fields.pop("window_id"), **fields} if "window_id" in fields else fields


def _measured(measured: Measured) -> dict[str, Any]:
    """The figures of each operator, summed over its partitions: a line must not grow with the cluster."""
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


def _shown(value: Any) -> Any:
    if isinstance(value, datetime):
        return _iso(value)
    if isinstance(value, list | tuple):
        return [_shown(each) for each in value]
    if isinstance(value, Mapping):
        return {key: _shown(each) for key, each in value.items()}
    return round(value, 3) if isinstance(value, float) else value


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
