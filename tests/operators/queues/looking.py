"""Looking for messages until something is the case, without waiting for ever."""

import time
from collections.abc import Iterator

from dagkit.testing import Alone
from dagkit_operators.queues.queue_input import AbstractQueueInput

PATIENCE_SECONDS = 60


def looks(alone: Alone[AbstractQueueInput]) -> Iterator[None]:
    """Look again and again until the caller has what it looks for. Fail after a minute."""
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        alone.look()
        yield
    raise AssertionError(f"{PATIENCE_SECONDS} s of looks had no effect")


def look_for_long(alone: Alone[AbstractQueueInput]) -> None:
    """Look until a look fails."""
    for _ in looks(alone):
        pass
