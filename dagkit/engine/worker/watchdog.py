"""Ends a worker process that makes no progress, as one does whose operator loops for ever on a record.

A thread looks for progress, and a timer that needs no lock of the interpreter ends the process: so compiled code that
never returns is ended, too. The timer writes the tracebacks of all threads first. It is that of `faulthandler`; in a
forked process, it is the alarm of the system. A fork copies the locks of a timer that the driver has set but not its
thread, so setting another one would wait for ever.
"""

import faulthandler
import os
import signal
import sys
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import IO

LOOKS = 4
"""How often the thread looks within the time that a record may take."""

_report: IO[bytes] | None = None
"""Where the tracebacks go; None: to the file that the worker's host reads, else to standard error."""


@contextmanager
def deaths_reported_to(file: IO[bytes]) -> Iterator[None]:
    """Write the tracebacks of a forked process that is ended into a file. Its main thread calls this."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # it ends the process, after `faulthandler` has written
    faulthandler.register(signal.SIGALRM, file, all_threads=True, chain=True)
    global _report  # noqa: PLW0603 - the timer belongs to the process, too
    before, _report = _report, file
    try:
        yield
    finally:
        _report = before


@contextmanager
def ended_without_progress(timeout_millis: int | None, progress: Callable[[], Hashable]) -> Iterator[None]:
    """End the process if `progress` returns the same value for the whole timeout; None: never."""
    if timeout_millis is None:
        yield
        return
    pause, over = timeout_millis / 1000 / LOOKS, threading.Event()
    with report_file() as file:

        def start_timer() -> None:
            # One look more than the timeout: progress between the last look and its end must still restart the timer.
            seconds = (LOOKS + 1) * pause
            if _report is None:
                faulthandler.dump_traceback_later(seconds, exit=True, file=file)
            else:
                signal.setitimer(signal.ITIMER_REAL, seconds)

        def cancel_timer() -> None:
            if _report is None:
                faulthandler.cancel_dump_traceback_later()
            else:
                signal.setitimer(signal.ITIMER_REAL, 0)

        def look() -> None:
            last = progress()
            while not over.wait(pause):
                now = progress()
                if now != last:
                    last = now
                    start_timer()

        start_timer()
        thread = threading.Thread(target=look, name="watchdog", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            # Before the timer is cancelled: until it ends, the thread may set it once more.
            thread.join()
            cancel_timer()


@contextmanager
def report_file() -> Iterator[IO[bytes] | int]:
    """The file for the tracebacks. Spark adds the contents of its file to its failure."""
    folder = os.environ.get("PYTHON_FAULTHANDLER_DIR")
    if _report is not None:
        yield _report
    elif folder:
        with open(os.path.join(folder, str(os.getpid())), "ab") as file:  # noqa: PTH118, PTH123 - as PySpark names it
            yield file
    else:
        yield sys.__stderr__.fileno() if sys.__stderr__ is not None else 2
