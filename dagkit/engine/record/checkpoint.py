"""The checkpoint of a window: it contains everything that the next window needs."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from pydantic import Field, JsonValue, SkipValidation

from dagkit.engine.files.receipt import Receipt
from dagkit.engine.files.staging import Part
from dagkit.engine.inputs.event_times import EventTimes
from dagkit.engine.program.address import Address
from dagkit.engine.program.facts import Fact
from dagkit.engine.program.stored_value import StoredValue
from dagkit.engine.record.row_account import RowAccount
from dagkit.engine.record.stored import CARRIED
from dagkit.engine.work.aside import Search, WorkAside
from dagkit.engine.work.waiting import Waiting
from dagkit.engine.worker.instances import SavedState
from dagkit.ledger import Work
from dagkit.plan.model import Keys

MEMORY_FORMAT: Literal["dagkit.memory/1"] = "dagkit.memory/1"


class Held(StoredValue):
    """Items that a delay operator releases in the next window."""

    into: Address
    slot: int
    items: tuple[JsonValue, ...]


class Partitioned(StoredValue):
    """The partitions that an operator was given while the application ran."""

    configured: int
    """The count in the configuration at that time. If the configuration now has another count, that one applies."""
    keys: tuple[Mapping[str, Keys], ...]
    """The keys of each partition, by input."""


class Altered(StoredValue):
    """A property or an attribute that was set while the application ran."""

    operator: str
    name: str
    value: JsonValue
    """The value as it was written; a secret is a reference."""
    configured: JsonValue
    """The value in the configuration at that time. If the configuration now has another value, that one applies."""


class Checkpoint(StoredValue):
    """The checkpoint of one window."""

    format: Literal["dagkit.memory/1"] = MEMORY_FORMAT
    window: int = 0
    """The window of this checkpoint; 0 before the first window."""
    launched: datetime | None = None
    """When the run began that committed the window; None in ledgers of versions until November 2026."""
    began: datetime | None = None
    """When the window began; None in the same ledgers."""
    reported: datetime | None = None
    """When the driver had the reports of all slots, and the commit began; None in ledgers of earlier versions."""
    work: Work = Field(default_factory=Work)
    """The work that was read and that is pending: the proof that no byte is lost or read twice."""
    queue: Waiting = Waiting()
    search: Search | None = None
    """The search for a record that ends its worker; the suspect work is in the queue, too."""
    aside: tuple[WorkAside, ...] = ()
    """Work that was set aside, and not retried or given up since."""
    state: Mapping[str, tuple[SkipValidation[SavedState], ...]] = {}
    """By operator, then by partition. It is JSON already, and may be large: it is neither checked nor copied."""
    held: tuple[Held, ...] = ()
    files: tuple[Part, ...] = ()
    """Pieces of files that are not complete yet."""
    finished: tuple[Part, ...] = ()
    """Pieces of the files that this window completed; they are put in place after the commit."""
    receipts: tuple[Receipt, ...] = ()
    """The receipts of files that are not committed whole, or whose output is not complete."""
    receipted: tuple[Receipt, ...] = ()
    """The receipts that are due with this window; they are written after its files are in place."""
    read: tuple[tuple[int, int], ...] = ()
    """The numbers of the blocks that were read to their end, as half-open ranges: their files are complete.

    A block of which nothing was written when its rest was set aside is none: a retry may still write its files.
    """
    event_times: EventTimes = EventTimes()
    """The watermarks of all operators."""
    watermarks: Mapping[str, datetime | None] = {}
    """The watermark of each input, as versions until November 2026 wrote it; `event_times` replaces it."""
    drained: bool = False
    """Whether this window notified operators that no more input is expected for now."""
    ended: tuple[str, ...] = ()
    """Input operators that have ended for ever."""
    facts: tuple[Fact, ...] = ()
    """The decisions since the previous window; the next window does not repeat them."""
    rows: RowAccount = RowAccount()
    """The items that operators and streams passed on in this window."""
    partitions: Mapping[str, Partitioned] = {}
    """The partitions of operators whose partitions differ from their configuration."""
    altered: tuple[Altered, ...] = ()
    """The values that were set while the application ran, in order; they override the configuration."""
    answered: tuple[str, ...] = ()
    """The requests that took effect with this window."""

    def for_launch(self, now: datetime) -> "Checkpoint":
        """Return the checkpoint for a launch that begins now."""
        times = self.event_times.renewed(now)
        return self if times is self.event_times else self.model_copy(update={"event_times": times})

    def as_json(self) -> dict[str, Any]:
        """Return the checkpoint as JSON without its empty fields. The members in CARRIED keep their form in memory."""
        data: dict[str, Any] = self.model_dump(mode="json", exclude=set(CARRIED))
        data |= {name: getattr(self, name) for name in CARRIED}
        data["work"] = self.work.as_json()
        data["rows"] = self.rows.model_dump(mode="json", exclude_defaults=True)
        data["event_times"] = self.event_times.model_dump(mode="json", exclude_defaults=True)
        return {name: value for name, value in data.items() if value or name in ("format", "window", "work")}
