"""Looking with an input operator until something is the case, without waiting for ever."""

import time
from collections.abc import Iterator
from typing import Any

from dagkit.testing import Alone
from tests.patience import within

LOOKS_SECONDS = within(60)


def looks(alone: Alone[Any]) -> Iterator[None]:
    """Look again and again until the caller has what it looks for. Fail after a long time."""
    until = time.monotonic() + LOOKS_SECONDS
    while time.monotonic() < until:
        alone.look()
        yield
    raise AssertionError(f"{LOOKS_SECONDS:.0f} s of looks had no effect")


def look_for_long(alone: Alone[Any]) -> None:
    """Look until a look fails."""
    for _ in looks(alone):
        pass
