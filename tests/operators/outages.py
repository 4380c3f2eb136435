"""Outages of servers, as tests observe them."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class AtOutage(logging.Handler):
    """Does something when an outage is reported."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__(logging.WARNING)
        self._act = act

    def emit(self, record: logging.LogRecord) -> None:
        if "does not answer" in record.getMessage():
            self._act()


@contextmanager
def at_outage(act: Callable[[], object]) -> Iterator[None]:
    handler, logger = AtOutage(act), logging.getLogger("dagkit.api.outage")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
