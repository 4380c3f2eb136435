"""A run as other processes see it: what its driver last wrote, and whether the driver is still there."""

from dataclasses import dataclass
from datetime import UTC, datetime

from dagkit.engine.reports.driver_process import Presence, presence
from dagkit.engine.reports.snapshot import RunSnapshot
from dagkit.engine.reports.status_file import read_status
from dagkit.ledger.stores import Store


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
