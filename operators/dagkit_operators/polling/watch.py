"""Watching anything that can be polled: an endless source of what a function finds."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Generic

from pydantic import Field, NonNegativeInt, PrivateAttr
from typing_extensions import TypeVar

from dagkit import Context, InputPort, OutputPort, SplittableOperator
from dagkit.api.adapters import adapter_of
from dagkit.ranges import RestrictionTracker, aware
from dagkit_operators.polling.until import Condition, Polls, is_over
from dagkit_operators.polling.watched import Poll, Watched, WatchedTracker
from dagkit_operators.values.keys import Key, key_of
from dagkit_operators.values.processed import UnaryFunction
from dagkit_operators.values.timed_elements import TimedElements

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
        given: dict[str, Any] = {} if function is None else {"function": function}
        super().__init__(**given, **properties)

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

    def size(self, element: T, restriction: Watched) -> float:  # noqa: ARG002 - as above
        return 0.0

    def process(self, element: T, tracker: RestrictionTracker[Watched, Poll]) -> Iterator[V]:
        """Poll once. A poll that finds nothing new is not claimed but deferred, so that a run until idle can end."""
        watched, now = tracker.current_restriction(), self._now()
        result = self.function(element)
        polled = result if isinstance(result, Polled) else Polled(result)
        outputs = {self._digest(output): output for output in polled.outputs}
        known = frozenset(watched.known)
        new = {digest: output for digest, output in outputs.items() if digest not in known}
        left = tuple(digest for digest in (*watched.known, *new) if digest in outputs) if self.forgets_gone else None
        is_last = polled.is_complete or self._is_last(watched, list(outputs.values()), list(new), now)
        is_claimed = bool(new) or is_last or watched.began is None
        if is_claimed and not tracker.try_claim(Poll(now, tuple(new), left, is_last)):
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
