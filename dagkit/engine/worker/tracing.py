"""Traces: what a slot processes, in a file that outlives the slot's process.

Each slot of a traced attempt has a file. It notes there the place of what it processes, over the place before. The
system has the note at once, so the driver reads where a process was when it ended. A slot holds a lock on its file:
what another process can lock belongs to a slot that has ended.
"""

import fcntl
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from operator import index
from pathlib import Path
from typing import Any, ParamSpec, Self, TypeVar

from dagkit.engine.program.address import Address
from dagkit.engine.program.failures import offsets_in
from dagkit.engine.work.item import Number, WorkItem
from dagkit.ground.urls import is_url, local_path
from dagkit.ranges import RestrictionTracker
from dagkit.schema.batch import Batch

P = ParamSpec("P")
T = TypeVar("T")

MOST_SINGLE = 2_000
"""How many records of each slot are delivered one by one, at some 0.1 ms each."""
SLICES = 32
"""Into how many parts a batch is divided after that."""
_OPERATOR_AT = 1 << 16
"""Where a file names the operator: behind any place."""
LEAST_SLICE = 64
"""The least number of records of such a part: readers that adapt to the speed would otherwise stay slow."""


@dataclass(frozen=True, slots=True)
class TracedPlace:
    """The part of a work item that a slot processes."""

    into: Address
    number: Number
    start: int
    """Where the item starts, and where it ends."""
    end: int
    low: int
    """The first position that is processed, and the one after the last."""
    high: int
    operator: str = ""
    """The operator whose code ran there; empty if that is unknown."""

    @classmethod
    def of(cls, item: WorkItem) -> "TracedPlace":
        return cls(item.into, item.number, item.start, item.end, item.start, item.end)

    def between(self, low: int, high: int) -> "TracedPlace":
        """The place of claimed positions."""
        return replace(self, low=max(self.start, low), high=min(self.end, high))

    def around(self, first: int, last: int) -> "TracedPlace":
        """The place of records that begin at these offsets. A line may belong to the range of the line break before."""
        return self.between(first - 1, last + 1)

    def between_claims(self, first: int, last: int) -> "TracedPlace":
        """The place of records that were claimed at these positions."""
        return self.between(first, last + 1)

    def holds(self, starts: Sequence[int]) -> bool:
        """Whether these offsets of records are positions of this place."""
        return bool(starts) and self.low - 1 <= starts[0] and starts[-1] <= self.high


@dataclass(frozen=True, slots=True)
class TracedElement:
    """The element that items were read from, with the place of their claim."""

    element: Any
    place: TracedPlace


class Trace:
    """The file of one slot."""

    def __init__(self, path: str) -> None:
        self._single = MOST_SINGLE
        """How many more records are delivered one by one."""
        self._operator = ""
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # a shared folder without locks, from which the driver could not read the file either
            os.close(self._file)
            os.unlink(path)  # noqa: PTH108 - as it was opened
            raise
        self.note(None)  # an operator may be entered before the first place is noted

    @classmethod
    def into(cls, folder: str | None, slot: str) -> "Trace | None":
        """The trace of a slot; None if the attempt is not traced, or the slot does not reach the driver's folder."""
        with suppress(OSError):
            return None if folder is None else cls(f"{folder}/{slot}-{secrets.token_hex(4)}")
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End the trace; if the block raised, with the place where it did."""
        self.end(failed=kind is not None and issubclass(kind, Exception))

    @property
    def is_fine(self) -> bool:
        """Whether records are still delivered one by one."""
        return self._single > 0

    def note(self, place: TracedPlace | None) -> None:
        """Note what is processed from now on; None: no record."""
        line = "" if place is None else _line_of(place)
        # Not truncated first: the process may end between the two calls. The end of a longer note remains behind the
        # line break, where nothing reads it.
        os.pwrite(self._file, f"{line}\n".encode(), 0)

    def enter(self, operator: str) -> None:
        """Note whose code runs from now on, as long as records are delivered one by one."""
        if self.is_fine:
            self._operator = operator
            os.pwrite(self._file, f"{json.dumps(operator)}\n".encode(), _OPERATOR_AT)

    def within(self, operator: str, call: Callable[P, T]) -> Callable[P, T]:
        """Return `call` such that it notes the operator, and the one before when it returns."""

        def noted(*args: P.args, **kwargs: P.kwargs) -> T:
            if not self.is_fine:
                return call(*args, **kwargs)
            before = self._operator
            self.enter(operator)
            result = call(*args, **kwargs)
            self.enter(before)
            return result

        return noted

    def one_by_one(self, batch: Batch[Any], place: TracedPlace, claims: Sequence[int] = ()) -> Iterator[Batch[Any]]:
        """Yield the records of a batch one by one, then in parts, and note the place of each as exactly as it is known.

        `claims` are the positions of the records, if each was claimed; else their offsets show where they are.
        """
        is_claimed = len(claims) == len(batch)
        starts = claims if is_claimed else _starts_in(batch, place)
        if not starts:
            self.note(place)
            yield batch
            return
        around, part, at = place.between_claims if is_claimed else place.around, _part_of(len(batch)), 0
        while at < len(batch):
            count = 1 if self._single > 0 else min(part, len(batch) - at)
            self.count()
            self.note(around(starts[at], starts[at + count - 1]))
            yield batch.sliced(at, count)
            at += count

    def count(self) -> None:
        """Count a record, or a claim. After the last one, it is not known whose code runs."""
        if self._single == 1:
            self.enter("")
        self._single -= 1

    def end(self, *, failed: bool) -> None:
        """Close the file; keep the last place if the slot failed there."""
        if not failed:
            self.note(None)
        os.close(self._file)


class TracedReading:
    """Notes what a splittable operator processes, claim by claim."""

    def __init__(self, trace: Trace, flush: Callable[[], None] = lambda: None) -> None:
        """`flush` delivers the items that wait: they belong to the claim before."""
        self._trace = trace
        self._flush = flush
        self.origin: TracedElement | None = None
        """The origin of the items that are sent now."""
        self._claims: Sequence[int] = ()
        """The positions that were claimed together, until their records are sent."""
        self._is_coarse = False
        """Whether the origin is that of all later claims of its element, too."""

    def begin(self, item: WorkItem, element: Any, tracker: RestrictionTracker[Any, Any]) -> None:
        """Note the claims of an item. The claims of one that has shares are not positions of it."""
        self._trace.enter(item.into.operator)
        self._turn_to(element, whole := TracedPlace.of(item))
        if item.restriction is not None:
            return
        claim, claim_many = tracker.try_claim, tracker.claim_many

        def try_claim(position: Any) -> bool:
            is_granted = claim(position)
            if is_granted:
                self._claimed(element, whole.between(index(position), whole.end))
            return is_granted

        def try_claims(positions: Any) -> int:
            granted = claim_many(positions)
            if granted:
                claims = [index(positions[at]) for at in range(granted)]
                self._claimed(element, whole.between_claims(claims[0], claims[-1]))
                # After `_claimed`, which ends the claims before.
                self._claims = claims
            return granted

        vars(tracker).update(try_claim=try_claim, claim_many=try_claims)  # as `fail_claims` does

    def sent(self, batch: Batch[Any]) -> Iterator[Batch[Any]]:
        """Yield the records of a batch one by one, for the caller to send; then note the positions behind them."""
        assert self.origin is not None, "an element is processed"
        element, place = self.origin.element, self.origin.place
        claims = self._claims if len(self._claims) == len(batch) else ()
        for one in self._trace.one_by_one(batch, place, claims):
            yield one
            self._flush()
        if last := claims or _starts_in(batch, place):
            self._turn_to(element, place.between(last[-1] + 1, place.end))

    def end(self) -> None:
        """Note that no record is processed."""
        self.origin = None
        self._trace.note(None)

    def _claimed(self, element: Any, place: TracedPlace) -> None:
        self._flush()
        self._claims = ()
        self._trace.count()
        if self._trace.is_fine:
            self._turn_to(element, place)
            return
        if not self._is_coarse:  # then the origin stays, so that items of several claims gather in one batch
            self._turn_to(element, replace(place, high=place.end))
            self._is_coarse = True
        self._trace.note(place)

    def _turn_to(self, element: Any, place: TracedPlace) -> None:
        self._claims = ()
        self.origin, self._is_coarse = TracedElement(element, place), False
        self._trace.note(place)


def _part_of(count: int) -> int:
    return max(LEAST_SLICE, -(-count // SLICES))


def _starts_in(batch: Batch[Any], place: TracedPlace) -> Sequence[int]:
    """The offsets of records, if they are positions of this place."""
    starts = offsets_in(batch) or ()
    return starts if place.holds(starts) else ()


def folder_for_traces(application_path: str, window_id: int) -> str:
    """Make a folder for the traces of an attempt, in the application's folder if that is a folder of this machine."""
    if is_url(application_path):
        return tempfile.mkdtemp(prefix="dagkit-traces-")
    staging = Path(local_path(application_path), "staging", str(window_id))
    staging.mkdir(parents=True, exist_ok=True)
    return tempfile.mkdtemp(prefix="traces-", dir=staging)


def traced(folder: str) -> list[TracedPlace]:
    """The places where the slots of an attempt ended or failed, without slots that still run."""
    places = []
    for path in Path(folder).glob("*"):  # none if another program has removed the folder
        with path.open("rb") as file, suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            line = file.readline().decode("ascii").strip()
            file.seek(_OPERATOR_AT)
            operator = json.loads(file.readline() or '""')
            places += [replace(_place_in(line), operator=operator)] if line else []
    return sorted(set(places), key=lambda place: (place.into, place.number, place.low, place.high))


def remove_traces(folder: str) -> None:
    """Remove the folder of an attempt that has ended."""
    shutil.rmtree(folder, ignore_errors=True)
    if (window := Path(folder).parent).name.isdecimal():
        with suppress(OSError):  # pieces of files are staged beside it
            window.rmdir()


def _line_of(place: TracedPlace) -> str:
    return json.dumps([place.into, place.number, place.start, place.end, place.low, place.high])


def _place_in(line: str) -> TracedPlace:
    into, number, *bounds = json.loads(line)
    return TracedPlace(Address(into), tuple(number), *bounds)
