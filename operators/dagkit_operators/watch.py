"""Watching anything that can be polled: an endless source of the outputs of a function."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Any, ClassVar, Generic

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveInt, PrivateAttr
from typing_extensions import TypeVar

from dagkit import Context, InputPort, OutputPort, SplittableOperator
from dagkit.api.adapters import adapter_of
from dagkit.ranges import Progress, RestrictionTracker, SplitRestriction, WorkUnclaimed, aware
from dagkit.ranges.cursor import Run
from dagkit_operators.values.keys import Key, key_of
from dagkit_operators.values.processed import UnaryFunction
from dagkit_operators.values.timed_elements import TimedElements


@dataclass(frozen=True, slots=True, order=True)
class Poll:
    """The result of one poll that is to be sent; polls are ordered by their times."""

    at: datetime
    new: tuple[str, ...] = ()
    """The digests of the outputs that are new."""
    known: tuple[str, ...] | None = None
    """The digests that are known after the poll; None: those known before, and the new ones."""
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class Watched:
    """The polls of an element that are still to come, as its restriction."""

    known: tuple[str, ...] = ()
    """The digests of the outputs that were sent."""
    began: datetime | None = None
    """When the first poll was; None before it."""
    newest: datetime | None = None
    """When the last new output was found; at first, when the first poll was."""

    def after(self, poll: Poll) -> "Watched":
        """The restriction of the polls after this one."""
        known = (*self.known, *poll.new) if poll.known is None else poll.known
        newest = poll.at if poll.new or self.newest is None else self.newest
        return replace(self, known=known, began=self.began or poll.at, newest=newest)


class WatchedTracker(RestrictionTracker[Watched, Poll]):
    """Grants one poll. All later polls are the rest, which is split off; there is none after the last poll."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self._claimed: Poll | None = None
        self._is_split = False
        # The reader claims on its thread, and the watchdog of the deadline splits on another one.
        self._lock = Lock()

    def current_restriction(self) -> Watched:
        return self._watched

    def is_bounded(self) -> bool:
        return False

    def is_started(self) -> bool:
        return self._claimed is not None

    def try_claim(self, position: Poll) -> bool:
        with self._lock:
            is_granted = self._claimed is None and not self._is_split
            if is_granted:
                self._claimed = position
            return is_granted

    def claim_many(self, positions: Run[Poll]) -> int:
        return int(len(positions) > 0 and self.try_claim(positions[0]))

    def try_split(self, fraction_of_remainder: float) -> SplitRestriction[Watched] | None:
        with self._lock:
            # Two trackers that poll one element would both send what is new, so the rest is split off as a whole.
            is_over = self._claimed is not None and self._claimed.is_last
            if fraction_of_remainder > 0.0 or self._is_split or is_over:
                return None
            self._is_split = True
            rest = self._watched if self._claimed is None else self._watched.after(self._claimed)
            return SplitRestriction(self._watched, rest)

    def current_progress(self) -> Progress:
        return Progress(float(self.is_started()), float("inf"))

    def check_done(self) -> None:
        if not self._is_split and not (self._claimed is not None and self._claimed.is_last):
            raise WorkUnclaimed(self._claimed, None)


@dataclass(frozen=True, slots=True)
class Polls:
    """The times and outputs of an element's polls, after the last one."""

    now: datetime
    began: datetime
    """When the first poll was."""
    newest: datetime
    """When the last new output was found; at first, when the first poll was."""
    outputs: Sequence[Any]
    """All outputs of the last poll."""


class _Condition(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class UntilElapsed(_Condition):
    """An element is polled until this time has passed since its first poll."""

    elapsed_millis: PositiveInt
    """The time since the first poll."""

    def holds(self, polls: Polls) -> bool:
        return polls.now - polls.began >= timedelta(milliseconds=self.elapsed_millis)


class UntilQuiet(_Condition):
    """An element is polled until this time has passed without a new output."""

    quiet_millis: PositiveInt
    """The time without a new output."""

    def holds(self, polls: Polls) -> bool:
        return polls.now - polls.newest >= timedelta(milliseconds=self.quiet_millis)


class UntilAny(_Condition):
    """An element is polled until one of these conditions holds."""

    any_of: tuple["Condition", ...] = Field(min_length=1)
    """The conditions."""

    def holds(self, polls: Polls) -> bool:
        return any(is_over(condition, polls) for condition in self.any_of)


class UntilAll(_Condition):
    """An element is polled until all of these conditions hold after the same poll."""

    all_of: tuple["Condition", ...] = Field(min_length=1)
    """The conditions."""

    def holds(self, polls: Polls) -> bool:
        return all(is_over(condition, polls) for condition in self.all_of)


Condition = UntilElapsed | UntilQuiet | UntilAny | UntilAll | Callable[[list[Any]], bool]
"""When the polls of an element end. A function takes all outputs of a poll, and returns True after the last poll."""


def is_over(condition: Condition, polls: Polls) -> bool:
    """Whether a condition holds, so that no poll follows."""
    return condition.holds(polls) if isinstance(condition, _Condition) else bool(condition(list(polls.outputs)))


T = TypeVar("T", default=Any)
V = TypeVar("V", default=Any)


@dataclass(frozen=True, slots=True)
class Polled(Generic[V]):
    """The result of a poll, if it is more than the outputs."""

    outputs: Iterable[V]
    is_complete: bool = False
    """Whether there will never be another output for this element."""
    watermark: datetime | None = None
    """The watermark of the outputs: no later one has an earlier event time. None: as before."""


class Watch(TimedElements, SplittableOperator[T, Watched], Generic[T, V]):
    """Polls each element with a function, again and again, and sends each output that the function finds once.

    The function takes an element, such as the name of a folder, a bucket or a feed, and returns what is there now: an
    iterable of outputs, or a `Polled`. Outputs with the same `key` are one. What was sent is kept with the element in
    the queue, as a digest of 16 bytes for each output, so partitions poll different elements, and a crash repeats and
    loses nothing. A launch polls each element at least once; one that runs until it is stopped waits for further polls.
    """

    kind = "polling.watch/1"
    reads_positions: ClassVar[bool] = False
    position_unit: ClassVar[str] = "poll"
    restriction_type: ClassVar[Any] = Watched
    input = InputPort[T]()
    found = OutputPort[V]()

    function: UnaryFunction = Field(default=...)
    """Finds the outputs of an element. It runs on a worker, and a failure fails the window."""
    every_millis: NonNegativeInt = 5000
    """The time between two polls of an element."""
    until: Condition | None = None
    """When the polls of an element end: `UntilElapsed`, `UntilQuiet`, `UntilAny` or `UntilAll` of several, or a
    function of all outputs of a poll that returns True for the last poll; None: never."""
    key: Key = None
    """What identifies an output: a function of it, or a field of it; None: the whole output."""
    forgets_gone: bool = False
    """Whether an output that a poll no longer finds is forgotten, and sent again if it comes back."""
    event_time: Key = None
    """The event time of an output: a function of it, or a field of it. None: there is none."""
    has_watermarks: bool = False
    """Whether the function returns `Polled` with watermarks, which replace those from `event_time`."""

    _context: Context | None = PrivateAttr(default=None)

    def __init__(self, function: Callable[[T], Iterable[V] | Polled[V]] | None = None, /, **properties: Any) -> None:
        if function is not None:
            properties["function"] = function
        super().__init__(**properties)

    def setup(self, context: Context) -> None:
        self._context = context

    @property
    def estimates_watermark(self) -> bool:
        return self.has_watermarks or super().estimates_watermark

    def initial_restriction(self, element: T) -> Watched:  # noqa: ARG002 - the same for every element
        """Nothing is known, and all polls are still to come."""
        return Watched()

    def tracker(self, element: T, restriction: Watched) -> RestrictionTracker[Watched, Poll]:  # noqa: ARG002 - as above
        return WatchedTracker(restriction)

    def process(self, element: T, tracker: RestrictionTracker[Watched, Poll]) -> Iterator[V]:
        """Poll once."""
        watched, now = tracker.current_restriction(), self._now()
        result = self.function(element)
        polled = result if isinstance(result, Polled) else Polled(result)
        outputs = {self._digest(output): output for output in polled.outputs}
        known = frozenset(watched.known)
        new = {digest: output for digest, output in outputs.items() if digest not in known}
        there = tuple(digest for digest in (*watched.known, *new) if digest in outputs) if self.forgets_gone else None
        is_last = polled.is_complete or self._is_last(watched, list(outputs.values()), list(new), now)
        # A poll that finds nothing new is not claimed but deferred, so that a run until idle can end. The first one is
        # claimed in any case: its time, from which `UntilElapsed` counts, is recorded with the claim.
        is_claimed = bool(new) or is_last or watched.began is None
        if is_claimed and not tracker.try_claim(Poll(now, tuple(new), there, is_last)):
            return
        yield from new.values()
        if polled.watermark is not None and self.has_watermarks:
            self.reach(aware(polled.watermark))
        elif self.event_time is not None:
            self.observe(self.time_of(output) for output in new.values())
        if not is_last:
            tracker.defer_remainder(timedelta(milliseconds=self.every_millis))

    def _now(self) -> datetime:
        now = None if self._context is None else self._context.now
        return datetime.now(UTC) if now is None else now()

    def _is_last(self, watched: Watched, outputs: list[V], new: list[str], now: datetime) -> bool:
        """Whether no poll follows the present one."""
        newest = now if new or watched.newest is None else watched.newest
        return self.until is not None and is_over(self.until, Polls(now, watched.began or now, newest, outputs))

    def _digest(self, output: V) -> str:
        key = key_of(self.key, output)
        written = json.dumps(adapter_of(type(key)).dump(key), sort_keys=True)
        return hashlib.blake2b(written.encode(), digest_size=16).hexdigest()
