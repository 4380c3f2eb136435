"""The checkpoint of a window: it contains everything that the next window needs."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from pydantic import Field, JsonValue, SkipValidation

from dagkit.engine.files.receipt import Receipt
from dagkit.engine.files.staging import Part
from dagkit.engine.inputs.event_times import EventTimes
from dagkit.engine.program.address import Address
from dagkit.engine.program.facts import Fact
from dagkit.engine.program.stored_value import Group, Grouped, StoredValue
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


class WindowTimes(Group):
    """When a window ran; None in ledgers of versions until November 2026."""

    launched: datetime | None = None
    """When the run began that committed the window."""
    began: datetime | None = None
    reported: datetime | None = None
    """When the driver had the reports of all slots, and the commit began."""


class SuspectWork(Group):
    """Work that may end its worker, and work that could not be processed."""

    search: Search | None = None
    """The search for a record that ends its worker; the suspect work is in the queue, too."""
    aside: tuple[WorkAside, ...] = ()
    """Work that was set aside, and not retried or given up since."""


class OperatorStates(Group):
    """What operators on the workers keep for the next window."""

    state: Mapping[str, tuple[SkipValidation[SavedState], ...]] = {}
    """By operator, then by partition. It is JSON already, and may be large: it is neither checked nor copied."""
    held: tuple[Held, ...] = ()


class WindowOutput(Group):
    """The output files and the receipts of input files: those that are complete, and those that are not."""

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

    A block of which nothing was written when its rest was set aside does not count: a retry may still write its files.
    """

    @property
    def pieces(self) -> Sequence[Part]:
        """The pieces of complete and of incomplete files."""
        return (*self.files, *self.finished)

    @property
    def is_owed(self) -> bool:
        """Whether files or receipts are to be put in place after the commit."""
        return bool(self.finished or self.receipted)

    @property
    def incomplete(self) -> int:
        """How many files are not complete."""
        return len({part.file for part in self.files if not part.is_external})


class InputProgress(Group):
    """How far event time has advanced, and which inputs have ended."""

    event_times: EventTimes = EventTimes()
    """The watermarks of all operators."""
    watermarks: Mapping[str, datetime | None] = {}
    """The watermark of each input, as versions until November 2026 wrote it; `event_times` replaces it."""
    drained: bool = False
    """Whether this window notified operators that no more input is expected for now."""
    ended: tuple[str, ...] = ()
    """Input operators that have ended for ever."""


class Changes(Group):
    """What was changed while the application ran."""

    partitions: Mapping[str, Partitioned] = {}
    """The partitions of operators whose partitions differ from their configuration."""
    altered: tuple[Altered, ...] = ()
    """The values that were set while the application ran, in order; they override the configuration."""
    answered: tuple[str, ...] = ()
    """The requests that took effect with this window."""

    def __bool__(self) -> bool:
        """Whether the plan differs from the one that was launched."""
        return bool(self.partitions or self.altered)


_AS_THEY_ARE: Any = {"queue": True, "operators": {"state"}, "output": {"files", "receipts", "read"}}
"""The fields that are carried from window to window, in their groups. They may be large, so no dump copies them."""


class Checkpoint(StoredValue, Grouped):
    """The checkpoint of one window."""

    format: Literal["dagkit.memory/1"] = MEMORY_FORMAT
    window: int = 0
    """The window of this checkpoint; 0 before the first window."""
    times: WindowTimes = WindowTimes()
    work: Work = Field(default_factory=Work)
    """The work that was read and that is pending: the proof that no byte is lost or read twice."""
    queue: Waiting = Waiting()
    suspects: SuspectWork = SuspectWork()
    operators: OperatorStates = OperatorStates()
    output: WindowOutput = WindowOutput()
    progress: InputProgress = InputProgress()
    facts: tuple[Fact, ...] = ()
    """The decisions since the previous window; the next window does not repeat them."""
    rows: RowAccount = RowAccount()
    """The items that operators and streams passed on in this window."""
    changes: Changes = Changes()

    def for_launch(self, now: datetime) -> "Checkpoint":
        """Return the checkpoint for a launch that begins now."""
        before = self.progress.event_times
        times = before.renewed(now)
        return self if times is before else self.model_copy(update={"event_times": times})

    def as_json(self) -> dict[str, Any]:
        """Return the checkpoint as JSON without its empty fields. The members in CARRIED keep their form in memory."""
        output, times = self.output, self.progress.event_times
        carried = {"state": self.operators.state, "queue": self.queue}
        carried |= {"files": output.files, "receipts": output.receipts, "read": output.read}
        assert tuple(carried) == CARRIED, "these members keep their form"
        data: dict[str, Any] = self.model_dump(mode="json", exclude=_AS_THEY_ARE) | carried
        data["work"] = self.work.as_json()
        data["rows"] = self.rows.model_dump(mode="json", exclude_defaults=True)
        data["event_times"] = times.model_dump(mode="json", exclude_defaults=True)
        return {name: value for name, value in data.items() if value or name in ("format", "window", "work")}
