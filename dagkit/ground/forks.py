"""Signals and locks in processes that operators or dagkit fork, as multiprocessing does."""

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

Handler = Callable[[int, FrameType | None], object]


def over_forks(lock: threading.Lock) -> threading.Lock:
    """Return the lock, which no forked process inherits while another thread holds it: it would stay locked there."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    return lock


def only_here(handler: Handler) -> Handler:
    """A signal handler for this process. In a process that is forked from it, the signal has its usual effect.

    A forked process inherits handlers. One that only asks a driver to stop would keep SIGTERM from ending the workers
    of a `multiprocessing.Pool`, which waits for them when it ends.
    """
    here = os.getpid()

    def handle(number: int, frame: FrameType | None) -> None:
        if os.getpid() == here:
            handler(number, frame)
            return
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        signal.raise_signal(number)

    return handle
