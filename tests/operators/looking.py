"""Looking with an input operator until something is the case, without waiting for ever."""

import time
from collections.abc import Iterator
from typing import Any

from dagkit.testing import Alone

PATIENCE_SECONDS = 60


def looks(alone: Alone[Any]) -> Iterator[None]:
    """Look again and again until the caller has what it looks for. Fail after a minute."""
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        alone.look()
        yield
    raise AssertionError(f"{PATIENCE_SECONDS} s of looks had no effect")


def look_for_long(alone: Alone[Any]) -> None:
    """Look until a look fails."""
    for _ in looks(alone):
        pass
