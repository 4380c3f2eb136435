"""The Spark task: it runs one slot of one level, in a query or, on one machine, in a job without Spark SQL."""

import pickle
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa

from dagkit.backends.spark.shipping.frames import Frames
from dagkit.backends.spark.shipping.kept_state import Kept, SentState, changed_in, received
from dagkit.backends.spark.shipping.level_files import LevelFiles, read_rows, write_rows
from dagkit.backends.spark.shipping.rows import DRIVER, End, Kind, Row, rows_in
from dagkit.backends.spark.shipping.sending import Sending
from dagkit.backends.spark.shipping.shipping import Shipped
from dagkit.backends.spark.window.worker import at_work, hold_memory, settle
from dagkit.engine.program.differences import Change
from dagkit.engine.program.program import Program
from dagkit.engine.work.item import WorkItem
from dagkit.engine.worker.outbox import Arrived
from dagkit.engine.worker.protocol import Report, SlotState, WindowTask
from dagkit.engine.worker.slot import SlotRun
from dagkit.errors import DagkitError

if TYPE_CHECKING:
    from pyspark import Broadcast


@dataclass(frozen=True, slots=True)
class SlotInput:
    """What one slot gets from the driver for one window."""

    state: SentState = field(default_factory=dict)
    rows: tuple[bytes, ...] = ()
    """Frames of the items from the driver."""
    work: tuple[WorkItem, ...] = ()


@dataclass(frozen=True, slots=True)
class SlotReport:
    """The report of a slot to the driver at the end of its window."""

    report: Report
    """The report; its state is empty."""
    state: Change | None
    """The change of the slot's state; None if it did not change."""
    attempt: bytes
    """The attempt at the task."""
    senders: Mapping[int, bytes]
    """The attempt from which it received, for each slot of the level above."""


@dataclass(frozen=True, slots=True)
class TaskFailed:
    """The error of a task, with its level and slot."""

    level: int
    slot: int
    error: DagkitError


class _FailedAbove(Exception):
    """A task of a level above failed, so the output of this task is discarded."""


@dataclass(frozen=True, slots=True)
class LevelTask:
    """The tasks of one level in one window. Spark calls it for each slot, which it finds in the rows that it gets."""

    shipped: Shipped
    level: int
    window: WindowTask
    """The part of the window's task that all slots share. The rest is in `inputs`."""
    inputs: Mapping[int, bytes]
    """The pickled `SlotInput` of each slot; empty if it comes as a row."""
    input_by_row: bool = False
    kept: Kept = field(default_factory=dict)
    """The parts of large state that workers keep."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with at_work():
            hold_memory()
            program, known = self.shipped.unpacked()
            attempt = self.window.attempt
            program = program.placing(attempt.locates)
            yield from _Task(self, program, Frames(known, program.targets), iter(batches)).run()
            # At the end of the first task, when its operators have imported what they use.
            settle(self.shipped.digest)


@dataclass(frozen=True, slots=True)
class BroadcastTask:
    """A task that workers read from a broadcast, because it is too large for a closure."""

    task: "Broadcast[LevelTask]"
    kept: Kept = field(default_factory=dict)
    """That of the task. A broadcast does not hold others."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return replace(self.task.value, kept=self.kept)(batches)


class _Task:
    """One slot while it runs."""

    def __init__(self, task: LevelTask, program: Program, frames: Frames, batches: Iterator[pa.RecordBatch]) -> None:
        self.task = task
        self.program = program
        self.frames = frames
        self.ends: dict[int, End] = {}
        self.received = 0
        self.failed = False
        self.slot, self.input, self.rows = self._begin(batches)
        self.state: SlotState = received(self.input.state, task.kept)
        self.sending = Sending(frames, self.slot, 1 if self.is_last else program.slots_at(task.level + 1))

    @property
    def level(self) -> int:
        return self.task.level

    @property
    def is_last(self) -> bool:
        return self.level == self.program.levels - 1

    def run(self) -> Iterator[pa.RecordBatch]:
        try:
            run = SlotRun(self.program, self.level, self.slot, self.task.window, self.state, work=self.input.work)
            run.outbox.keep = self.sending.keep
            for _ in run.run(self._arriving()):
                yield from self.sending.ready()
            self._check_ends()
            self._send(Kind.REPORT, self._slot_report(run.report()))
        except _FailedAbove:
            self.failed = True
        except DagkitError as error:
            # As a row: Spark would run a task that raises four times.
            self.failed = True
            self._send(Kind.FAILURE, TaskFailed(self.level, self.slot, error))
        # Reports of other slots still pass through this task, and a task that leaves input unread loses its worker.
        if self.failed:
            for _ in self._items():
                yield from self.sending.ready()
        yield from self.sending.rest(failed=self.failed)
        if not self.is_last:
            yield self.sending.ends(self.level + 1, failed=self.failed)

    def _slot_report(self, report: Report) -> SlotReport:
        change = changed_in(self.state, report.state)
        return SlotReport(replace(report, state={}), change, self.sending.attempt, self._senders())

    def _begin(self, batches: Iterator[pa.RecordBatch]) -> tuple[int, SlotInput, Iterator[Row]]:
        """The slot, its input, and the rows that follow."""
        inputs = self.task.inputs
        if self.level == 0 and not self.task.input_by_row:
            (slot,) = (number for batch in batches for number in batch.column(0).to_pylist())
            return slot, _read_input(inputs.get(slot)), iter(())
        rows = _rows_with_slots(batches)
        # Each task gets at least one row: its input, or the last row of a task above.
        slot, first = next(rows)
        if self.task.input_by_row:
            assert first.kind is Kind.INPUT, "the row with the input of a slot comes first"
            return slot, _read_input(first.payload), _rows_of(slot, rows)
        return slot, _read_input(inputs.get(slot)), chain([first], _rows_of(slot, rows))

    def _arriving(self) -> Iterator[Arrived | None]:
        """The batches from the driver, then those from the levels above, with their wires; None for a row passed on.

        Raise _FailedAbove if a task above failed.
        """
        for payload in self.input.rows:
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
        """The rows for this slot. A row for a later level or the driver is passed on, and None is yielded for it."""
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
            # Once a task has failed, items for later levels are of no use. The reports of failures must still reach the
            # driver.
            elif row.level == DRIVER or not self.failed:
                self.sending.add(row)
                yield None

    def _check_ends(self) -> None:
        if self.level:
            above = set(range(self.program.slots_at(self.level - 1)))
            assert self.ends.keys() == above, f"every slot above sent a last row to slot {self.slot} of {self.level}"
            sent = sum(end.rows for end in self.ends.values())
            assert sent == self.received, f"slot {self.slot} of {self.level} received {self.received} of {sent} rows"

    def _senders(self) -> Mapping[int, bytes]:
        return {sender: end.attempt for sender, end in self.ends.items()}

    def _send(self, kind: Kind, message: SlotReport | TaskFailed) -> None:
        self.sending.add(Row(DRIVER, self.slot, kind, pickle.dumps(message)))


def _read_input(data: bytes | pa.Buffer | None) -> SlotInput:
    if data is None:
        return SlotInput()
    slot_input: SlotInput = pickle.loads(data)  # noqa: S301 - written by our own driver
    return slot_input


def _rows_with_slots(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, Row]]:
    for batch in batches:
        yield from zip(batch.column("slot").to_pylist(), rows_in(batch), strict=True)


def _rows_of(slot: int, rows: Iterator[tuple[int, Row]]) -> Iterator[Row]:
    for to, row in rows:
        assert to == slot, "all rows of a partition belong to one slot"
        yield row


@dataclass(frozen=True, slots=True)
class LevelJob:
    """The task of a level: for each partition, its slot. It returns rows for the driver, or the path of a file."""

    task: LevelTask | BroadcastTask
    files: LevelFiles

    def __call__(self, slot: int, _: Iterable[int]) -> Iterator[bytes]:
        rows = self.task(self._arriving(slot))
        if self.files.folder is None:
            return (batch.serialize().to_pybytes() for batch in rows)
        return iter([write_rows(rows, self.files.folder).encode()])

    def _arriving(self, slot: int) -> Iterator[pa.RecordBatch]:
        if self.files.above is None:
            return iter([pa.record_batch([pa.array([slot])], names=["id"])])
        return read_rows(self.files.above, slot)
