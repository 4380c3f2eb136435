"""The log of an application's drivers: one line of JSON for each run event and log record, in the application's folder.

PATH/logs/driver.log        the newest lines
PATH/logs/driver.log.1 …    older ones, up to `BACKUPS` files

Only a folder on this machine holds a log: object stores append nothing.
"""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from logging.handlers import RotatingFileHandler
from pathlib import Path

from dagkit.engine.reports.run_events import Measured, Observer, RunEvent
from dagkit.observers.lines import Lines
from dagkit.urls import is_url

LOG = "logs/driver.log"
LONGEST_BYTES = 10_000_000
BACKUPS = 3

_logger = logging.getLogger(__name__)


class _LogFile(RotatingFileHandler):
    """The log. If it cannot be written, as on a full disk, the launch goes on, and one warning says so."""

    _is_incomplete = False

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        error = sys.exc_info()[1]
        if isinstance(error, OSError):
            self._warn(error)
        else:
            super().handleError(record)

    def close(self) -> None:
        try:
            super().close()
        except OSError as error:
            self._warn(error)

    def _warn(self, error: OSError) -> None:
        if not self._is_incomplete:
            self._is_incomplete = True
            _logger.warning("the log of this launch is incomplete: %s", error)


@contextmanager
def logged(place: str, application: str) -> Iterator[list[Observer]]:
    """Within the block, keep the log of a launch, with the error that ends it. The result is its observer, if any."""
    try:
        handler = None if is_url(place) else _file(Path(place) / LOG)
    except OSError as refused:
        _logger.warning("no log is kept: %s", refused)
        handler = None
    if handler is None:
        yield []
        return
    lines = Lines(lambda line: _append(handler, line))
    lines.app = application
    try:
        with lines.beside_other_handlers():
            yield [_without_figures(lines)]
    except BaseException as error:
        lines.report("stopped", {"message": f"{type(error).__name__}: {error}"}, level="error")
        raise
    finally:
        handler.close()


def _append(handler: logging.Handler, line: str) -> None:
    handler.handle(logging.LogRecord(_logger.name, logging.INFO, "", 0, line, (), None))


def _without_figures(lines: Lines) -> Observer:
    """An observer that leaves out the figures of windows: they grow with the graph, and the status file has them."""

    def write(event: RunEvent) -> None:
        if not isinstance(event, Measured):
            lines(event)

    return write


def _file(path: Path) -> logging.Handler:
    path.parent.mkdir(parents=True, exist_ok=True)
    return _LogFile(path, maxBytes=LONGEST_BYTES, backupCount=BACKUPS, encoding="utf-8")
