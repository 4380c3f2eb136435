"""The log of an application's drivers: one line of JSON for each run event and log record, in the application's folder.

PATH/logs/driver.log        the newest lines
PATH/logs/driver.log.1 …    older ones, up to `BACKUPS` files

Only a folder on this machine holds a log: object stores append nothing.
"""

import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from logging.handlers import RotatingFileHandler
from pathlib import Path
from weakref import WeakSet

from dagkit.engine.program.operator_output import LOG, LONGEST_BYTES
from dagkit.engine.record.run_events import Measured, Observer, RunEvent
from dagkit.errors import RunFailure, Scene
from dagkit.ground.urls import is_url
from dagkit.observers.lines import Lines

BACKUPS = 3

_logger = logging.getLogger(__name__)

_files: "WeakSet[_LogFile]" = WeakSet()
"""Those of this process."""
_held = threading.local()
_LOCK_OF_LOGGING = vars(logging)["_lock"]
_LONGEST_WAIT_SECONDS = 2.0
"""How long a fork waits for a lock."""


def _hold_handlers() -> None:
    """Wait until no thread writes to a log: a fork copies the lock of its file, which no thread of a child releases."""
    last_resort = [] if logging.lastResort is None else [logging.lastResort]
    handlers = [*logging.getLogger().handlers, *last_resort, *_files]  # those of the root call those of files
    locks = [handler.lock for handler in handlers if handler.lock is not None]
    # As logging itself does at a fork, but first: `logging.config` has it while it waits for those of handlers.
    _LOCK_OF_LOGGING.acquire()
    # a file that cannot be written calls the others, so both may wait for each other
    _held.locks = [lock for lock in locks if lock.acquire(timeout=_LONGEST_WAIT_SECONDS)]


def _release_handlers() -> None:
    for lock in reversed(_held.locks):
        lock.release()
    _LOCK_OF_LOGGING.release()


if hasattr(os, "register_at_fork"):  # in a child, logging itself makes the locks of handlers again
    os.register_at_fork(before=_hold_handlers, after_in_parent=_release_handlers)


class _LogFile(RotatingFileHandler):
    """The log. If it cannot be written, as on a full disk, warn once; the launch does not depend on it."""

    _is_incomplete = False

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        super().__init__(path, maxBytes=LONGEST_BYTES, backupCount=BACKUPS, encoding="utf-8")
        _files.add(self)

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
        handler = None if is_url(place) else _LogFile(Path(place) / LOG)
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
        scene = error.scene if isinstance(error, RunFailure) else Scene()
        where = {name: value for name, value in asdict(scene).items() if value is not None}
        lines.report("stopped", {**where, "message": f"{type(error).__name__}: {error}"}, level="error")
        raise
    finally:
        handler.close()


def _append(handler: logging.Handler, line: str) -> None:
    # By `handle`, which takes the lock. Without arguments, a percent sign in the line stays as it is.
    handler.handle(logging.LogRecord(_logger.name, logging.INFO, "", 0, line, (), None))


def _without_figures(lines: Lines) -> Observer:
    """An observer that leaves out the figures of windows: they grow with the graph, and the status file has them."""

    def write(event: RunEvent) -> None:
        if not isinstance(event, Measured):
            lines(event)

    return write
