"""The task of a slot that stays: it works on levels of one window after another until the driver hangs up."""

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Client, Connection

from dagkit.backends.spark.shipping.level_files import LevelFiles
from dagkit.backends.spark.shipping.shipping import Shipped
from dagkit.backends.spark.window.task import LevelJob, LevelTask
from dagkit.engine.worker.protocol import WindowTask

FAMILY = "AF_UNIX"
"""The sockets between the driver and resident slots, which only the user can open."""


@dataclass(frozen=True, slots=True)
class ResidentWindow:
    """The message to a resident slot for one level of a window."""

    level: int
    window: WindowTask
    inputs: Mapping[int, bytes]
    """The pickled input of the slot, by its number."""
    files: LevelFiles


@dataclass(frozen=True, slots=True)
class ResidentTask:
    """The task of each slot. It fetches its windows from the driver."""

    shipped: Shipped
    address: str
    key: bytes
    """Proves that both sides belong to one launch."""

    def __call__(self, slot: int, _: Iterable[int]) -> Iterator[bytes]:
        try:
            driver = Client(self.address, FAMILY, self.key)
        except (OSError, EOFError):
            return iter(())  # Spark repeats the task after its slots have left
        with driver:
            # First the number of the slot: connections come in any order.
            answer = slot.to_bytes(4, "little")
            while (content := _answered(driver, answer)) is not None:
                answer = pickle.dumps(self._rows(slot, content))
        return iter(())

    def _rows(self, slot: int, content: bytes) -> Sequence[bytes]:
        """Work on a level of a window. Return what its job would."""
        asked: ResidentWindow = pickle.loads(content)  # noqa: S301 - written by our own driver
        task = LevelTask(self.shipped, asked.level, asked.window, asked.inputs)
        return list(LevelJob(task, asked.files)(slot, ()))


def _answered(driver: Connection, answer: bytes) -> bytes | None:
    """Send an answer, and return the next message; None if the driver has hung up."""
    try:
        driver.send_bytes(answer)
        return driver.recv_bytes()
    except (OSError, EOFError):
        return None
