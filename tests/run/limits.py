"""Each test ends: one that hangs shows what all threads do and fails, and the others go on."""

import faulthandler
import math
import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.patience import within
from tests.run.groups import services_of

UNIT_SECONDS = 60
SERVICE_SECONDS = 180
TRIAL_SECONDS = 1800
_INHERITED: Final = ("PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT", "PYTEST_XDIST_TESTRUNUID")
"""What a pytest that a test starts would take for its own."""


class _LastResort(threading.Thread):
    """Ends this process if a test neither ends nor is interrupted: pytest-xdist starts another process and goes on.

    It is no timer of `faulthandler`: a fork copies the locks of that timer but not its thread, so that a child which
    sets a timer of its own waits for ever.
    """

    def __init__(self) -> None:
        super().__init__(name="last resort", daemon=True)
        self.ends_at = math.inf
        self._shown = os.fdopen(os.dup(2), "w")  # no test captures it

    def run(self) -> None:
        while time.monotonic() < self.ends_at:
            time.sleep(1)
        faulthandler.dump_traceback(self._shown, all_threads=True)
        os._exit(1)


_LAST_RESORT: Final = pytest.StashKey[_LastResort]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_LAST_RESORT] = _LastResort()
    config.stash[_LAST_RESORT].start()
    for name in _INHERITED:
        os.environ.pop(name, None)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """End a test after its time, and this process after twice that time."""
    seconds, last_resort = within(_seconds(item)), item.config.stash[_LAST_RESORT]

    def end(*_: Any) -> None:
        with tempfile.TemporaryFile("w+") as stacks:
            faulthandler.dump_traceback(stacks, all_threads=True)
            stacks.seek(0)
            pytest.fail(f"{item.nodeid} did not end within {seconds:.0f} s; all threads:\n{stacks.read()}")

    last_resort.ends_at = time.monotonic() + 2 * seconds
    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        last_resort.ends_at = math.inf


def _seconds(item: pytest.Item) -> int:
    # With the profile of trials, searches that stand in the gate, too, draw eight times as many examples.
    if item.get_closest_marker("trial") or item.config.getoption("hypothesis_profile", None) == "trials":
        return TRIAL_SECONDS
    return SERVICE_SECONDS if services_of(item) else UNIT_SECONDS
