"""What leaves a slot: batches on their way to slots of later levels, or to the next window."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from dagkit.api.controls import Stamped
from dagkit.engine.program.program import Target
from dagkit.engine.worker.instances import GATHERED_ITEMS, Receiver, Take, of_batches
from dagkit.plan.model import Routing
from dagkit.schema.batch import Batch


@dataclass(frozen=True, slots=True)
class Sent:
    """A batch that goes to one slot: of this window, or of the next."""

    wire: int
    slot: int
    level: int
    delayed: bool
    batch: Batch[Any]


NOTHING_SENT = Sent(wire=-1, slot=-1, level=-1, delayed=False, batch=Batch.of([]))
"""What is given where there is nothing, so that others get a turn."""


def owned(sent: Sent) -> Sent:
    """The batch as Python values: its columns may lie in memory that is used again once the call returns."""
    return replace(sent, batch=Batch.of(sent.batch.items()))


class Outbox:
    """What one slot, or the driver, sends; those who write it and those who carry it on take turns."""

    def __init__(self, slot: int) -> None:
        self.slot = slot
        self.keep: Callable[[Sent], Sent] = owned
        """Makes of a batch what may wait; whoever carries batches on as bytes writes them here."""
        self._full: list[Sent] = []
        self._slits: list[Receiver] = []

    def channel(self, target: Target) -> Receiver:
        """Where what goes to one target is dropped in."""
        channel = self._by_item(target) if target.routing is Routing.KEYED else of_batches(self._sender(target))
        channel = replace(channel, control=self._telling(target, channel))
        self._slits.append(channel)
        return channel

    def ready(self) -> Iterator[Sent]:
        """What need not wait."""
        full, self._full = self._full, []
        yield from full

    def rest(self) -> Iterator[Sent]:
        """All that is still there."""
        for channel in self._slits:
            if channel.flush is not None:
                channel.flush()
        yield from self.ready()

    def _sender(self, target: Target) -> Take:
        number = 0

        def send(batch: Batch[Any]) -> None:
            nonlocal number
            if not len(batch):  # a delay that holds nothing must not make another window for it
                return
            for slot, share in target.shares(batch, self.slot, number):
                self._full.append(self.keep(Sent(target.wire, slot, target.level, target.delayed, share)))
            number += len(batch)

        return send

    def _telling(self, target: Target, channel: Receiver) -> Take | None:
        """What tells every partition of a target, after the items that were sent before; delays hold no control."""
        if target.delayed:
            return None
        slots = (self.slot,) if target.routing is Routing.STRAIGHT else range(target.slots)

        def tell(stamped: Stamped) -> None:
            if channel.flush is not None:
                channel.flush()
            for slot in slots:
                sent = Sent(target.wire, slot, target.level, delayed=False, batch=Batch.of([stamped]))
                self._full.append(self.keep(sent))

        return tell

    def _by_item(self, target: Target) -> Receiver:
        """Single items wait by the slot that owns them, so that few batches go out and not many small ones."""
        send = self._sender(target)
        waiting: dict[int, list[Any]] = {}
        count = 0

        def close(slot: int) -> None:
            items = waiting.pop(slot)
            self._full.append(self.keep(Sent(target.wire, slot, target.level, target.delayed, Batch.of(items))))

        def by_batch(batch: Batch[Any]) -> None:
            nonlocal count
            count += len(batch)
            send(batch)

        def drop(item: Any) -> None:
            nonlocal count
            count += 1
            for slot in target.slots_of(item, self.slot, 0):
                items = waiting.setdefault(slot, [])
                items.append(item)
                if len(items) >= GATHERED_ITEMS:
                    close(slot)

        def flush() -> None:
            for slot in list(waiting):
                close(slot)

        return Receiver(drop, by_batch, flush, passed=lambda: count)
