"""Looking with an input operator until something is the case, and acting when a server does not answer."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
    for _ in looks(alone):
        pass


@contextmanager
def at_outage(act: Callable[[], object]) -> Iterator[None]:
    """Do something when an outage is reported."""

    def seen(record: logging.LogRecord) -> bool:
        if any(report in record.getMessage() for report in ("does not answer", "has not answered")):
            act()
        return True

    logger = logging.getLogger("dagkit.api.outage")
    logger.addFilter(seen)
    try:
        yield
    finally:
        logger.removeFilter(seen)
