"""The snapshot of a run as a file in the application's folder, for other processes: `PATH/status.json`.

The driver replaces the file at each change of state, otherwise at most once a second, and at least every five seconds.
Its last content is the state in which the run ended, unless its storage does not answer then. The file also keeps a
second driver from starting by mistake; what decides between two drivers is the ledger.
"""

import getpass
import logging
import os
import secrets
import shlex
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from dagkit.engine.record.run_events import Draining, Ended, Failed, Resumed, RunEvent, Starting
from dagkit.engine.record.run_picture import RunPicture
from dagkit.engine.record.snapshot import DriverProcess, DriverState, Launch, RunSnapshot, T, bytes_of, document_in
from dagkit.errors import RunFailure
from dagkit.ledger import StoreError
from dagkit.ledger.stores import KeyMissing, KeyTaken, Store

BEAT_SECONDS = 5.0
"""The longest time between two writes of a driver."""
RECENT = timedelta(seconds=4 * BEAT_SECONDS)
"""A driver on another host runs if it wrote within this time, by the clocks of both hosts."""

Presence = Literal["over", "here", "gone", "elsewhere", "silent"]
"""A launch is over; its process runs on this host, or is gone; it writes from another host, or has fallen silent."""


def this_process() -> DriverProcess:
    """The identity of this process, with the ID of a new launch."""
    pid = os.getpid()
    return DriverProcess(
        launch=secrets.token_hex(8), host=socket.gethostname(), pid=pid, began=_began(pid) or "", user=_user()
    )


def presence(snapshot: RunSnapshot, now: datetime) -> Presence:
    """Whether the driver of a snapshot runs."""
    if snapshot.status.is_over:
        return "over"
    driver = snapshot.launch.driver
    if driver.host == socket.gethostname():
        return "here" if _began(driver.pid) == driver.began else "gone"
    return "elsewhere" if abs(now - snapshot.status.at) <= RECENT else "silent"


def _began(pid: int) -> str | None:
    """When a process began, as the system counts it; None if there is none, or only its exit code is left."""
    try:
        # The fields after the name: the name of a process may hold spaces and parentheses. A number alone does not
        # identify a process, since the system gives it to another one later; the 22nd field is the time at which it
        # began.
        after_name = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except FileNotFoundError:
        return None if Path("/proc/self/stat").exists() else _began_by_ps(pid)
    except OSError:  # it ended while its file was read
        return None
    state, began = after_name[0], after_name[19]
    return None if state in "ZX" else began


def _began_by_ps(pid: int) -> str | None:
    """As `_began`, on systems without `/proc`."""
    listed = subprocess.run(  # noqa: S603 - a number
        ["/bin/ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    state, _, began = listed.stdout.strip().partition(" ")
    return None if not state or state.startswith("Z") else began.strip()


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container whose user has no name
        return str(os.getuid())


STATUS = "status.json"
_SECONDS_BETWEEN = 1.0
"""The shortest time between two writes without a change of state."""

_log = logging.getLogger(__name__)


def _driver_runs(running: RunSnapshot) -> RunFailure:
    """Another driver runs the application now."""
    launch = running.launch
    driver = launch.driver
    return RunFailure(
        f"{launch.application} is already running: process {driver.pid} of {driver.user} on {driver.host}, "
        f"since {launch.since.astimezone():%Y-%m-%d %H:%M:%S}",
        f"stop it with `dagkit stop {shlex.quote(launch.application_path)}`; only if that process or its machine "
        "is gone, launch with --take-over",
        code="driver-runs",
    )


def read_status(store: Store) -> RunSnapshot | None:
    """The last snapshot of an application's driver; None if there is none that this dagkit can read."""
    return stored_document(store, STATUS, RunSnapshot)


def stored_document(store: Store, key: str, kind: type[T]) -> T | None:
    """The document of an application's folder; None if there is none that this dagkit can read."""
    try:
        return document_in(store.get(key), kind)
    except KeyMissing:
        return None
    except ValueError as error:
        _log.warning("%s cannot be read: %s", key, error)
        return None


def refuse_second(store: Store, now: datetime, own: str = "") -> None:
    """Raise `driver-runs` if another driver runs the application than the one of the launch `own`."""
    there = read_status(store)
    if there is not None and there.launch.id != own and presence(there, now) in ("here", "elsewhere"):
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
        # a daemon: storage that does not answer must not keep the process from ending
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
            # a launch with --take-over may have begun since, whose status this driver must not replace
            there = read_status(self._store) if self._is_begun else None
            if there is not None and there.launch.id != snapshot.launch.id:
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
        """The application's last launch; None if it wrote no status."""
        snapshot, now = read_status(store), at or datetime.now(UTC)
        return None if snapshot is None else cls(snapshot, presence(snapshot, now), now)

    @property
    def launch(self) -> Launch:
        return self.snapshot.launch

    @property
    def _status(self) -> DriverState:
        return self.snapshot.status

    @property
    def runs(self) -> bool:
        """Whether the driver runs now."""
        return self.presence in ("here", "elsewhere")

    @property
    def window(self) -> int:
        """The last committed window; 0 if there is none."""
        windows = self.snapshot.windows
        return windows.window if self.last is None else self.last.window

    @property
    def last_sign(self) -> datetime:
        """When the driver last wrote something."""
        written = self._status.at
        return written if self.last is None else max(written, self.last.committed)

    @property
    def state(self) -> str:
        """The state as users see it: that of the driver, or `killed`, or `silent`."""
        return {"gone": "killed", "silent": "silent"}.get(self.presence, self._status.state)

    @property
    def step(self) -> str:
        """The state with the step of a start: `starting (reading the ledger)`."""
        step = self._status.step
        return f"{self.state} ({step})" if self.runs and step else self.state


RUNNING = "running.json"
_RESERVED = 32 * 1024
"""The size of this object. A run that ends removes it, so that a full disk has room for how it ended."""


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
            self._store.create(RUNNING, b"{}".ljust(_RESERVED) + b"\n")
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
            _log.warning("%s cannot be removed now: %s", RUNNING, error)
