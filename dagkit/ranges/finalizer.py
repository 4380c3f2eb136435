"""Callbacks of a source that run once its records are committed, such as to acknowledge messages."""

import logging
from collections.abc import Callable

from dagkit.ranges.locked import Locked

_log = logging.getLogger(__name__)


class BundleFinalizer(Locked):
    """Collects callbacks while records are read, and calls each at most once when the window is durable.

    Best effort: a crash between commit and call leaves callbacks uncalled, and a failing one is only logged. So a
    callback should acknowledge up to an absolute position: then a later one includes what an earlier one missed.
    """

    transient = Locked.transient | {"_callbacks"}

    def __init__(self) -> None:
        super().__init__()
        self._callbacks: list[Callable[[], object]] = []

    def __setstate__(self, state: dict[str, object]) -> None:
        super().__setstate__(state)
        self._callbacks = []

    def register(self, callback: Callable[[], object]) -> None:
        """Register a callback to call after the commit."""
        with self._lock:
            self._callbacks.append(callback)

    def taken(self) -> list[Callable[[], object]]:
        """Return the registered callbacks in order, and forget them."""
        with self._lock:
            callbacks, self._callbacks = self._callbacks, []
            return callbacks

    def finalize(self) -> int:
        """Call the registered callbacks in order, and return how many failed. No callback is called again."""
        return sum(not _called(callback) for callback in self.taken())


def _called(callback: Callable[[], object]) -> bool:
    try:
        callback()
    except Exception:  # noqa: BLE001 - the records are committed: no failure here may fail them
        _log.exception("%r failed after its records were committed; they stay committed", callback)
        return False
    return True
