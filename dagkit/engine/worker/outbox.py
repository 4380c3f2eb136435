"""The batches that leave a slot for slots of later levels, or for the next window."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from dagkit.api.controls import Stamped
from dagkit.engine.program.entrances import made_by, note
from dagkit.engine.program.program import Target
from dagkit.engine.worker.instances import GATHERED_ITEMS, Receiver, Take, of_batches
from dagkit.engine.worker.origins import Origins
from dagkit.plan.model import Routing
from dagkit.schema.batch import Batch


@dataclass(frozen=True, slots=True)
class Sent:
    """A batch for one slot, of this window or of the next."""

    wire: int
    slot: int
    level: int
    delayed: bool
    batch: Batch[Any]
    element: Any = None
    """The element that all items were read from, if the target takes origins along and it is known."""


class Arrived(NamedTuple):
    """A batch that arrived on a wire."""

    wire: int
    batch: Batch[Any]
    element: Any = None
    """The element that all items were read from; None if it is unknown."""


NOTHING_SENT = Sent(wire=-1, slot=-1, level=-1, delayed=False, batch=Batch.of([]))
"""Yielded if there is nothing to send, so that other slots get a turn."""


def owned(sent: Sent) -> Sent:
    """Copy the batch to Python values: the memory of its columns may be reused once the call returns."""
    batch, places = Batch.of(sent.batch.items()), None if sent.element is None else sent.batch.places()
    return replace(sent, batch=batch if places is None else batch.placed(lambda: places))


class Outbox:
    """The batches that one slot, or the driver, sends; writing and reading it alternate."""

    def __init__(self, slot: int, origins: Origins | None = None) -> None:
        self.slot = slot
        self.origins = origins or Origins()
        self.keep: Callable[[Sent], Sent] = owned
        """Converts a batch for later sending; a backend that sends bytes replaces it."""
        self._full: list[Sent] = []
        self._channels: list[Receiver] = []

    def channel(self, target: Target) -> Receiver:
        """Return the receiver for the items of one target."""
        if target.placed:
            channel = self.origins.batches(self._sender(target))
        else:
            channel = self._by_item(target) if target.routing is Routing.KEYED else of_batches(self._sender(target))
        channel = replace(channel, control=self._control_sender(target, channel))
        self._channels.append(channel)
        return channel

    def ready(self) -> Iterator[Sent]:
        """Yield the batches that are ready to send."""
        full, self._full = self._full, []
        yield from full

    def rest(self) -> Iterator[Sent]:
        """Yield all remaining batches."""
        for channel in self._channels:
            if channel.flush is not None:
                channel.flush()
        yield from self.ready()

    def _sender(self, target: Target) -> Take:
        number = 0

        def send(batch: Batch[Any]) -> None:
            nonlocal number
            if not len(batch):  # a delay that holds nothing must not make another window for it
                return
            batch, element = self.origins.of(batch) if target.placed else (batch, None)
            for slot, share in made_by(target.into[0], target.shares(batch, self.slot, number)):
                self._full.append(self.keep(Sent(target.wire, slot, target.level, target.delayed, share, element)))
            number += len(batch)

        return send

    def _control_sender(self, target: Target, channel: Receiver) -> Take | None:
        """Return what sends control tuples to all partitions of a target, behind earlier items; None for delays."""
        if target.delayed:
            return None
        slots = (self.slot,) if target.routing is Routing.STRAIGHT else range(target.slots)

        def send_control(stamped: Stamped) -> None:
            if channel.flush is not None:
                channel.flush()
            for slot in slots:
                sent = Sent(target.wire, slot, target.level, delayed=False, batch=Batch.of([stamped]))
                self._full.append(self.keep(sent))

        return send_control

    def _by_item(self, target: Target) -> Receiver:
        """Gather single items by the slot that owns them, so that few large batches are sent."""
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

        def put(item: Any) -> None:
            nonlocal count
            count += 1
            try:
                slots = target.owners(item)
            except Exception as error:  # the receiver's key or codec, not the sender's code
                note(error, target.into[0], item)
                raise
            for slot in slots:
                items = waiting.setdefault(slot, [])
                items.append(item)
                if len(items) >= GATHERED_ITEMS:
                    close(slot)

        def flush() -> None:
            for slot in list(waiting):
                close(slot)

        return Receiver(put, by_batch, flush, passed=lambda: count)
