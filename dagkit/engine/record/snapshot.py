"""The present picture of a run as plain data, with a JSON form that other processes read."""

import json
from collections.abc import Container, Mapping, Sequence
from datetime import datetime
from itertools import chain
from math import inf
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict

from dagkit.api.stats import WorkProgress, by_unit
from dagkit.engine.program.stored_value import Group, Grouped
from dagkit.engine.record.pace import TimeLeft
from dagkit.engine.record.run_events import Measured, SlotAtWork, Started, Working
from dagkit.ground.amounts import BYTE

State = Literal["starting", "running", "draining", "stopped", "failed", "restarted"]
"""A driver writes one of these, and `dagkit restart` the last. `draining` waits for the windows in flight; `stopped`,
`failed` and `restarted` are final."""

LEAST_BUSY = 0.05
"""The least share of the time by which an operator is called the busiest."""
_LONG_MILLIS = 20_000.0
"""A window that takes less time is not overdue."""
_UNUSUAL = 3
"""A window is overdue after so many times its time."""
_SLOW_MILLIS, _SLOW_TIMES = 5000.0, 20
"""A window is also overdue after this time, besides the one it was to last, and so many times that of other windows."""
MOST_REJECTED = 10
"""How many samples of rejected records an operator keeps."""
MOST_PARTITIONS = 10
"""How many partitions of an operator are shown."""
FINAL: tuple[State, ...] = ("stopped", "failed", "restarted")


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")  # a later dagkit may write more


class DriverProcess(_Part):
    """The process that runs the application, and its launch."""

    launch: str
    """A random ID: one process may launch several times."""
    host: str
    pid: int
    began: str
    """When the process began, as its system counts time; distinguishes it from a later one with the same number."""
    user: str


class RunningWindow(_Part):
    """A window in flight."""

    window: int
    elements: int
    since: datetime
    lasts_millis: float | None = None
    """How long slots may begin new work; None: until there is no more."""
    amounts: Mapping[str, int] = {}
    """The positions of its work, by their unit."""
    done: Mapping[str, int] = {}
    """How many of them slots have processed, as they last reported, by unit."""
    shares: Mapping[str, float] = {}
    """The share of each operator in the time of its slots so far, 0 to 1, without small ones; empty if unknown."""

    def is_overdue(self, millis: float) -> bool:
        """Whether it is overdue after this time, however long other windows took."""
        return millis > max(_LONG_MILLIS, _UNUSUAL * (self.lasts_millis or inf))


class PendingInput(_Part):
    """The pending work of one input."""

    port: str
    elements: int
    positions: int


class RejectedRecord(_Part):
    """A sample of what an operator rejected."""

    window: int
    place: str
    """Where it was read, in words; empty if that is unknown."""
    record: str
    """The record, shortened, with the reason if it names one."""


class PartitionShare(_Part):
    """How much of an operator's work one of its partitions did, averaged over the last ten seconds."""

    partition: int
    busy: float
    """Its share of the busy time of all partitions, 0 to 1."""
    taken: float
    """Its share of the positions that they read, or of the items that they received, 0 to 1."""


class InputActivity(_Part):
    """When an input operator last had something for the run."""

    operator: str
    at: datetime | None = None
    """When it found something, or a window read of what it had found; None if nothing came in this launch."""
    longest_pause_seconds: float = 0.0
    """The longest time between two such moments in this launch."""
    unsent: int = 0
    """How many elements, such as files, it has found and not sent yet."""

    def active(self, at: datetime) -> "InputActivity":
        """Return this after the operator had something for the run at a time."""
        before = self.at or at
        longest = max(self.longest_pause_seconds, (at - before).total_seconds())
        return self.model_copy(update={"at": max(at, before), "longest_pause_seconds": longest})


class Rejections(Group):
    """What an operator rejects lately."""

    rejects_since: datetime | None = None
    """When the first window that rejected something was committed."""
    rejected_share: float = 0.0
    """The share of what it received, or of what it sent if that is more, that it rejected lately, 0 to 1."""
    rejected_records: tuple[RejectedRecord, ...] = ()
    """What it rejected last, or some of it: at most ten records. `left_out` has the number of all."""

    def after(self, window: Measured, share: float | None, operator: str) -> "Rejections":
        """Return these after a window; `share` is None if the operator received and sent nothing lately."""
        records = [
            RejectedRecord(window=window.window_id, place=sample.place, record=sample.item)
            for sample in window.rejected
            if sample.operator == operator
        ]
        return Rejections(
            rejects_since=self.rejects_since or (window.committed if share else None),
            rejected_share=self.rejected_share if share is None else share,
            rejected_records=(*self.rejected_records, *records)[-MOST_REJECTED:],
        )


class Rates(Group):
    """How fast and how busy an operator is: averages over the last ten seconds."""

    received_per_second: float = 0.0
    sent_per_second: float = 0.0
    positions_per_second: float = 0.0
    busy: float = 0.0
    """The share of the time for which its slots worked for it, 0 to 1. Fused operators divide that of their slots."""
    skew: float | None = None
    """The busy time of its busiest partition, divided by the mean; None if it has one partition, or did not work."""
    by_partition: tuple[PartitionShare, ...] = ()
    """The shares of its partitions: at most ten, the busiest first. Empty if it has one partition."""

    @property
    def is_notable(self) -> bool:
        """Whether it works for so much of the time that it may be called the busiest."""
        return self.busy >= LEAST_BUSY

    def divided(self, shares: Sequence[PartitionShare]) -> "Rates":
        """Return these with the shares of partitions. Those of an operator that hardly works are chance."""
        skew = shares[0].busy * len(shares) if self.is_notable else 0.0
        return self.model_copy(update={"skew": skew, "by_partition": tuple(shares[:MOST_PARTITIONS])}) if skew else self


class OperatorBacklog(Group):
    """The elements of an operator: those that it began, and those that it still has to do."""

    elements_begun: int = 0
    pending: tuple[PendingInput, ...] = ()
    underway: tuple[WorkProgress, ...] = ()
    """Elements that were begun and not finished by the last window: at most ten, the least complete first."""
    eta_seconds: float | None = None
    """The time that its pending work takes at the present rate; None as for the whole backlog."""

    @property
    def elements(self) -> int:
        return sum(each.elements for each in self.pending)

    @property
    def positions(self) -> int:
        return sum(each.positions for each in self.pending)


class OperatorFigures(_Part, Grouped):
    """The figures of one operator. Totals are those of this launch."""

    name: str
    stage: str
    partitions: int
    wanted: int
    """The partitions of the last decision."""
    received: int = 0
    sent: int = 0
    rejections: Rejections = Rejections()
    positions: int = 0
    """How many positions were read, in `unit`."""
    unit: str = BYTE
    """The noun for one position, in which `pending` counts, too."""
    reads: bool = True
    """Whether its positions are read, or only divided for other operators."""
    rates: Rates = Rates()
    backlog: OperatorBacklog = OperatorBacklog()


class StageFigures(_Part):
    """Operators that run as one."""

    name: str
    operators: tuple[str, ...]
    level: int


class RunTotals(_Part):
    """Totals of this launch."""

    windows: int = 0
    positions: int = 0
    written: int = 0
    """Bytes."""
    files: int = 0
    """Files that were completed."""
    completed: int = 0
    """The bytes that these files hold, which earlier launches may have written."""
    elements_found: int = 0
    items_found: int = 0


class RunError(_Part):
    """The last failure."""

    at: datetime
    operator: str | None = None
    window: int | None = None
    code: str | None = None
    message: str
    raised_at: str = ""
    """The author's file and line that raised it; empty if that is unknown."""
    help: str = ""
    """The remedy; empty if that is unknown."""
    again: bool
    """Whether the window ran again."""


class Launch(Group):
    """The launched application, its folder, and the process that runs it."""

    application: str
    application_path: str
    version: str
    driver: DriverProcess
    master: str
    """`reference`, or the master of Spark."""
    command: str = ""
    """The command line that launches it again, with masks for secrets; empty if a program launched it."""
    until: str
    since: datetime
    """When the launch began."""

    @property
    def id(self) -> str:
        """A random ID: one process may launch several times."""
        return self.driver.launch


class DriverState(Group):
    """The state of the driver."""

    at: datetime
    """When the driver wrote this: its heartbeat."""
    state: State = "starting"
    step: str = ""
    """The present step of the start; empty afterwards."""
    spark_page: str | None = None
    """The URL of Spark's own page about the application, if there is one."""

    @property
    def is_over(self) -> bool:
        """Whether the driver wrote that it ended."""
        return self.state in FINAL


class Windows(Group):
    """The last committed window, and those in flight."""

    resumed_after: int = 0
    window: int = 0
    """The last committed window."""
    block: int | None = None
    """The number of its block in the application's chain of the ledger."""
    committed_at: datetime | None = None
    in_flight: tuple[RunningWindow, ...] = ()
    working: tuple[SlotAtWork, ...] = ()
    """The elements that slots process in these windows: at most ten, those that take longest first."""
    usual_millis: float | None = None
    """The median time of the last windows of this launch; None if they are few."""
    slow_millis: float | None = None
    """The time of the last committed window, if it took much longer than was usual."""

    def is_quiet(self, since: datetime) -> bool:
        """Whether no window is in flight, and the last one was committed before a time."""
        return not self.in_flight and self.committed_at is not None and self.committed_at <= since

    def is_slow(self, window: RunningWindow, millis: float) -> bool:
        """Whether a time is much longer than a window was to last, and than others took."""
        least = _SLOW_MILLIS + (window.lasts_millis or 0.0)
        return self.usual_millis is not None and millis > max(least, _SLOW_TIMES * self.usual_millis)

    def overdue(self, at: datetime) -> RunningWindow | None:
        """The window that runs for so long that rates and estimates, which are those of the windows before, mislead."""
        millis = ((window, (at - window.since).total_seconds() * 1000) for window in self.in_flight)
        return next((window for window, ran in millis if window.is_overdue(ran) or self.is_slow(window, ran)), None)

    def stopped(self) -> "Windows":
        """Return these when no window is in flight any more."""
        return self.model_copy(update={"in_flight": (), "working": ()})

    def without_work(self, window_id: int) -> "Windows":
        """Return these without what slots process in a window."""
        working = tuple(work for work in self.working if work.window_id != window_id)
        return self.model_copy(update={"working": working})

    def without(self, window_id: int) -> "Windows":
        """Return these when a window is not in flight any more."""
        in_flight = tuple(window for window in self.in_flight if window.window != window_id)
        return self.without_work(window_id).model_copy(update={"in_flight": in_flight})

    def begun(self, started: Started, now: datetime) -> "Windows":
        """Return these with another window in flight."""
        window = RunningWindow(
            window=started.window_id,
            elements=started.blocks,
            since=now,
            lasts_millis=started.lasts_millis,
            amounts=started.amounts,
        )
        others = tuple(other for other in self.in_flight if other.window != window.window)
        return self.model_copy(update={"in_flight": (*others, window)})

    def at_work(self, working: Working) -> "Windows":
        """Return these with what slots process, and have done of the work with which each window began.

        They may do more, which is found in the window.
        """
        in_flight = []
        for window in self.in_flight:
            now = working.done.get(window.window, {})
            done = {unit: min(now.get(unit, window.done.get(unit, 0)), all_) for unit, all_ in window.amounts.items()}
            shares = working.shares.get(window.window, {}) or window.shares
            in_flight.append(window.model_copy(update={"done": done, "shares": shares}))
        return self.model_copy(update={"working": tuple(working.work), "in_flight": tuple(in_flight)})

    @property
    def amounts(self) -> Mapping[str, int]:
        """The positions of their work, by unit."""
        return by_unit(chain.from_iterable(window.amounts.items() for window in self.in_flight))

    @property
    def done(self) -> Mapping[str, int]:
        """How many of them slots have processed so far, by unit."""
        return by_unit(chain.from_iterable(window.done.items() for window in self.in_flight))


class Backlog(Group):
    """The pending work, and how long it takes."""

    pending_elements: int = 0
    pending_positions: int = 0
    positions_per_second: float = 0.0
    queued: Mapping[str, int] = {}
    """The positions that wait and that no window in flight has taken, by their unit."""
    set_aside: int = 0
    """How many records, and elements that could not be read, are set aside."""
    last_aside: str = ""
    """The last of them, with the reason."""
    eta_seconds: float | None = None
    """The time that all pending work takes at the speed of the last half minute; None if there is none, no speed, or a
    window that lasts much longer than it was to: its speed is not known until it ends."""
    eta_least_seconds: float | None = None
    """The same at the fastest, and at the slowest, of three speeds: lately, usually, and of the whole launch."""
    eta_most_seconds: float | None = None
    grows_since: datetime | None = None
    """Since when more waits whenever an input has found something, now twice as much or more; None if it does not."""

    def found(self, amounts: Mapping[str, int]) -> "Backlog":
        """Return this with work that an input operator found."""
        return self.model_copy(update={"queued": by_unit((*self.queued.items(), *amounts.items()))})

    def taken(self, amounts: Mapping[str, int]) -> "Backlog":
        """Return this without the work that a window takes."""
        queued = {unit: max(0, count - amounts.get(unit, 0)) for unit, count in self.queued.items()}
        return self.model_copy(update={"queued": queued})

    def estimated(self, left: TimeLeft | None, per_second: float) -> "Backlog":
        """Return this with an estimate."""
        return self.model_copy(
            update={
                "positions_per_second": per_second,
                "eta_seconds": left and left.seconds,
                "eta_least_seconds": left and left.least,
                "eta_most_seconds": left and left.most,
            }
        )


class Expected(Group):
    """What the run waits for: new input, the end of files, and servers."""

    inputs: tuple[InputActivity, ...] = ()
    visible_at: datetime | None = None
    """When the next incomplete output file becomes visible, if a limit of time applies to any."""
    waits_for: tuple[str, ...] = ()
    """The servers that do not answer the driver's process, first those away for longest; and the input that is there
    and not read yet, such as files that are still being written. Each in a sentence."""

    def active(self, names: Container[str], at: datetime) -> "Expected":
        """Return this after these input operators had something for the run."""
        inputs = tuple(each.active(at) if each.operator in names else each for each in self.inputs)
        return self.model_copy(update={"inputs": inputs})

    def with_unsent(self, name: str, count: int) -> "Expected":
        """Return this while this input operator has found so many elements that it has not sent."""
        inputs = (each.model_copy(update={"unsent": count}) if each.operator == name else each for each in self.inputs)
        return self.model_copy(update={"inputs": tuple(inputs)})


class OperatorMetrics(Group):
    """The metrics of operators, by operator."""

    user_metrics: Mapping[str, Mapping[str, float | int | str | None]] = {}
    """The metrics that operators declare; only those that are numbers or texts."""
    left_out: Mapping[str, Mapping[str, int]] = {}
    """What operators rejected or left out in this launch, by metric or output; without zeros."""
    read_again: Mapping[str, Mapping[str, int]] = {}
    """What operators read before and read again as a whole, such as files that have grown, by metric."""


class RunSnapshot(_Part, Grouped):
    """The picture of one launch at one time."""

    format: Literal["dagkit.status/1"] = "dagkit.status/1"
    launch: Launch
    status: DriverState
    windows: Windows = Windows()
    stages: tuple[StageFigures, ...] = ()
    operators: tuple[OperatorFigures, ...] = ()
    totals: RunTotals = RunTotals()
    backlog: Backlog = Backlog()
    expected: Expected = Expected()
    metrics: OperatorMetrics = OperatorMetrics()
    error: RunError | None = None

    @property
    def read(self) -> Mapping[str, int]:
        """The positions that this launch read, by their unit."""
        return by_unit((each.unit, each.positions) for each in self.operators)

    @property
    def busiest(self) -> OperatorFigures | None:
        """The operator for which its slots work the largest share of the time; None if none works notably."""
        operator = max(self.operators, key=lambda each: each.rates.busy, default=None)
        return operator if operator is not None and operator.rates.is_notable else None

    @property
    def read_per_second(self) -> Mapping[str, float]:
        return by_unit((each.unit, each.rates.positions_per_second) for each in self.operators)

    @property
    def done(self) -> Mapping[str, int]:
        """The positions that this launch has read, with those of windows in flight, by their unit."""
        windows = self.windows
        return by_unit((*self.read.items(), *windows.done.items()))

    @property
    def to_do(self) -> Mapping[str, int]:
        """The positions that wait, with those of windows in flight, by their unit."""
        backlog, windows = self.backlog, self.windows
        return by_unit((*backlog.queued.items(), *windows.amounts.items()))

    @property
    def unsent(self) -> int:
        """How many elements input operators have found and not sent yet: how much work they are is unknown."""
        return sum(each.unsent for each in self.expected.inputs)

    @property
    def pending(self) -> Mapping[str, int]:
        """The positions that wait, by their unit."""
        return by_unit((each.unit, one.positions) for each in self.operators for one in each.backlog.pending)


# -- documents in the folder of an application, in ASCII: they may hold names that are not valid UTF-8 -----------------

T = TypeVar("T", bound=BaseModel)


def bytes_of(document: BaseModel) -> bytes:
    """The content of the file that holds a document."""
    return (json.dumps(document.model_dump(mode="json"), separators=(",", ":")) + "\n").encode()


def document_in(content: bytes, kind: type[T]) -> T:
    """The document that a file with this content holds. Raise ValueError if it holds none of this kind."""
    try:
        return kind.model_validate(json.loads(content))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
