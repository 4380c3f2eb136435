"""The child of a warm driver that keeps Java with Spark."""

import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from dagkit.errors import RunFailure
from dagkit.ground.clock import patient
from dagkit.runs.machine import Machine
from dagkit.runs.warm.place import ServeFailed, receive, send

_TIDIED_WITHIN_SECONDS = 10.0
_ENDED_WITHIN_SECONDS = 30.0
_PAUSE_SECONDS = 0.01
Keep = Callable[[socket.socket], None]
"""Runs in a child. It sends `{"java": …}` once Java is ready, then an answer to each message, which asks it to tidy
after a launch; it returns when the socket is closed."""


class Keeper:
    """The child that keeps Java, seen from the warm driver."""

    def __init__(self, keep: Keep, closed: Sequence[socket.socket | TextIO]) -> None:
        """Fork the child, in which these files of the warm driver are closed."""
        self.java: Any = None
        """The address of Java; None while it starts."""
        self.ended = False
        self.connection, theirs = socket.socketpair()
        self.process = os.fork()
        if self.process == 0:
            with in_child((*closed, self.connection)):
                keep(theirs)
        theirs.close()

    def await_ready(self) -> None:
        """Wait until Java is ready. Raise ServeFailed if it does not start."""
        try:
            answer, _ = receive(self.connection)
        except (OSError, EOFError):
            self.ended = True
            raise ServeFailed("the process that starts Spark has ended", "see the lines above") from None
        if "failed" in answer:
            raise ServeFailed(f"Spark cannot be kept running here: {answer['failed']}", answer["help"])
        self.java = answer["java"]

    def tidy(self) -> bool:
        """Prepare Java for the next launch; whether that worked."""
        # No launch is answered meanwhile.
        self.connection.settimeout(patient(_TIDIED_WITHIN_SECONDS))
        try:
            send(self.connection, {})
            receive(self.connection)
        except (OSError, EOFError):
            os.kill(self.process, signal.SIGKILL)  # it may wait for Java, which ends with it
            return False
        return True

    def end(self) -> None:
        """End Java and the child."""
        self.connection.close()
        until = time.monotonic() + patient(_ENDED_WITHIN_SECONDS)
        with suppress(ChildProcessError):
            while os.waitpid(self.process, os.WNOHANG) == (0, 0):
                if time.monotonic() > until:
                    os.kill(self.process, signal.SIGKILL)
                time.sleep(_PAUSE_SECONDS)


@contextmanager
def in_child(closed: Sequence[socket.socket | TextIO]) -> Iterator[None]:
    """In a forked process: close the files of its parent, and end instead of returning to what its parent does next."""
    code = 70
    try:
        os.setsid()  # signals of a terminal are for its parent
        signal.set_wakeup_fd(-1)
        # As in a new process: the fork has the handlers of the warm driver.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        for each in closed:
            each.close()
        yield
        code = 0
    except BaseException:  # noqa: BLE001 - the process ends here
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code)


def keep_spark(machine: Machine, connection: socket.socket) -> None:
    """Start Spark, and keep it until the connection is closed; tidy after each launch."""
    from dagkit.backends.spark.session.kept_java import KeptJava  # noqa: PLC0415 - as above
    from dagkit.backends.spark.window.daemon import KEPT  # noqa: PLC0415 - only the child uses Spark

    os.environ[KEPT] = "1"
    try:
        kept = KeptJava(machine.started())
    except RunFailure as failure:
        send(connection, {"failed": failure.problem, "help": failure.help})
        return
    try:
        send(connection, {"java": kept.address})
        while _asked(connection):
            kept.tidy()
            send(connection, {})
    finally:
        kept.end()


def _asked(connection: socket.socket) -> bool:
    """Wait for a message; whether one came."""
    try:
        receive(connection)
    except (EOFError, OSError):
        return False
    return True
