"""Hand a launch over to a warm driver, if one is there that fits: it prints and ends as if it ran here."""

import fcntl
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any

from dagkit.errors import RunFailure
from dagkit.ground.clock import patient
from dagkit.runs.machine import Machine
from dagkit.runs.warm.circumstances import Circumstances
from dagkit.runs.warm.place import ServeFailed, is_of_this_user, is_private, log_path, receive, send, socket_path

STDERR = 2
"""The last of the standard files."""
_ANSWERS_WITHIN_SECONDS = 10.0
_NOTICED_WITHIN_SECONDS = 0.5
_runs_here = False
"""Whether no launch of this process is handed over."""
_FORWARDED = (signal.SIGINT, signal.SIGTERM)


class WarmDriverEnded(RunFailure):
    """The process to which the launch was handed over has ended without reporting how."""

    code = "warm-driver-ended"

    def __init__(self) -> None:
        super().__init__(
            "the process that ran this launch for the warm driver has ended",
            "the ledger is intact; launch again to resume after the last committed window",
        )


@dataclass(frozen=True, slots=True)
class Declined:
    """No warm driver runs the launch, for this reason; None if there is no warm driver."""

    reason: str | None = None


def hand_over(machine: Machine, command: str) -> int | Declined:
    """Let the warm driver of this directory run this process's command line, and return its exit code.

    `command` is the name of the program in its messages.
    """
    is_main = threading.current_thread() is threading.main_thread()  # another thread gets no signals
    connection = connected() if is_main and not _runs_here else None
    if connection is None:
        return Declined()
    with connection:
        files = open_files()
        request = {
            "ask": "launch",
            "circumstances": Circumstances.here(machine).document(),
            "path": sys.path,
            "arguments": sys.argv,
            "command": command,
            "files": files,
        }
        try:
            send(connection, request, files)
            answer, _ = receive(connection)
        except (OSError, EOFError):
            return Declined("it does not answer")
        if "declined" in answer:
            return Declined(answer["declined"])
        with _forwarding(connection):  # a signal before ends this process, and with it the launch
            ended = _ended(connection)
    if "signal" in ended:
        _end_by(ended["signal"])
    return int(ended["code"])


def use_no_warm_driver() -> None:
    """Run launches of this process here: it is itself one that a warm driver forked."""
    global _runs_here  # noqa: PLW0603 - the state of the process
    _runs_here = True


def asked(question: str) -> dict[str, Any] | None:
    """The answer of the warm driver of this directory to a question; None if there is none.

    Raise `ServeFailed` if it does not answer.
    """
    connection = connected()
    if connection is None:
        return None
    with connection:
        try:
            send(connection, {"ask": question})
            answer, _ = receive(connection)
        except (OSError, EOFError):
            answer = {"declined": "it does not answer"}
    if "declined" in answer:
        problem = f"the warm driver of this directory did not {question}: {answer['declined']}"
        raise ServeFailed(problem, f"ask again, or end its process; it writes to {log_path()}")
    return answer


def connected() -> socket.socket | None:
    """A connection to the warm driver of this directory; None if there is none."""
    path = socket_path()
    if not is_private(path.parent):
        return None
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(patient(_ANSWERS_WITHIN_SECONDS))
        connection.connect(str(path))
        if is_of_this_user(connection):
            return connection
    except OSError:
        pass
    connection.close()
    return None


def _ended(connection: socket.socket) -> dict[str, Any]:
    """Wait for the end of the launch, and return its code or its signal."""
    connection.settimeout(None)
    # Python handles a signal that comes right before a system call only after it.
    while not select.select([connection], [], [], _NOTICED_WITHIN_SECONDS)[0]:
        pass
    try:
        ended, _ = receive(connection)
    except (OSError, EOFError):
        raise WarmDriverEnded from None
    return ended


def _end_by(number: int) -> None:
    """End this process by a signal."""
    # The system refuses handlers of these.
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


@contextmanager
def _forwarding(connection: socket.socket) -> Iterator[None]:
    """Send the numbers of signals instead of handling them."""

    def forward(number: int, _: FrameType | None) -> None:
        with suppress(OSError):
            connection.send(bytes([number]))

    before = {number: signal.signal(number, forward) for number in _FORWARDED}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def open_files() -> list[int]:
    """The numbers of the standard files and of those that this process inherited, as with `<(...)` of a shell."""
    numbers = [0, 1, 2]
    for number in map(int, os.listdir("/dev/fd")):  # noqa: PTH208 - numbers, not paths
        with suppress(OSError):
            if number > STDERR and not fcntl.fcntl(number, fcntl.F_GETFD) & fcntl.FD_CLOEXEC:
                numbers.append(number)
    return numbers
