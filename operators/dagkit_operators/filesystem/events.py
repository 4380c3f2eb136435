"""Events of the filesystem, as a hint that files have come or changed. Scans by time find what no event reported."""

import logging
import threading
from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

from dagkit.ground.urls import is_url, local_path, shown

_DEBOUNCE_MILLIS = 1600
"""The longest time for which changes that follow each other are reported together."""
_STEP_MILLIS = 50
"""Changes are reported when no other one has followed for this long."""

_log = logging.getLogger(__name__)


class FileEvents:
    """The events in local places since it was created."""

    def __init__(self, watcher: Any, stop: threading.Event) -> None:
        self._watcher = watcher
        self._stop = stop

    @classmethod
    def of(cls, places: Sequence[str], stop: threading.Event, *, recursive: bool) -> "FileEvents | None":
        """Events in local files and folders; None, with a warning, if there are none to be had. `stop` ends waiting."""
        local = [local_path(place) for place in places if not is_url(place)]
        if not local:
            return None
        try:
            notify = import_module("watchfiles._rust_notify")  # the package is optional, and may have no types here
            watcher = notify.RustNotify(local, False, False, 0, recursive, True)
        except (ImportError, OSError, RuntimeError) as error:
            _log_missing(shown(local[0]), str(error))
            return None
        return cls(watcher, stop)

    def wait(self, millis: int) -> bool:
        """Wait until something has changed since the last call, at most so long. Return whether it has."""
        return isinstance(self._watcher.watch(_DEBOUNCE_MILLIS, _STEP_MILLIS, millis, self._stop), set)


@lru_cache(maxsize=256)  # once in each process
def _log_missing(place: str, why: str) -> None:
    _log.warning("changes in %s cause no scan (%s); files are found by scans at intervals", place, why)
