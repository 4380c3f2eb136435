"""Take samples of what an output sends in one window, where it is sent."""

from collections.abc import Callable, Iterable
from typing import Any

from dagkit.engine.program.failures import Spot, offsets_in
from dagkit.engine.program.program import Port
from dagkit.engine.worker.instances import Receiver
from dagkit.engine.worker.protocol import Sample, Tap
from dagkit.schema.batch import Batch


class Tapping:
    """The samples of one output in one slot."""

    def __init__(self, tap: Tap, slot: int, spot: Callable[[int | None], Spot] = lambda _: Spot()) -> None:
        """Take a function that returns the place of a record, given its position in the element, if that is known."""
        self.output: Port = (tap.operator, tap.port)
        self.samples: list[Sample] = []
        self._tap = tap
        self._slot = slot
        self._spot = spot
        self._passed = 0

    @property
    def receiver(self) -> Receiver:
        """What is bound to the output beside the operators that it sends to."""
        return Receiver(lambda item: self.take([item]), self._take_batch)

    def take(self, items: Iterable[Any], positions: Iterable[int | None] | None = None) -> None:
        """Keep the items whose turn it is; positions are those of the items, if they are known."""
        if self._is_full:
            return
        places = iter(positions) if positions is not None else None
        for item in items:
            position = None if places is None else next(places, None)
            if self._passed % self._tap.every == 0 and not self._is_full:
                self.samples.append(self._tap.sample(self._slot, item, self._spot(position).place))
            self._passed += 1

    def _take_batch(self, batch: Batch[Any]) -> None:
        if not self._is_full:
            self.take(batch.items(), offsets_in(batch))

    @property
    def _is_full(self) -> bool:
        return len(self.samples) >= self._tap.most
