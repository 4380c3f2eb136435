"""Marks a launch whose windows run in the driver, so that the next launch knows whether a record may have killed it."""

import logging

from dagkit.ledger import StoreError
from dagkit.ledger.stores import KeyTaken, Store

RUNNING = "running.json"

_logger = logging.getLogger(__name__)


class LaunchMarker:
    """An object in the application's folder that exists while a driver runs windows."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._is_running = False
        self.was_killed = False
        """Whether the launch before this one ended without removing its mark: its process was killed."""

    def begin(self) -> None:
        """Mark this launch."""
        try:
            self._store.create(RUNNING, b"{}\n")
        except KeyTaken:
            self.was_killed = True
        self._is_running = True

    def end(self) -> None:
        """Remove the mark of this launch. If the store fails, the next launch takes this one for killed, which is safe.

        A launch that did not begin keeps the mark of the launch before it.
        """
        if not self._is_running:
            return
        try:
            self._store.delete([RUNNING])
        except StoreError as error:
            _logger.warning("%s cannot be removed now: %s", RUNNING, error)
