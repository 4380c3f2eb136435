"""The snapshot of a run as a file in the application's folder, for other processes: `PATH/status.json`.

The driver replaces the file at each change of state, otherwise at most once a second, and at least every five seconds.
Its last content is the state in which the run ended, unless its storage does not answer then. The file also keeps a
second driver from starting by mistake; what decides between two drivers is the ledger.
"""

import logging
import shlex
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from dagkit.engine.record.driver_process import BEAT_SECONDS, Presence, presence
from dagkit.engine.record.run_events import Draining, Ended, Failed, Resumed, RunEvent, Starting
from dagkit.engine.record.run_picture import RunPicture
from dagkit.engine.record.snapshot import RunSnapshot, bytes_of, document_in
from dagkit.errors import RunFailure
from dagkit.ledger import StoreError
from dagkit.ledger.stores import KeyMissing, Store

STATUS = "status.json"
_SECONDS_BETWEEN = 1.0
"""The shortest time between two writes without a change of state."""

_log = logging.getLogger(__name__)


def _driver_runs(running: RunSnapshot) -> RunFailure:
    """Another driver runs the application now."""
    driver = running.driver
    return RunFailure(
        f"{running.application} is already running: process {driver.pid} of {driver.user} on {driver.host}, "
        f"since {running.since.astimezone():%Y-%m-%d %H:%M:%S}",
        f"stop it with `dagkit stop {shlex.quote(running.application_path)}`; only if that process or its machine "
        "is gone, launch with --take-over",
        code="driver-runs",
    )


def read_status(store: Store) -> RunSnapshot | None:
    """The last snapshot of an application's driver; None if there is none that this dagkit can read."""
    try:
        return document_in(store.get(STATUS), RunSnapshot)
    except KeyMissing:
        return None
    except ValueError as error:
        _log.warning("%s cannot be read: %s", STATUS, error)
        return None


def refuse_second(store: Store, now: datetime, own: str = "") -> None:
    """Raise `driver-runs` if another driver runs the application than the one of the launch `own`."""
    there = read_status(store)
    if there is not None and there.driver.launch != own and presence(there, now) in ("here", "elsewhere"):
        raise _driver_runs(there)


class StatusFile:
    """Writes the snapshots of one launch. It is an observer of the launch, and keeps the picture of it."""

    def __init__(self, store: Store, picture: RunPicture, *, last_write_seconds: float = BEAT_SECONDS) -> None:
        self._store = store
        self._picture = picture
        self._last_write_seconds = last_write_seconds
        """How long the end of the launch waits for the last write."""
        self._is_begun = False
        self._is_overtaken = False
        """Whether another launch has written the file, which then belongs to it."""
        self._changed = threading.Event()
        """Set if the picture changed."""
        self._urgent = threading.Event()
        """Set if its state changed, or the launch is over."""
        self._over = threading.Event()

    def __call__(self, event: RunEvent) -> None:
        self._picture(event)
        self._changed.set()
        if isinstance(event, Starting | Resumed | Draining | Failed | Ended):
            self._urgent.set()

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Within the block, keep the file up to date; at its end, write how the launch ended."""
        self.write()
        writer = threading.Thread(target=self._keep, name="dagkit-status", daemon=True)
        writer.start()
        try:
            yield
        except BaseException as error:
            self._picture.ended(error)
            raise
        finally:
            self._over.set()
            self._urgent.set()
            writer.join(self._last_write_seconds)
            if writer.is_alive():
                _log.warning("%s keeps an earlier state: its storage does not answer", STATUS)

    def write(self) -> None:
        """Write the snapshot, unless another launch has begun to write. If the store fails, a later write succeeds."""
        if self._is_overtaken:
            return
        snapshot = self._picture.snapshot()
        try:
            there = read_status(self._store) if self._is_begun else None
            if there is not None and there.driver.launch != snapshot.driver.launch:
                self._is_overtaken = True
                return
            self._store.replace(STATUS, bytes_of(snapshot))
            self._is_begun = True
        except StoreError as error:
            _log.warning("%s cannot be written now: %s", STATUS, error)

    def _keep(self) -> None:
        """Write until the launch is over, and then how it ended."""
        waited = 0.0
        while not self._over.is_set():
            is_urgent = self._urgent.wait(_SECONDS_BETWEEN)
            waited += _SECONDS_BETWEEN
            if is_urgent or self._changed.is_set() or waited >= BEAT_SECONDS:
                self._urgent.clear()
                self._changed.clear()
                self.write()
                waited = 0.0
        self.write()


# -- as other processes see a run --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LastWindow:
    """The last window in a ledger."""

    window: int
    committed: datetime


@dataclass(frozen=True, slots=True)
class SeenRun:
    """The last snapshot of a driver, and whether the driver runs."""

    snapshot: RunSnapshot
    presence: Presence
    at: datetime
    last: LastWindow | None = None
    """The last window in the ledger, where it is known: a driver that is killed has often committed more windows than
    its last snapshot names."""

    @classmethod
    def of(cls, store: Store, at: datetime | None = None) -> "SeenRun | None":
        """What is there to see of the application's last launch; None if it wrote no status."""
        snapshot, now = read_status(store), at or datetime.now(UTC)
        return None if snapshot is None else cls(snapshot, presence(snapshot, now), now)

    @property
    def runs(self) -> bool:
        """Whether the driver runs now."""
        return self.presence in ("here", "elsewhere")

    @property
    def window(self) -> int:
        """The last committed window; 0 if there is none."""
        return self.snapshot.window if self.last is None else self.last.window

    @property
    def last_sign(self) -> datetime:
        """When the driver last wrote something."""
        written = self.snapshot.at
        return written if self.last is None else max(written, self.last.committed)

    @property
    def state(self) -> str:
        """The state as users see it: that of the driver, or `killed`, or `silent`."""
        return {"gone": "killed", "silent": "silent"}.get(self.presence, self.snapshot.state)

    @property
    def step(self) -> str:
        """The state with the step of a start: `starting (reading the ledger)`."""
        return f"{self.state} ({self.snapshot.step})" if self.runs and self.snapshot.step else self.state
