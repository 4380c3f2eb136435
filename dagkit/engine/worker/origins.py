"""Where the items that a slot processes were read: the element, such as a block of a file, and the position in it.

A batch knows the positions of its items if its columns do. Items that are sent one by one do not, so on inputs for
which the program takes origins along, the slot notes the origin of each.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Any, ParamSpec, TypeVar

from dagkit.api.operators import Operator, batch_handler_of, handler_name
from dagkit.api.ports import input_ports
from dagkit.engine.program.program import Keying
from dagkit.engine.worker.instances import GATHERED_ITEMS, Receiver, Take
from dagkit.engine.worker.tracing import Trace, TracedElement
from dagkit.schema.batch import Batch

P = ParamSpec("P")
T = TypeVar("T")


# A position with each line would be 8 % more bytes, for items that are nearly all accepted. So positions cross an
# exchange only on inputs from which a connected port with `names_origins` is reached: 9 % more bytes and 1.05 of the
# processor time there, and equal bytes everywhere else. If an operator raises behind an unmarked input, the lost window
# runs once more with all inputs marked, to find the place.
@dataclass(slots=True)
class _Gathered:
    """Single items that wait to become a batch: of one element, and all with a position, or none of them."""

    element: Any = None
    items: list[Any] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)

    def takes(self, element: Any, position: int | None) -> bool:
        """Whether an item of this origin may join those that wait."""
        if not self.items:
            return True
        return element is self.element and (position is None) == (not self.starts) and len(self.items) < GATHERED_ITEMS

    def add(self, item: Any, element: Any, position: int | None) -> None:
        self.element = element
        self.items.append(item)
        if position is not None:
            self.starts.append(position)

    def batch(self) -> Batch[Any]:
        batch: Batch[Any] = Batch.of(self.items)
        starts = self.starts
        return batch.placed(lambda: starts) if starts else batch


class Origins:
    """The origin of the present item of one slot."""

    def __init__(self, read_now: Callable[[], Any] = lambda: None, trace: Trace | None = None) -> None:
        """Take a function that returns the element that the slot is reading, or None; if traced, with its place."""
        self._read_now = read_now
        self._trace = trace
        self._delivered: tuple[Any, ...] = ()
        """The element of the batch that is delivered, if it came from another slot or had to wait."""
        self._position: int | None = None

    def now(self) -> tuple[Any, int | None]:
        """The element of the present item, and its position; None if unknown."""
        element, position = self._now()
        return element.element if isinstance(element, TracedElement) else element, position

    def _now(self) -> tuple[Any, int | None]:
        return self._delivered[0] if self._delivered else self._read_now(), self._position

    def arrive(self, batch: Batch[Any], element: Any, take: Take) -> None:
        """Deliver a batch of another slot; in a traced attempt, record by record."""
        if self._trace is None or not isinstance(element, TracedElement):
            self.deliver(batch, element, take)
            return
        for one in self._trace.one_by_one(batch, element.place):
            self.deliver(one, element, take)
        self._trace.note(None)

    def deliver(self, batch: Batch[Any], element: Any, take: Take) -> None:
        """Deliver a batch whose items were read from an element. After a failure, their origin stays known."""
        before = self._delivered, self._position
        # Restored only after success: the failure of the slot asks for the origin of the item that failed.
        self._delivered, self._position = (element,), None
        take(batch)
        self._delivered, self._position = before

    def of(self, batch: Batch[Any]) -> tuple[Batch[Any], Any]:
        """The batch with the positions of its items, as far as they are known, and the element of all of them."""
        element, position = self._now()
        if position is not None and batch.places() is None:  # it was made of one item
            batch = batch.placed(lambda: [position] * len(batch))
        return batch, element

    def within(self, operator: str, call: Callable[P, T]) -> Callable[P, T]:
        """Return `call` such that a traced attempt notes the operator while it runs."""
        return call if self._trace is None else self._trace.within(operator, call)

    def around(self, operator: str, receiver: Receiver) -> Receiver:
        """Return a receiver such that a traced attempt notes its operator while it runs."""
        if self._trace is None:
            return receiver
        item, batch = self.within(operator, receiver.item), self.within(operator, receiver.batch)
        flush = None if receiver.flush is None else self.within(operator, receiver.flush)
        return replace(receiver, item=item, batch=batch, flush=flush)

    def into(self, receiver: Receiver, operator: Operator, port: str, keying: Keying) -> Receiver:
        """Return the receiver of an input such that the origin of each item is known while it is processed."""
        if not callable(getattr(operator, handler_name(input_ports(type(operator))[port]), None)):
            return replace(self.batches(receiver.batch), passed=receiver.passed)
        if keying.codec is None and batch_handler_of(operator, port) is not None:
            return receiver
        return replace(receiver, batch=lambda batch: self._one_by_one(batch, receiver.item))

    def batches(self, take: Take) -> Receiver:
        """Return a receiver that gathers single items into batches, which know the origins of their items."""
        waiting, count = _Gathered(), 0

        def flush() -> None:
            nonlocal waiting, count
            if waiting.items:
                full, waiting = waiting, _Gathered()
                count += len(full.items)
                self.deliver(full.batch(), full.element, take)

        def wait(item: Any) -> None:
            element, position = self._now()
            if not waiting.takes(element, position):
                flush()
            waiting.add(item, element, position)

        def take_after_those(batch: Batch[Any]) -> None:
            nonlocal count
            flush()
            count += len(batch)
            take(batch)

        return Receiver(wait, take_after_those, flush, passed=lambda: count)

    def _one_by_one(self, batch: Batch[Any], take: Take) -> None:
        before = self._position
        for item, position in zip(batch.items(), batch.places() or repeat(before), strict=False):
            self._position = position
            take(item)
        self._position = before
