"""A launch in a process that the warm driver forked: it takes on what a process of its own would have."""

import atexit
import fcntl
import io
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn

from dagkit.runs.warm.place import send

Run = Callable[[Sequence[str], str], None]
"""Runs a command line, given its arguments and the name of its program; it ends with SystemExit."""
_INTERRUPTING = signal.SIGURG
"""It only ends a system call: without a handler, it is ignored."""
_ENTERED_WITHIN_SECONDS = 0.05


def run_handed_over(
    request: Mapping[str, Any], files: Sequence[int], connection: socket.socket, ending: int, run: Run
) -> NoReturn:
    """Run the command line of a request, with its open files, and send its exit code.

    Something is written to `ending` before, so that the warm driver waits for this process.
    """
    # above all numbers that the files of the launch take, so that none of them replaces the socket or the pipe
    above = max(request["files"]) + 1
    connection = socket.socket(fileno=_moved(connection.detach(), above))
    ended_pipe = io.FileIO(_moved(ending, above), "w")
    # A process that an operator forks, and that outlives this one, would keep those waiting that see its end by these.
    for file in (connection, ended_pipe):
        os.register_at_fork(after_in_child=file.close)
    _place(files, request["files"])
    _take_on(request)
    ended = threading.Event()
    signal.signal(_INTERRUPTING, lambda *_: None)
    threading.Thread(target=_follow, args=(connection, ended), name="dagkit-signals", daemon=True).start()
    code = _code_of(run, request)
    # what Python does at its end, except for freeing memory
    threading._shutdown()  # type: ignore[attr-defined] # noqa: SLF001 - waits for threads
    atexit._run_exitfuncs()  # noqa: SLF001
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    ended.set()
    with suppress(OSError):  # the warm driver has ended
        ended_pipe.write(b".")
    with suppress(OSError):  # `dagkit launch` has ended
        send(connection, {"code": code})
    os._exit(code)


def _place(files: Sequence[int], numbers: Sequence[int]) -> None:
    """Give open files the numbers that they have in `dagkit launch`."""
    # All out of the way first: one may have the number that another is to get.
    moved = [_moved(file, max(numbers) + 1) for file in files]
    for file, number in zip(moved, numbers, strict=True):
        os.dup2(file, number)
        os.close(file)


def _moved(file: int, above: int) -> int:
    """Give an open file a number that is not below this one."""
    moved = fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, above)
    os.close(file)
    return moved


def _take_on(request: Mapping[str, Any]) -> None:
    sys.stdout.reconfigure(line_buffering=os.isatty(1))  # type: ignore[union-attr]
    environment = request["circumstances"]["environment"]
    for name in os.environ.keys() - environment.keys():
        del os.environ[name]
    os.environ.update(environment)
    sys.path[:] = request["path"]
    sys.argv[:] = request["arguments"]


def _follow(connection: socket.socket, ended: threading.Event) -> None:
    """Raise the signals that `dagkit launch` got in the main thread; end with it, unless the launch has ended."""
    main = threading.main_thread()
    while (number := _received(connection)) is not None:
        assert main.ident is not None, "the main thread runs"
        # To this thread: a signal to the process may reach another one, and leave the main thread in a system call.
        signal.pthread_kill(main.ident, number)
        # Python handles a signal that comes right before a system call only after it, which may wait for ever.
        time.sleep(_ENTERED_WITHIN_SECONDS)
        signal.pthread_kill(main.ident, _INTERRUPTING)
    if not ended.is_set():
        os.kill(os.getpid(), signal.SIGKILL)


def _received(connection: socket.socket) -> int | None:
    try:
        return next(iter(connection.recv(1)), None)
    except OSError:
        return None


def _code_of(run: Run, request: Mapping[str, Any]) -> int:
    try:
        run(request["arguments"][1:], request["command"])
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return (end.code or 0) & 0xFF
        print(end.code, file=sys.stderr)  # noqa: T201 - as Python does
        return 1
    except BaseException:  # noqa: BLE001 - as Python does
        sys.excepthook(*sys.exc_info())
        return 1
    return 0
