"""The Spark backend: windows as Spark jobs. Level 0 gets work from the driver, each later level an exchange."""

import logging
import pickle
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import lru_cache

import pyarrow as pa
from pyspark import RDD
from pyspark.sql import DataFrame, SparkSession

from dagkit.api.installed import own_folders
from dagkit.backends.spark.failures.jobs import Jobs, is_connect
from dagkit.backends.spark.failures.spark_errors import spark_errors
from dagkit.backends.spark.shipping.frames import Frames
from dagkit.backends.spark.shipping.kept_state import Kept, KeptState, SentState, overlaid
from dagkit.backends.spark.shipping.level_files import LevelFiles, folder_in
from dagkit.backends.spark.shipping.rows import ARROW_SCHEMA, SPARK_SCHEMA, Kind, rows_in
from dagkit.backends.spark.shipping.shipping import by_value, modules_of, shipped
from dagkit.backends.spark.window.artifacts import ship_own_code, workers_are_here
from dagkit.backends.spark.window.boards import Boards
from dagkit.backends.spark.window.cores import CoresOf
from dagkit.backends.spark.window.placing import Placing
from dagkit.backends.spark.window.preflight import (
    ask,
    check,
    differing_libraries,
    workers_unprepared,
)
from dagkit.backends.spark.window.resident_task import ResidentTask
from dagkit.backends.spark.window.residents import Residents
from dagkit.backends.spark.window.task import BroadcastTask, LevelJob, LevelTask, SlotInput, SlotReport, TaskFailed
from dagkit.compiler import Compilation
from dagkit.engine.files.staging import Part
from dagkit.engine.program.differences import applied
from dagkit.engine.program.failures import CodecFailed, WindowLost
from dagkit.engine.program.lower import program_of
from dagkit.engine.work.handover import SlotStanding
from dagkit.engine.worker.outbox import Sent
from dagkit.engine.worker.protocol import Answer, Cores, Report, SlotState, WindowTask

# That file made the driver's disk grow with each window, by 3 MB for as much state. A broadcast of ours is destroyed
# with its file after the window, and takes no longer: 114, 108 and 132 ms for 0.6, 1 and 4 MiB a slot, where PySpark's
# took 94, 137 and 149. Rejected: all input by row, which takes 150 to 254 ms and leaves the program in the closure.
LARGEST_CLOSURE_BYTES = (1 << 20) - (64 << 10)
"""The largest task that is sent in the closure. PySpark broadcasts any closure larger than a mebibyte, and keeps the
file of that broadcast on the driver until Spark stops. The difference is room for the rest of the closure."""
MOST_NAMED = 3
"""The number of operators that the description of a job names."""
# Input by row takes longer: a window with 1, 4 and 16 MiB for each slot took 428, 491 and 707 ms, and 300, 362 and 433
# if it was sent as a whole. But then each task gets the input of all slots.
LARGEST_SHARED_BYTES = 16 << 20
"""The largest input of a level that is sent as a whole to each slot. If it is larger, each slot gets only its own."""
NO_INPUT = pickle.dumps(SlotInput())
_log = logging.getLogger(__name__)

_Inputs = Mapping[int, Mapping[int, bytes]]
"""The pickled input of each slot, by level and slot."""


class SparkBackend:
    """Runs a compiled application on a Spark session, classic or Connect. The caller owns the session and stops it."""

    def __init__(self, compilation: Compilation, spark: SparkSession) -> None:
        self.spark = spark
        # Closed in reverse: slots that stay and boards before the jobs, and broadcasts after the jobs that read them.
        # If a step fails, those before it are undone.
        with ExitStack() as undone:
            self._by_value = undone.enter_context(ExitStack())
            """As long as this is open, cloudpickle writes the author's modules by value."""
            self.load(compilation)
            with spark_errors("Spark could not send dagkit to its workers", spark):
                ship_own_code(spark)
                self._workers_are_here = workers_are_here(spark)
            self._kept = None if is_connect(spark) else KeptState(spark.sparkContext)
            if self._kept is not None:
                undone.callback(self._kept.end)
            self._jobs = Jobs(spark)
            undone.callback(self._jobs.end)
            self._cores = CoresOf(spark)
            self._boards = Boards(spark)
            undone.callback(self._boards.close)
            self._residents = Residents(spark, self._stay)
            undone.callback(self._residents.close)
            self._open = undone.pop_all()

    def load(self, compilation: Compilation) -> None:
        """Run this application in every later window."""
        program = program_of(compilation)
        modules = modules_of(program)
        # The modules of the application before are no longer written by value.
        self._by_value.close()
        self._by_value.enter_context(by_value(modules))
        self.program = program
        self.shipped, known = shipped(program, modules)
        self._frames = Frames(known, program.targets)

    def check_workers(self, application_path: str) -> None:
        """Raise workers-unprepared if workers on other machines lack what windows need. Local ones are this Python."""
        if self._workers_are_here:
            return
        libraries = [folder.name for folder in own_folders()[1:]]
        checking = self._jobs.tagged(f"{self.program.application}: check what workers have")
        with spark_errors("Spark's workers do not answer", self.spark), checking:
            answers = ask(self.spark, self._cores.count().now, application_path, libraries)
        failed = [finding for finding in check(answers.facts) if not finding.ok]
        if failed:
            raise workers_unprepared(failed)
        differing = differing_libraries(answers.facts, libraries)
        if differing is not None:
            _log.warning("%s", differing)

    def cores(self) -> Cores:
        """The number of cores that the session's cluster has, and the number that it can get."""
        with spark_errors("Spark did not say how many cores there are", self.spark):
            return self._cores.count()

    def run(self, task: WindowTask) -> Answer:
        """Run one attempt at a window, and wait for it. Raise what an operator raised, or a WindowLost."""
        try:
            failing = f"Spark failed in window {task.window_id}"
            before: dict[tuple[int, int], SlotState] = {
                at: overlaid(state, self.program) for at, state in task.state.items()
            }
            with spark_errors(failing, self.spark):
                state, kept = (before, {}) if self._kept is None else self._kept.sent(before)
            # Apart from what Spark may fail in: an error here is that of an author's codec, or of dagkit.
            inputs = self._inputs(task, state)
            with spark_errors(failing, self.spark):
                # Only a board needs the number, to learn whether slots without work should wait. Counting takes calls
                # to Java.
                cores = self._cores.count().now if task.attempt.movable else 0
                run = self._in_frame if self._needs_frame(inputs) else self._in_levels
                with self._boards.serving(_shared(task), self.program, cores) as window:
                    batches = run(window, inputs, kept)
            return self._answer(task, batches, before)
        except CodecFailed as error:
            # It failed in this process, whose frames do not know their window. A task converts its own.
            raise error.in_window(task.window_id) from error

    def running(self) -> list[SlotStanding]:
        """The last report of each slot, if its window has a board."""
        return self._boards.running()

    def put_in_place(self, files: Mapping[str, Iterable[Part]], application_path: str, *, durable: bool) -> None:
        """Move or join committed pieces into the files that they belong to."""
        here, as_job = Placing.of(files, application_path, durable=durable).divided(self.spark)
        here.run_here()
        # Most windows need no job, and the tags of one are several calls to Java.
        if as_job.files:
            with (
                spark_errors("Spark failed while files were put in place", self.spark),
                self._residents.away(),
                self._jobs.tagged(f"{self.program.application}: put output files in place"),
            ):
                as_job.run_as_job(self.spark)

    def close(self) -> None:
        """Stop the running jobs, and refuse others. A second call has no effect."""
        self._open.close()

    def _needs_frame(self, inputs: _Inputs) -> bool:
        """Whether only Spark SQL can run a window: it sends our code, gives each slot its own input, and encrypts."""
        # Everything else runs level by level: Spark SQL takes longer to plan a frame than a short window lasts, and its
        # exchanges pass through Java.
        return (
            not self._workers_are_here
            or (self.program.levels > 1 and _encrypts(self.spark))
            or any(map(_is_large, inputs.values()))
        )

    def _in_levels(self, window: WindowTask, inputs: _Inputs, kept: Kept) -> list[pa.RecordBatch]:
        """Run one level of a window after the other, and return its rows. Rows between two levels are in files."""
        with ExitStack() as run:
            last = self.program.levels - 1
            folder = run.enter_context(folder_in(self.spark.sparkContext)) if last else None
            # A resident task gets no broadcasts. And once a level runs as a job, the resident slots have left for it.
            stays = not kept
            written: list[bytes] = []
            for level in range(self.program.levels):
                task = LevelTask(self.shipped, level, window, inputs[level])
                above = tuple(path.decode() for path in written) if level else None
                files = LevelFiles(above, folder if level < last else None)
                in_residents = self._in_residents(task, files) if stays else None
                stays = in_residents is not None
                written = self._in_job(task, files, kept) if in_residents is None else in_residents
            return [_read(batch) for batch in written]

    def _in_residents(self, task: LevelTask, files: LevelFiles) -> list[bytes] | None:
        """Run a level in slots that stay between windows. None: it must be a job of its own."""
        attempt = task.window.attempt
        # An attempt that may end a worker, a long window and a large program gain nothing from slots that stay.
        if attempt.isolated or attempt.movable or len(self.shipped.data) > LARGEST_CLOSURE_BYTES:
            return None
        # All levels of a window run in the same resident slots, so there are as many as the widest level needs.
        most = max(map(self.program.slots_at, range(self.program.levels)))
        return self._residents.run(task, files, self.program.slots_at(task.level), most, self._cores.count().now)

    def _stay(self, task: ResidentTask, slots: int) -> None:
        """Run the job of slots that stay, until they leave."""
        with self._jobs.tagged(f"{self.program.application}: slots that stay between short windows"):
            _slots(self.spark, slots).mapPartitionsWithIndex(task).collect()

    def _in_job(self, task: LevelTask, files: LevelFiles, kept: Kept) -> list[bytes]:
        """Run a level as a job of its own."""
        description = self._description(task.window.window_id, task.level)
        with self._residents.away(), self._jobs.tagged(description), ExitStack() as run:
            job = LevelJob(self._closure(task, kept, run), files)
            return _slots(self.spark, self.program.slots_at(task.level)).mapPartitionsWithIndex(job).collect()

    def _description(self, window_id: int, level: int | None = None) -> str:
        """What a job is called on Spark's own page: `WordCount: window 12, Read, Split and 3 more`."""
        stages = [stage for stage in self.program.stages if level in (None, stage.level)]
        names = [name for stage in stages for name in stage.operators]
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        return f"{self.program.application}: window {window_id}, {', '.join(names[:MOST_NAMED])}{more}"

    def _in_frame(self, window: WindowTask, inputs: _Inputs, kept: Kept) -> list[pa.RecordBatch]:
        """Run a window as one query of Spark SQL, and return its rows."""
        with self._residents.away(), self._jobs.tagged(self._description(window.window_id)), ExitStack() as run:
            batches: list[pa.RecordBatch] = self._frame(window, inputs, kept, run).toArrow().to_batches()
            return batches

    def _frame(self, window: WindowTask, inputs: _Inputs, kept: Kept, until: ExitStack) -> DataFrame:
        """The job of one window as a frame."""
        frame: DataFrame | None = None
        for level in range(self.program.levels):
            slots, own = self.program.slots_at(level), inputs[level]
            by_row = _is_large(own)
            if by_row:
                frame = self._among(frame, level, own)
            elif frame is None:
                frame = _numbers(self.spark, slots)
            else:
                # By the number itself: a hash may put two slots into one partition, and each task runs one slot.
                frame = frame.repartitionById(slots, "slot")
            task = LevelTask(self.shipped, level, window, {} if by_row else own, input_by_row=by_row)
            frame = frame.mapInArrow(self._closure(task, kept, until), SPARK_SCHEMA)
        assert frame is not None, "there is at least one level"
        return frame

    def _closure(self, task: LevelTask, kept: Kept, until: ExitStack) -> LevelTask | BroadcastTask:
        """The task for Spark to pickle. A large task becomes a broadcast, which is destroyed when `until` is closed."""
        size = len(task.shipped.data) + sum(map(len, task.inputs.values()))
        if size <= LARGEST_CLOSURE_BYTES or is_connect(self.spark):  # a Connect server makes no broadcast of a closure
            return replace(task, kept=kept)
        broadcast = self.spark.sparkContext.broadcast(task)
        until.callback(broadcast.destroy)
        return BroadcastTask(broadcast, kept)

    def _among(self, frame: DataFrame | None, level: int, inputs: Mapping[int, bytes]) -> DataFrame:
        """The rows from the level above, and before them, in each partition, a row with the input of its slot."""
        slots = self.program.slots_at(level)
        rows = [(slot, level, slot, int(Kind.INPUT), inputs.get(slot, NO_INPUT)) for slot in range(slots)]
        input_rows = self.spark.createDataFrame(rows, SPARK_SCHEMA)
        if frame is None:
            return input_rows.repartitionById(slots, "slot")
        # An exchange delivers rows in any order, and a task expects its input before the rows from the level above.
        return frame.unionAll(input_rows).repartitionById(slots, "slot").sortWithinPartitions("kind")

    def _inputs(self, task: WindowTask, state_of: Mapping[tuple[int, int], SentState]) -> _Inputs:
        """The pickled input of each slot, by level and slot."""
        arriving: dict[tuple[int, int], list[bytes]] = defaultdict(list)
        for sent in task.arriving:
            for frame in self._frames.of(sent.batch, sent.wire):
                arriving[sent.level, sent.slot].append(b"".join(frame.pieces(sent.wire)))
        inputs: dict[int, dict[int, bytes]] = defaultdict(dict)
        for level, slot in {*arriving, *state_of, *task.work}:
            state, work = state_of.get((level, slot), {}), task.work.get((level, slot), ())
            inputs[level][slot] = pickle.dumps(SlotInput(state, tuple(arriving[level, slot]), work))
        return inputs

    def _answer(
        self, task: WindowTask, batches: list[pa.RecordBatch], state: Mapping[tuple[int, int], SlotState]
    ) -> Answer:
        reports: list[SlotReport] = []
        failed: list[TaskFailed] = []
        delayed: list[Sent] = []
        for batch in batches:
            for row in rows_in(batch):
                if row.kind is Kind.ITEMS:
                    delayed += self._delayed(row.to, row.payload)
                else:
                    read = pickle.loads(row.payload)  # noqa: S301 - written by our own tasks, and never kept
                    (failed if row.kind is Kind.FAILURE else reports).append(read)
        if failed:
            raise min(failed, key=lambda failure: (failure.level, failure.slot)).error
        self._check(task, reports)
        return Answer(tuple(_with_state(report, state) for report in reports), tuple(delayed))

    def _delayed(self, slot: int, payload: pa.Buffer) -> Iterator[Sent]:
        for arrived in self._frames.read(payload):
            level = self.program.targets[arrived.wire].level
            yield Sent(arrived.wire, slot, level, delayed=True, batch=arrived.batch)

    def _check(self, task: WindowTask, reports: list[SlotReport]) -> None:
        """Raise spark-failed if a slot received from an attempt other than the one that reported."""
        # Spark runs a task again if it loses an executor, and a second attempt need not send the same rows in the same
        # order. A mixture of both attempts could lose or repeat items.
        attempts = {(slot.report.level, slot.report.slot): slot.attempt for slot in reports}
        expected = {(at, slot) for at in range(self.program.levels) for slot in range(self.program.slots_at(at))}
        assert len(attempts) == len(reports), "each slot reports once"
        assert attempts.keys() == expected, "every slot reports"
        for slot in reports:
            above = slot.report.level - 1
            if any(attempts[above, sender] != attempt for sender, attempt in slot.senders.items()):
                raise WindowLost(
                    f"Spark ran part of window {task.window_id} again after others had received from it, as it "
                    "does when an executor is lost; what both attempts sent does not fit together",
                    "the window runs again by itself; see why the executor was lost",
                    code="spark-failed",
                )


def _shared(task: WindowTask) -> WindowTask:
    """The part of a window's task that all slots share."""
    return replace(task, arriving=(), work={}, state={})


def _read(batch: bytes) -> pa.RecordBatch:
    """Rows that a slot wrote."""
    return pa.ipc.read_record_batch(pa.py_buffer(batch), ARROW_SCHEMA)


def _is_large(inputs: Mapping[int, bytes]) -> bool:
    """Whether the inputs of a level are too large to be sent as a whole to each slot."""
    return sum(map(len, inputs.values())) > LARGEST_SHARED_BYTES


# Asking Spark is a call to Java, and each window of several levels asks.
@lru_cache(maxsize=8)
def _encrypts(spark: SparkSession) -> bool:
    """Whether Spark encrypts what it writes to local disks."""
    return str(spark.conf.get("spark.io.encryption.enabled", "false")).lower() == "true"


@lru_cache(maxsize=8)
def _slots(spark: SparkSession, slots: int) -> RDD[int]:
    """The number of each slot in a partition of its own, with which a level begins that runs as a job."""
    return spark.sparkContext.parallelize(range(slots), slots)


def _with_state(sent: SlotReport, state: Mapping[tuple[int, int], SlotState]) -> Report:
    """The report of a slot with its state, which it sent as a change of the state that it was given."""
    before = state.get((sent.report.level, sent.report.slot), {})
    return replace(sent.report, state=before if sent.state is None else applied(before, sent.state))


@lru_cache(maxsize=1)
def _numbers(spark: SparkSession, slots: int) -> DataFrame:
    """A frame with the number of each slot in a partition of its own, with which each window begins."""
    # Creating it takes several calls to Spark, so the last one is kept, also for the next launch on the session.
    return spark.range(0, slots, 1, slots)
