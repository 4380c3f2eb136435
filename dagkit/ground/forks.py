"""Signals in processes that operators fork, as multiprocessing does."""

import os
import signal
from collections.abc import Callable
from types import FrameType

Handler = Callable[[int, FrameType | None], object]


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
