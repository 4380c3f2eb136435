"""The task of a slot that stays: it works on one window after another until the driver hangs up."""

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Client

import pyarrow as pa

from dagkit.backends.spark.shipping import Shipped
from dagkit.backends.spark.task import LevelTask
from dagkit.engine.worker.protocol import WindowTask

FAMILY = "AF_UNIX"
"""The sockets between the driver and resident slots, which only the user can open."""


@dataclass(frozen=True, slots=True)
class ResidentWindow:
    """The message to a resident slot for one window."""

    window: WindowTask
    given: Mapping[int, bytes] = field(default_factory=dict)
    """The pickled input of the slot, by its number."""


@dataclass(frozen=True, slots=True)
class ResidentTask:
    """The task of each slot of a program with one level. It fetches its windows from the driver."""

    shipped: Shipped
    address: str
    key: bytes
    """Proves that both sides belong to one launch."""

    def __call__(self, slot: int, _: Iterable[int]) -> Iterator[bytes]:
        with suppress(OSError, EOFError), Client(self.address, FAMILY, self.key) as driver:
            driver.send_bytes(slot.to_bytes(4, "little"))
            while True:
                content = driver.recv_bytes()
                driver.send_bytes(pickle.dumps(self._rows(slot, content)))
        return iter(())

    def _rows(self, slot: int, content: bytes) -> Sequence[bytes]:
        """Work on a window. Return the rows for the driver, as record batches."""
        asked: ResidentWindow = pickle.loads(content)  # noqa: S301 - written by our own driver
        task = LevelTask(self.shipped, 0, asked.window, asked.given)
        number = pa.record_batch([pa.array([slot])], names=["id"])
        return [batch.serialize().to_pybytes() for batch in task([number])]
