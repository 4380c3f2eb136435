"""The deadline of a window: when no new work is begun, and a watchdog that splits the work under way."""

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from dagkit.ranges import RestrictionTracker
from dagkit.ranges.restriction import fail_claims

Tracker = RestrictionTracker[Any, Any]
T = TypeVar("T")

AGAIN_SECONDS = 0.002
"""How soon after the deadline the watchdog first tries again to split work without a claim."""
LONGEST_AGAIN_SECONDS = 0.128
"""The longest pause between two such attempts."""


class Deadline:
    """The time after which no new work is begun; then a watchdog splits the work in progress."""

    def __init__(self, lasts_millis: float | None) -> None:
        self._ends = None if lasts_millis is None else time.monotonic() + lasts_millis / 1000
        self._splits: float | None = None
        """When to split the watched work."""
        self._tracker: Tracker | None = None
        self._residual: Any = None
        self._failure: Exception | None = None
        """What the tracker raised when it was asked to split."""
        self._again = AGAIN_SECONDS
        self.lock = threading.Condition(threading.RLock())
        """Held while work is split. A thread may acquire it twice: `WorkInHand` asks the tracker while it holds it."""
        self._ended = False
        self._watchdog: threading.Thread | None = None

    @property
    def is_over(self) -> bool:
        return self._ends is not None and time.monotonic() >= self._ends

    def watch(self, tracker: Tracker, among: int = 1) -> None:
        """Watch this work and split it at the deadline, or sooner if several items share the time until then."""
        if self._ends is None:
            splits = None
        elif among == 1:
            splits = self._ends
        else:
            now = time.monotonic()
            splits = now + max(0.0, self._ends - now) / among
        with self.lock:
            self._tracker, self._residual = tracker, None
            # The watchdog wakes by itself at its next attempt, so only a sooner one needs a notification; and the first
            # for a new item, if the pauses between attempts at the item before have grown.
            sooner = self._splits is not None and splits is not None and splits < self._splits
            patient, self._again = self._again > AGAIN_SECONDS, AGAIN_SECONDS
            self._splits = splits
            if sooner or patient:
                self.lock.notify()
        if splits is not None and self._watchdog is None:
            self._watchdog = threading.Thread(target=self._keep_watch, name="deadline", daemon=True)
            self._watchdog.start()

    def residual(self) -> Any:
        """Stop watching the work. Return the part that was split off, if any; raise what its tracker raised."""
        with self.lock:
            self._tracker = None
            failure, self._failure = self._failure, None
            if failure is not None:
                raise failure
            return self._residual

    def check(self) -> None:
        """Raise what the tracker of the work raised when it was asked to split."""
        if self._failure is not None:
            raise self._failure

    def end(self) -> None:
        """Stop the watchdog."""
        with self.lock:
            self._ended = True
            self.lock.notify()

    def split(self) -> None:
        """Split off the unclaimed rest. Work without a claim stays whole, so that each window makes progress."""
        with self.lock:
            split = self.ask(lambda tracker: tracker.try_split(0.0))
            if split is not None:
                self._residual = split.residual

    def ask(self, question: Callable[[Tracker], T]) -> T | None:
        """Ask the tracker of the watched work. Return None if nothing was claimed, or if the rest is split off.

        If the tracker raises, the thread of the work raises that.
        """
        with self.lock:
            if self._tracker is None or self._residual is not None or not self._tracker.is_started():
                return None
            try:
                return question(self._tracker)
            except Exception as error:  # noqa: BLE001 - the thread of the work raises it
                # `process` of work without an end never returns, so its next claim has to raise this.
                fail_claims(self._tracker, error)
                self._tracker, self._failure = None, error
                return None

    def _keep_watch(self) -> None:
        """Split at the deadline. Repeat it with growing pauses while nothing is claimed: some trackers never split."""
        with self.lock:
            while not self._ended:
                assert self._splits is not None, "the watchdog runs only with a deadline"
                left = self._splits - time.monotonic()
                if left <= 0:
                    self.split()
                    self._again = min(2 * self._again, LONGEST_AGAIN_SECONDS)
                self.lock.wait(left if left > 0 else self._again)
