"""Flights: windows on their way, each with a thread of its own that waits for the backend and touches nothing else."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from typing import Self

from dagkit.api.attributes import OperatorContext
from dagkit.engine.checkpoint.next_checkpoint import ConsumedWork
from dagkit.engine.failures import OperatorFailed, WindowLost
from dagkit.engine.program.program import Program
from dagkit.engine.work.item import WorkItem
from dagkit.engine.work.promise import WindowPromise
from dagkit.engine.work.schedule import WindowSchedule
from dagkit.engine.work.split import all_in
from dagkit.engine.worker.protocol import Answer, Backend, WindowTask

ATTEMPTS_AT_LOST_WINDOWS = 2
"""How often a window is tried again that was lost with a machine, and not by an operator's failure."""


@dataclass
class InFlightWindow:
    """A window that is on its way."""

    assignment: WindowTask
    upto: dict[str, int]
    """The last finding that it was given, by input operator."""
    given: Sequence[WorkItem]
    """The blocks that came into the queue with its findings."""
    round: WindowSchedule
    promise: WindowPromise
    began: datetime
    alone: bool
    """Whether no other window was in flight then."""
    promised: bool = False
    asks: bool = False
    """Whether it only asks whether there is more of what has no end."""
    failures: int = 0
    told: bool = False
    """Whether observers heard that it started."""
    answer: "Future[Answer]" = field(init=False)

    @property
    def window_id(self) -> int:
        return self.assignment.window_id

    @property
    def taken(self) -> ConsumedWork:
        return ConsumedWork(self.given, self.round.allocation)

    def failed(self, error: OperatorFailed | WindowLost, program: Program) -> bool:
        """An attempt came to nothing; whether there is to be another one, as often as the failure allows."""
        self.failures += 1
        if isinstance(error, WindowLost):
            return self.failures <= ATTEMPTS_AT_LOST_WINDOWS
        attributes = program.attributes[error.failure.operator]
        return self.failures <= (attributes.get(OperatorContext.RECOVERY_ATTEMPTS.qualified) or 0)


class InFlightWindows:
    """The windows in flight, the oldest first. Whoever leaves it waits for all of them."""

    def __init__(self, backend: Backend, most: int, completed: Callable[[], object]) -> None:
        self._backend = backend
        self._most = most
        self._landed = completed
        """Called, by any thread, when one has ended."""
        self._flying: deque[InFlightWindow] = deque()

    def __enter__(self) -> Self:
        self._threads = ThreadPoolExecutor(self._most, thread_name_prefix="window")
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown()

    def __len__(self) -> int:
        return len(self._flying)

    def __iter__(self) -> Iterator[InFlightWindow]:
        return iter(self._flying)

    @property
    def has_completed(self) -> bool:
        """Whether the oldest has ended."""
        return bool(self._flying) and self._flying[0].answer.done()

    @property
    def allocated(self) -> list[WorkItem]:
        """All work that is under way."""
        return [each for flight in self._flying for each in all_in(flight.round.allocation)]

    @property
    def ahead(self) -> int:
        """How much work that is."""
        return sum(
            len(hand) for flight in self._flying for slot_work in flight.round.allocation.values() for hand in slot_work
        )

    def submit(self, flight: InFlightWindow) -> None:
        """It is the youngest."""
        self._hand_over(flight)
        self._flying.append(flight)

    def resubmit(self, flight: InFlightWindow, assignment: WindowTask) -> None:
        """It was the oldest, and is so again, with another attempt at the same work."""
        flight.assignment = assignment
        self._hand_over(flight)
        self._flying.appendleft(flight)

    def oldest(self) -> InFlightWindow:
        """The oldest, which is in flight no more."""
        return self._flying.popleft()

    def _hand_over(self, flight: InFlightWindow) -> None:
        flight.answer = self._threads.submit(self._backend.run, flight.assignment)
        flight.answer.add_done_callback(lambda _: self._landed())
