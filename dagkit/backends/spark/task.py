"""The task: what one slot of one level does inside a Spark job."""

import pickle
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dagkit.backends.spark.frames import Frames
from dagkit.backends.spark.rows import DRIVER, End, Kind, Row, rows_in
from dagkit.backends.spark.sending import Sending
from dagkit.backends.spark.shipping import Shipped
from dagkit.backends.spark.worker import at_work, hold_memory, settle
from dagkit.engine.program.program import Program
from dagkit.engine.work.item import WorkItem
from dagkit.engine.worker.protocol import Report, SlotState, WindowTask
from dagkit.engine.worker.slot import SlotRun
from dagkit.errors import DagkitError
from dagkit.schema.batch import Batch

if TYPE_CHECKING:
    from pyspark import Broadcast


@dataclass(frozen=True, slots=True)
class Given:
    """What the driver gives one slot for one window."""

    state: SlotState = field(default_factory=dict)
    rows: tuple[bytes, ...] = ()
    """Frames of what arrives from the driver."""
    work: tuple[WorkItem, ...] = ()


@dataclass(frozen=True, slots=True)
class SlotReport:
    """What a slot reports to the driver when its window is over."""

    report: Report
    attempt: bytes
    """Which attempt it was."""
    senders: Mapping[int, bytes]
    """From which attempt at each slot of the level above it received."""


@dataclass(frozen=True, slots=True)
class TaskFailed:
    """What a task failed with, and where."""

    level: int
    slot: int
    error: DagkitError


class _FailedAbove(Exception):
    """A task above failed: nothing that this one does counts."""


@dataclass(frozen=True, slots=True)
class LevelTask:
    """All tasks of one level in one window: each finds its slot in what it is sent."""

    shipped: Shipped
    level: int
    window: WindowTask
    """What holds for all slots; what arrives and what is kept is given to each."""
    given: Mapping[int, bytes]
    """What each slot is given, where it does not come as a row."""
    given_by_row: bool = False

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with at_work():
            hold_memory()
            program, known = self.shipped.unpacked()
            yield from _Task(self, program, Frames(known, program.targets), iter(batches)).run()
            settle(self.shipped.digest)


@dataclass(frozen=True, slots=True)
class BroadcastTask:
    """A task that comes to its workers as a broadcast, since it is too large for a closure."""

    task: "Broadcast[LevelTask]"

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self.task.value(batches)


class _Task:
    """One task at work."""

    def __init__(self, task: LevelTask, program: Program, frames: Frames, batches: Iterator[pa.RecordBatch]) -> None:
        self.task = task
        self.level = task.level
        self.program = program
        self.frames = frames
        self.is_last = task.level == program.levels - 1
        self.ends: dict[int, End] = {}
        self.received = 0
        self.failed = False
        self.slot, self.given, self.rows = self._begin(batches)
        self.sending = Sending(frames, self.slot, 1 if self.is_last else program.slots_at(task.level + 1))

    def run(self) -> Iterator[pa.RecordBatch]:
        try:
            run = SlotRun(self.program, self.level, self.slot, self.task.window, self.given.state, work=self.given.work)
            run.outbox.keep = self.sending.keep
            for _ in run.run(self._arriving()):
                yield from self.sending.ready()
            self._check_ends()
            self._send(Kind.REPORT, SlotReport(run.report(), self.sending.attempt, self._senders()))
        except _FailedAbove:
            self.failed = True
        except DagkitError as error:
            self.failed = True
            self._send(Kind.FAILURE, TaskFailed(self.level, self.slot, error))
        if self.failed:  # reports of other slots still pass
            for _ in self._items():
                yield from self.sending.ready()
        yield from self.sending.rest(failed=self.failed)
        if not self.is_last:
            yield self.sending.ends(self.level + 1, failed=self.failed)

    def _begin(self, batches: Iterator[pa.RecordBatch]) -> tuple[int, Given, Iterator[Row]]:
        """The slot, what it is given, and the rows that follow."""
        if self.level == 0 and not self.task.given_by_row:
            (slot,) = (one for batch in batches for one in batch.column(0).to_pylist())
            return slot, _read_given(self.task.given.get(slot)), iter(())
        rows = self._of_one_slot(batches)
        first = next(rows)
        if self.task.given_by_row:
            assert first.kind is Kind.GIVEN, "what a slot is given comes first"
            return first.to, _read_given(first.payload), rows
        slot = self.slot
        return slot, _read_given(self.task.given.get(slot)), _chained(first, rows)

    def _of_one_slot(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Row]:
        known = None
        for batch in batches:
            for slot, row in zip(batch.column("slot").to_pylist(), rows_in(batch), strict=True):
                assert known in (None, slot), "the rows of two slots do not meet in one partition"
                known = self.slot = slot
                yield row

    def _arriving(self) -> Iterator[tuple[int, Batch[Any]] | None]:
        """What the driver sends, and what comes from the levels above."""
        for payload in self.given.rows:
            yield from self.frames.read(pa.py_buffer(payload))
        for row in self._items():
            if self.failed:
                raise _FailedAbove
            if row is None:
                yield None
            else:
                yield from self.frames.read(row.payload)
        if self.failed:
            raise _FailedAbove

    def _items(self) -> Iterator[Row | None]:
        """The rows for this slot; what is for a later level, or for the driver, passes on, and none stands for it."""
        for row in self.rows:
            if row.kind is Kind.END:
                end = End.of(row.payload)
                assert end.sender not in self.ends, "every task ends once"
                self.ends[end.sender] = end
                self.failed |= end.failed
                continue
            self.received += 1
            if row.level == self.level:
                yield row
            elif row.level == DRIVER or not self.failed:
                self.sending.add(row)
                yield None

    def _check_ends(self) -> None:
        if self.level:
            assert self._all_ended(), f"slot {self.slot} of level {self.level} heard from every slot above"
            sent = sum(end.rows for end in self.ends.values())
            assert sent == self.received, f"{self.received} of {sent} rows came to slot {self.slot} of {self.level}"

    def _all_ended(self) -> bool:
        return set(self.ends) == set(range(self.program.slots_at(self.level - 1)))

    def _senders(self) -> Mapping[int, bytes]:
        return {sender: end.attempt for sender, end in self.ends.items()}

    def _send(self, kind: Kind, message: SlotReport | TaskFailed) -> None:
        self.sending.add(Row(DRIVER, self.slot, kind, pickle.dumps(message)))


def _read_given(data: bytes | pa.Buffer | None) -> Given:
    if data is None:
        return Given()
    given: Given = pickle.loads(data)  # noqa: S301 - written by our own driver
    return given


def _chained(first: Row, rows: Iterator[Row]) -> Iterator[Row]:
    yield first
    yield from rows
