"""Folders and files that a scan may not read: an operator can leave them out, and each scan tries them again."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Literal

from pydantic import PrivateAttr

from dagkit import Context, Operator
from dagkit.api.files import FileState
from dagkit.errors import InputUnreadable, RunFailure
from dagkit.ground.urls import as_text, shown
from dagkit_operators.filesystem.access import is_bad_file, reading_from
from dagkit_operators.filesystem.listing import Skips

OR_LEAVE = "set on_bad_file of this operator to 'quarantine' to continue without it"
_log = logging.getLogger(__name__)


class LeavesBadPlaces(Operator):
    """An operator that scans for files, and can leave out folders and files that it may not read."""

    on_bad_file: Literal["stop", "quarantine"] = "stop"
    """What to do with a folder or a file that a scan may not read: stop the run, or leave it out. Each scan looks at it
    again, and reads it once it may. `dagkit files` lists it."""

    _context: Context | None = PrivateAttr(default=None)
    _left_out: set[str] = PrivateAttr(default_factory=set)
    """The folders and files that the current scan may not read."""

    @property
    def leave_out(self) -> Callable[[str, OSError], Any] | None:
        """Called with each folder that a scan may not read, and the reason; None: the scan ends there."""
        return self._leave_out if self.on_bad_file == "quarantine" else None

    @property
    def skips(self) -> Skips:
        """What a scan does not read: places that it may not read, and output of the application behind a link."""
        return Skips({} if self._context is None else self._context.written, self.leave_out)

    def _leave_out(self, path: str, error: Exception) -> None:
        self._left_out.add(path)
        _log_left_out(path, _reason(error))

    @contextmanager
    def leaving_out(self, path: str, then: str) -> Iterator[None]:
        """Leave out a file that cannot be read within the context. Raise InputUnreadable if that is to stop the run."""
        try:
            with reading_from(path, f"{OR_LEAVE}, {then}"):
                yield
        except RunFailure as error:
            if not is_bad_file(error):
                raise
            if self.leave_out is not None:
                self._leave_out(path, cause_of(error))
            # A function below may have raised it with a help of its own, which does not name the setting.
            elif isinstance(error.__cause__, OSError):
                raise InputUnreadable(error.problem, f"fix this, {OR_LEAVE}, {then}") from error.__cause__
            else:
                raise


@lru_cache(maxsize=4096)  # once in each process, however often a folder is scanned
def _log_left_out(path: str, reason: str) -> None:
    _log.warning("%s is left out, since it cannot be read: %s; each scan looks at it again", shown(path), reason)


def state_left_out(path: str, error: Exception, *, stops: bool) -> FileState:
    """The state of a folder or a file that cannot be read: a scan stops at it, or leaves it out."""
    reason = f"it cannot be read: {_reason(error)}"
    if stops:
        return FileState(as_text(path), "pending", f"{reason}; a launch stops here, unless on_bad_file is 'quarantine'")
    return FileState(as_text(path), "quarantined", f"{reason} (on_bad_file)")


def cause_of(error: Exception) -> Exception:
    """The error of the system that made a file unreadable; the failure itself if its content did."""
    return error.__cause__ if isinstance(error.__cause__, OSError) else error


def _reason(error: Exception) -> str:
    if isinstance(error, RunFailure):
        return error.problem
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)
