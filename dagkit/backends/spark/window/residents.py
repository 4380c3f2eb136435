"""Slots that stay between windows: while windows follow each other quickly, they share one Spark job.

A job takes Spark longer to begin and to end than a short window lasts. A resident slot is a task that waits for the
next window after each one. It holds a core meanwhile, so slots leave when no window comes, and when another job is
active on the session.
"""

import logging
import pickle
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from math import inf
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from threading import Condition, Lock, Thread

from pyspark.sql import SparkSession

from dagkit.backends.spark.shipping.level_files import LevelFiles
from dagkit.backends.spark.shipping.shipping import Shipped
from dagkit.backends.spark.window.resident_task import FAMILY, ResidentTask, ResidentWindow
from dagkit.backends.spark.window.task import LevelTask
from dagkit.engine.program.failures import WindowLost

# A job that does nothing takes 25 to 37 ms, of which calls to Java are 5. From topic to topic of Kafka that was half of
# a message's latency: with slots that stay, the median was 0.20 to 0.66 of that before, 89 instead of 204 ms. A task
# that Spark repeats finds no socket and ends, so no window has two attempts in one job. The cost: Spark's pages show
# one job for many windows, and a job of the user may wait for a core for some tenths of a second.
QUICKLY_SECONDS = 0.2
"""Windows follow each other quickly if one begins before this time after the end of another. Then slots stay, and wait
for the next window for this time."""
LOOKED_EVERY_SECONDS = 0.05
"""How often Spark is asked whether another job is active."""
AWAY_SECONDS = 2.0
"""How long no slots stay after they left for another job."""
MOST = 16
"""The highest number of jobs at a time. There is at most one for each window in flight, and those that still end."""

_logger = logging.getLogger(__name__)

RunJob = Callable[[ResidentTask, int], object]
"""Runs a task in this number of slots as a job, and waits for its end."""


class ResidentSlots:
    """One job, whose slots work on one level of one window at a time."""

    def __init__(self, shipped: Shipped, slots: int) -> None:
        self.digest = shipped.digest
        self.slots = slots
        self.is_busy = True
        self.leaves = False
        """Whether its slots leave after the present window."""
        self.until = inf
        """How long its slots wait for the next window."""
        self._key = secrets.token_bytes(16)
        # All slots may connect before the first is accepted, and `_run` connects once more when the job ends.
        self._listener = Listener(None, FAMILY, slots + 1, self._key)
        self.task = ResidentTask(shipped, str(self._listener.address), self._key)
        self._connections: dict[int, Connection] = {}
        self.has_ended = False
        """Whether its job has ended, or is about to."""
        self._job: Future[object] | None = None

    def begin(self, threads: ThreadPoolExecutor, run_job: RunJob) -> None:
        """Start the job."""
        self._job = threads.submit(self._run, run_job)

    def send(self, task: LevelTask, files: LevelFiles, slots: int) -> None:
        """Send a level to this number of slots, to each as soon as it is there."""
        contents = [self._content(task, files, slot) for slot in range(slots)]
        with self._explained():
            if self._connections:
                for slot, content in enumerate(contents):
                    self._connections[slot].send_bytes(content)
            else:
                self._accept(contents)

    def answers(self, slots: int) -> list[bytes]:
        """Wait until this number of slots has worked on the level. Return the rows that a job of its own would."""
        with self._explained():
            answers = [self._connections[slot].recv_bytes() for slot in range(slots)]
        return [batch for answer in answers for batch in pickle.loads(answer)]  # noqa: S301 - written by our own tasks

    def close(self) -> None:
        """Let the slots leave; no window begins after that. A slot at work ends without an answer."""
        self.has_ended = True
        self._listener.close()
        for connection in self._connections.values():
            with suppress(OSError):
                connection.close()

    def _run(self, run_job: RunJob) -> object:
        try:
            return run_job(self.task, self.slots)
        finally:
            self.has_ended = True
            # Wake a thread that waits in `accept` for slots that never come, so that it looks at `has_ended`.
            with suppress(OSError, EOFError, AuthenticationError):
                Client(self.task.address, FAMILY, self._key).close()

    def _accept(self, contents: Sequence[bytes]) -> None:
        """Wait until all slots have come. Each gets its level at once: the others may need its core."""
        while len(self._connections) < self.slots:
            connection = self._listener.accept()
            try:
                slot = int.from_bytes(connection.recv_bytes(), "little")
            except EOFError:
                # Either `_run` connected to wake this thread, or a worker died.
                if self.has_ended:
                    raise
                continue
            self._connections[slot] = connection
            if slot < len(contents):
                connection.send_bytes(contents[slot])
        self._listener.close()

    def _content(self, task: LevelTask, files: LevelFiles, slot: int) -> bytes:
        own = {slot: task.inputs[slot]} if slot in task.inputs else {}
        return pickle.dumps(ResidentWindow(task.level, task.window, own, files))

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """If the connection to a slot breaks, wait for the end of the job. Raise its error, or else WindowLost."""
        try:
            yield
        except (OSError, EOFError) as error:
            self.close()
            assert self._job is not None, "the job begins before its slots are used"
            self._job.result()
            raise WindowLost("a slot ended before its window") from error


class OtherJobs:
    """Whether jobs of others are active on a session."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._next_look = -inf
        self.was_seen = False
        """Whether Spark listed one at the last look."""
        self.runs = False
        """Whether it did at the last two looks."""

    def look(self, own: int, *, at_once: bool = False) -> None:
        """Look, unless the last look was just now. `own` is the number of our jobs."""
        now = time.monotonic()
        if at_once or now >= self._next_look:
            self._next_look = now + LOOKED_EVERY_SECONDS
            active = self._spark.sparkContext.statusTracker().getActiveJobsIds()
            # Two looks in a row: Spark lists a job for a moment after its end.
            before, self.was_seen = self.was_seen, len(active) > own
            self.runs = before and self.was_seen


class Residents:
    """The resident slots of one backend."""

    def __init__(self, spark: SparkSession, run_job: RunJob) -> None:
        self._run_job = run_job
        self._threads = ThreadPoolExecutor(MOST, thread_name_prefix="resident slots")
        self._lock = Lock()
        """Guards everything below."""
        self._changed = Condition(self._lock)
        """Notified when slots become idle or leave."""
        # Apart from `_changed`, so that the end of a window does not wake the thread of `_keep`.
        self._closing = Condition(self._lock)
        self._all: list[ResidentSlots] = []
        self._is_kept = False
        """Whether a thread lets slots leave that wait too long."""
        self._own_jobs = 0
        """How many windows run as jobs of their own."""
        self._last_end = -inf
        """When the last window ended."""
        self._others = OtherJobs(spark)
        self._away_until = -inf
        """Until when no slots stay, because others need cores."""
        self._is_closed = False
        """Whether no more slots stay."""

    def run(self, task: LevelTask, files: LevelFiles, slots: int, most: int, cores: int) -> list[bytes] | None:
        """Run a level in `slots` resident slots, of which there are `most`. None: it must be a job of its own."""
        resident = self._take(task.shipped, most, cores)
        if resident is None:
            return None
        try:
            resident.send(task, files, slots)
            # Meanwhile the slots work, so that asking Spark takes no time of the window.
            self._others.look(self._jobs)
            return resident.answers(slots)
        except BaseException:
            # An answer that nothing has read must not become that of the next window.
            resident.close()
            raise
        finally:
            self._release(resident)

    @contextmanager
    def away(self) -> Iterator[None]:
        """Run a job of its own, such as that of another window. Resident slots leave for it."""
        with self._changed:
            self._own_jobs += 1
            self._dismiss()
        try:
            yield
        finally:
            with self._changed:
                self._own_jobs -= 1
                self._last_end = time.monotonic()

    def close(self) -> None:
        """Let all slots leave, and keep no others. Slots at work end with their job."""
        with self._changed:
            self._is_closed = True
            self._dismiss()
            self._closing.notify_all()
        # Slots at work end with their jobs, which the backend stops next: `Jobs.end` waits for these threads.
        self._threads.shutdown(wait=False)

    def _take(self, shipped: Shipped, slots: int, cores: int) -> ResidentSlots | None:
        """Idle slots of a program, or new ones. Wait while the slots that could be used are busy."""
        with self._changed:
            while True:
                self._all = [resident for resident in self._all if not resident.has_ended]
                # After a change of the application, resident slots have the program before it.
                if any(resident.digest != shipped.digest for resident in self._all):
                    self._dismiss()
                staying = [resident for resident in self._all if not resident.leaves]
                idle = next((resident for resident in staying if not resident.is_busy), None)
                if idle is not None:
                    idle.is_busy, idle.until = True, inf
                    return idle
                # Without a core for each, a resident slot would hold one that another waits for.
                if sum(resident.slots for resident in self._all) + slots <= cores and self._is_quick():
                    return self._begin(shipped, slots)
                if not staying:
                    return None
                self._changed.wait()

    def _is_quick(self) -> bool:
        """Whether slots are worth a job that stays: windows follow each other quickly, and no other job needs cores."""
        now = time.monotonic()
        if self._is_closed or now < self._away_until or now - self._last_end > QUICKLY_SECONDS:
            return False
        # The last look may be old: as long as no slots stay, no window looks.
        self._others.look(self._jobs, at_once=True)
        return not self._others.was_seen

    def _begin(self, shipped: Shipped, slots: int) -> ResidentSlots | None:
        try:
            resident = ResidentSlots(shipped, slots)
        except OSError as error:  # for example, if the path of the socket is too long
            _logger.debug("slots cannot stay: %s", error)
            self._is_closed = True
            return None
        self._all.append(resident)
        if not self._is_kept:
            self._is_kept = True
            Thread(target=self._keep, name="resident slots", daemon=True).start()
        resident.begin(self._threads, self._run_job)
        return resident

    def _release(self, resident: ResidentSlots) -> None:
        with self._changed:
            self._last_end = time.monotonic()
            resident.is_busy, resident.until = False, self._last_end + QUICKLY_SECONDS
            if self._others.runs:
                self._away_until = self._last_end + AWAY_SECONDS
            if resident.leaves or self._others.runs or self._is_closed:
                resident.close()
            self._changed.notify_all()

    def _dismiss(self) -> None:
        """Let idle slots leave now, and the others after their windows."""
        for resident in self._all:
            resident.leaves = True
            if not resident.is_busy:
                resident.close()
        self._changed.notify_all()

    def _keep(self) -> None:
        """Let slots leave that have waited too long, until none are left."""
        with self._lock:
            while self._all:
                now = time.monotonic()
                for resident in self._all:
                    if not resident.is_busy and resident.until <= now:
                        resident.close()
                self._all = [resident for resident in self._all if not resident.has_ended]
                # The release of busy slots does not notify this thread, so it looks at least this often.
                self._closing.wait(min([QUICKLY_SECONDS, *(resident.until - now for resident in self._all)]))
            self._is_kept = False

    @property
    def _jobs(self) -> int:
        """How many jobs of this backend run."""
        return len(self._all) + self._own_jobs
