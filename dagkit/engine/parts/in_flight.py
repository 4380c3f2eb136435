"""Windows in flight. Each has its own thread, which waits for the backend and touches nothing else.

The threads are daemons, so that the end of an interrupted driver does not wait for an operator: one record may take
hours, and the code that processes it cannot be interrupted.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import datetime
from queue import SimpleQueue
from threading import Thread
from typing import Self

from dagkit.api.attributes import OperatorContext
from dagkit.engine.program.address import Address, SourceKey
from dagkit.engine.program.failures import OperatorFailed, WindowLost
from dagkit.engine.program.program import Program
from dagkit.engine.work.cost import CostEstimate
from dagkit.engine.work.item import PromisedItem, WindowPromise, WorkItem
from dagkit.engine.work.schedule import WindowSchedule
from dagkit.engine.work.split import all_in
from dagkit.engine.worker.protocol import Answer, Backend, Leaving, WindowTask

ATTEMPTS_AT_LOST_WINDOWS = 2
"""How often the engine retries a window that was lost with a machine and not by an operator's failure."""

LONGEST_ABANDONED_SECONDS = 2.0
"""How long the end of an interrupted driver waits for a thread: its operator may be about to end its record."""


UNSCHEDULED = WindowSchedule({}, 0.0, CostEstimate())
"""The schedule of a window before its work is allocated."""


@dataclass(frozen=True, slots=True)
class Queued:
    """The work that the discoveries of a window added to the queue."""

    work: Sequence[WorkItem] = ()
    places: Mapping[str, int] = field(default_factory=dict)
    """Where each lane of the queue ended before."""


@dataclass(frozen=True, slots=True)
class PutOff:
    """Why the next attempt at a window does not begin at once."""

    until: datetime
    reason: str


@dataclass
class Attempts:
    """The failed attempts at a window, and what the next one is to be."""

    failures: int = 0
    count: int = 0
    """All failed attempts, also those that leave work."""
    tries: int = 0
    """How often an operator got the record on which it failed, in all attempts."""
    cause: OperatorFailed | WindowLost | None = None
    """The last failure."""
    unlocated: OperatorFailed | None = None
    """The failure whose record the present attempt is to locate."""
    unreadable: dict[SourceKey, str] = field(default_factory=dict)
    """Why sources cannot be read that are set aside with the window."""
    is_traced: bool = False
    """Whether slots note what they process, or were asked to in an attempt before."""
    suspects: list[WorkItem] = field(default_factory=list)
    """The work that the next attempt leaves, because slots ended while they processed it."""
    records: list[tuple[WorkItem, str]] = field(default_factory=list)
    """The suspects that are single records, each with the operator that ended there; empty if that is unknown.

    They are set aside with the window.
    """
    put_off: PutOff | None = None
    """Set while no attempt runs, since the next one is to begin later."""

    @property
    def without_work(self) -> dict[Address, tuple[PromisedItem, ...]]:
        """The stretches of the suspects, by input."""
        found: dict[Address, tuple[PromisedItem, ...]] = {}
        for item in self.suspects:
            found[item.into] = (*found.get(item.into, ()), (item.number, item.start, item.end))
        return found

    def failed(self, error: OperatorFailed | WindowLost, program: Program) -> bool:
        """Count a failed attempt. Return whether the failure allows another one."""
        self.failures += 1
        self.count += 1
        self.tries += error.failure.tries if isinstance(error, OperatorFailed) else 1
        self.cause = error
        if isinstance(error, WindowLost):
            return self.failures <= ATTEMPTS_AT_LOST_WINDOWS
        context = program.contexts[error.failure.operator]
        return self.failures <= (context.value(OperatorContext.RECOVERY_ATTEMPTS) or 0)


@dataclass
class InFlightWindow:
    """A window in flight. The parts of the run complete it before it starts."""

    task: WindowTask
    began: datetime
    is_alone: bool
    """Whether no other window was in flight when it began, nor one to be delivered."""
    upto: Mapping[str, int] = field(default_factory=dict)
    """The last discovery that the window includes, by input operator."""
    promise: WindowPromise | None = None
    """The note of the window in the ledger until it is committed."""
    is_promised: bool = False
    polls: bool = False
    """Whether the window only polls: it is promised after it has found something."""
    queued: Queued = Queued()
    attempts: Attempts = field(default_factory=Attempts)
    is_published: bool = False
    """Whether its start has been published to observers."""
    schedule: WindowSchedule = UNSCHEDULED
    answer: "Future[Answer]" = field(init=False)

    @property
    def window_id(self) -> int:
        return self.task.window_id

    @property
    def leaves(self) -> Leaving:
        """The work that the last attempt at it leaves."""
        attempt = self.task.attempt
        return attempt.leaves

    @property
    def work(self) -> list[WorkItem]:
        """The work allocated to it."""
        return all_in(self.schedule.allocation)


class InFlightWindows:
    """The windows in flight, oldest first. Leaving the context waits for all of them, unless they are abandoned."""

    def __init__(
        self,
        backend: Backend,
        most: int,
        completed: Callable[[], object],
        promised: tuple[WindowPromise, Mapping[str, int]] | None = None,
    ) -> None:
        self.promised = promised
        """The window that an earlier launch promised and did not commit, until it is in flight again."""
        self._backend = backend
        self._most = most
        self._completed = completed
        """Called when a window has ended, on any thread."""
        self._windows: deque[InFlightWindow] = deque()
        self._submitted: SimpleQueue[InFlightWindow | None] = SimpleQueue()
        self._threads: list[Thread] = []
        self._are_abandoned = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        is_interrupted = self._are_abandoned or (kind is not None and issubclass(kind, SystemExit | KeyboardInterrupt))
        for _thread in self._threads:
            self._submitted.put(None)
        for thread in self._threads:
            thread.join(LONGEST_ABANDONED_SECONDS if is_interrupted else None)

    def __len__(self) -> int:
        return len(self._windows)

    def __iter__(self) -> Iterator[InFlightWindow]:
        return iter(self._windows)

    @property
    def has_completed(self) -> bool:
        """Whether the oldest window has ended."""
        # While the next attempt is put off, the window still has the answer of the one that failed.
        return bool(self._windows) and self.put_off is None and self._windows[0].answer.done()

    @property
    def put_off(self) -> PutOff | None:
        """Whether the next attempt at the oldest window begins later."""
        return self._windows[0].attempts.put_off if self._windows else None

    @property
    def allocated(self) -> list[WorkItem]:
        """All work of the windows in flight."""
        return [item for window in self._windows for item in window.work]

    @property
    def polls(self) -> bool:
        """Whether a window only polls.

        Windows are committed in order, so another poll beside it would be committed even if both find nothing.
        """
        return any(window.polls for window in self._windows)

    def keep_promise(self, window: InFlightWindow) -> None:
        """Let a window that is to start be the one that an earlier launch promised, if there is one."""
        if self.promised is not None:
            (window.promise, window.upto), self.promised = self.promised, None
            window.task = replace(window.task, last=window.promise.last)
            window.is_promised = True

    def submit(self, window: InFlightWindow) -> None:
        """Start a window as the youngest."""
        self._start(window)
        self._windows.append(window)

    def resubmit(self, window: InFlightWindow, task: WindowTask) -> None:
        """Start another attempt at the window that was the oldest, unless it is put off; it is the oldest again."""
        window.task = task
        if window.attempts.put_off is None:
            self._start(window)
        # commits go in order, so no younger window takes its place meanwhile
        self._windows.appendleft(window)

    def resume(self) -> None:
        """Start the attempt at the oldest window that was put off."""
        oldest = self._windows[0]
        oldest.attempts.put_off = None
        self._start(oldest)

    def oldest(self) -> InFlightWindow:
        """Remove and return the oldest window."""
        return self._windows.popleft()

    def abandon(self) -> None:
        """Forget all windows, whose threads may still run."""
        self._windows.clear()
        self._are_abandoned = True

    def _start(self, window: InFlightWindow) -> None:
        window.answer = Future()
        window.answer.add_done_callback(lambda _: self._completed())
        self._submitted.put(window)  # first, so that a new thread begins with it at once
        if len(self._threads) < self._most:
            self._threads.append(Thread(target=self._run, name=f"window-{len(self._threads)}", daemon=True))
            self._threads[-1].start()

    def _run(self) -> None:
        """Run submitted windows, one after the other."""
        while (window := self._submitted.get()) is not None:
            self._run_one(window)
            del window  # a thread that waits keeps nothing

    def _run_one(self, window: InFlightWindow) -> None:
        try:
            answer = self._backend.run(window.task)
        except BaseException as error:  # noqa: BLE001 - the loop raises it
            window.answer.set_exception(error)
        else:
            window.answer.set_result(answer)
