"""The application's folder as the console reads it, by several threads in turn."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from dagkit.engine.history.history import application_chain
from dagkit.engine.reports.driver_process import Presence, presence
from dagkit.engine.reports.snapshot import RunSnapshot
from dagkit.engine.reports.status_file import read_status
from dagkit.engine.run.launch_record import LAUNCHED, LaunchRecord, last_launch
from dagkit.ledger import Chain, ChainNotFound, Ledger


@dataclass(frozen=True, slots=True)
class RunStatus:
    """What a driver last wrote, and whether it is still there."""

    written: RunSnapshot
    presence: Presence

    @property
    def state(self) -> str:
        """The state that the driver wrote; "killed" or "silent" if it writes no more."""
        return {"gone": "killed", "silent": "silent"}.get(self.presence, self.written.state)

    @property
    def runs(self) -> bool:
        """Whether the driver runs now."""
        return self.presence in ("here", "elsewhere")

    def as_json(self) -> dict[str, Any]:
        """The status as JSON."""
        return {**self.written.model_dump(mode="json"), "state": self.state}


@dataclass
class RunFolder:
    """One application's folder. Each reader sees the ledger as it is at that moment."""

    place: str
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _ledger: Ledger | None = None
    _application: Chain | None = None
    _launched: LaunchRecord | None = None
    _launched_at: datetime | None = None

    @contextmanager
    def ledger(self) -> Iterator[Ledger | None]:
        """The ledger, for this thread alone within the block; None before the first launch creates it."""
        with self._lock:
            if self._ledger is None:
                self._ledger = self.own_ledger()
            else:
                self._ledger.refresh()
            yield self._ledger

    def own_ledger(self) -> Ledger | None:
        """The ledger as it is now, for an answer that reads long, so that others need not wait for it."""
        try:
            return Ledger.open(self.place)
        except ChainNotFound:
            return None

    @contextmanager
    def windows(self) -> Iterator[Chain | None]:
        """The application's chain with its newest blocks, for this thread alone; None before its first launch."""
        with self.ledger() as ledger:
            if self._application is None and ledger is not None:
                self._application = application_chain(ledger)
            yield self._application

    def launched(self) -> LaunchRecord | None:
        """What the last launch runs, if it recorded that. It is read again only if it was replaced."""
        with self.ledger() as ledger:
            written = None if ledger is None else ledger.store.modified(LAUNCHED)
            if ledger is not None and written != self._launched_at:
                self._launched, self._launched_at = last_launch(ledger.store), written
            return self._launched

    def status(self) -> RunStatus | None:
        """The status that the driver last wrote; None if no driver has written one."""
        with self.ledger() as ledger:
            written = None if ledger is None else read_status(ledger.store)
        return None if written is None else RunStatus(written, presence(written, datetime.now(UTC)))
