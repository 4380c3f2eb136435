"""The warm driver: a process that has imported dagkit, keeps a Java with Spark, and forks a process for each launch.

It never uses Spark itself and has one thread, so that a fork of it is a fresh process of Python. Java belongs to a
child of its own (`Keeper`). One launch runs at a time; the next one begins with new workers. If a launch was
killed, or Java cannot be used again, it starts another Java.
"""

import contextlib
import gc
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from dagkit.ground.clock import patient
from dagkit.runs.machine import Machine
from dagkit.runs.warm.circumstances import Circumstances
from dagkit.runs.warm.handed_over import run_handed_over
from dagkit.runs.warm.keeper import Keep, Keeper, in_child
from dagkit.runs.warm.place import ServeFailed, is_of_this_user, listening, receive, send

_ASKED_WITHIN_SECONDS = 5.0


@dataclass(slots=True)
class _Launch:
    """The process of a launch."""

    process: int
    ending: int
    """A pipe in which something is once the launch ends, or its process has ended."""
    connection: socket.socket


@dataclass
class WarmDriver:
    """Serves the launches of one working directory. Asked to end, it lets a running launch end first."""

    machine: Machine
    keep: Keep
    run: Callable[[Any, Sequence[str], str], None]
    """Runs a command line on the Java of `keep`, as `Run` of a launch does."""
    idle_seconds: float
    """It ends after this time without a launch."""
    configured: Callable[[], object] = field(default=lambda: None)
    """Returns the contents of configuration files; a change ends the warm driver."""

    def __post_init__(self) -> None:
        self._circumstances = Circumstances.here(self.machine)
        self._configuration = self.configured()
        self._launch: _Launch | None = None
        self._since = time.monotonic()
        self._launches = 0
        self._is_ready = False
        """Whether Java was ready once."""
        self._ending = ""
        """Why it ends."""

    def serve(self, ready: Callable[[Mapping[str, Any]], None]) -> str:
        """Serve launches, and return why it ends. Call `ready` with the status once launches can come."""
        with listening() as (self._listener, lock), _signalled(self._end) as woken:
            self._own = self._listener, lock
            self._code = _code_times()
            # collections would write to the objects of imported modules, whose memory forks share
            gc.freeze()
            self._keeper = Keeper(self.keep, self._own)
            try:
                while self._keeper.java is None and not self._ending:
                    self._turn(woken)  # questions are answered meanwhile
                if self._keeper.java is not None:
                    self._since, self._is_ready = time.monotonic(), True
                    ready(self._status())
                while self._launch is not None or not self._ending:
                    self._turn(woken)
            finally:
                self._keeper.end()
        return self._ending

    def _end(self, why: str) -> None:
        self._ending = why

    def _turn(self, woken: int) -> None:
        """Handle the first thing that has happened; wait for one if nothing has. The end of a launch goes first."""
        handlers: dict[int, Callable[[], object]] = {}
        left = None
        if self._launch is None and self._is_ready:
            left = max(0.0, self._since + self.idle_seconds - time.monotonic())
        if self._launch is not None:
            handlers[self._launch.ending] = partial(self._finish, self._launch)
        handlers[woken] = partial(os.read, woken, 512)
        if not self._keeper.ended:
            handlers[self._keeper.connection.fileno()] = self._hear_keeper
        handlers[self._listener.fileno()] = self._answer
        found = select.select(list(handlers), [], [], left)[0]
        if found:
            # `select` returns them in the order of its argument.
            handlers[found[0]]()
        else:
            self._end("no launch came")

    def _hear_keeper(self) -> None:
        """Note that Java is ready. If it has ended, end; raise `ServeFailed` if it never was ready."""
        try:
            self._keeper.await_ready()
        except ServeFailed as failed:
            if not self._is_ready:
                raise
            self._end(str(failed))

    def _finish(self, launch: _Launch) -> None:
        """Wait for the end of a launch that has announced it, and prepare the next one."""
        _, status = os.waitpid(launch.process, 0)
        code = os.waitstatus_to_exitcode(status)
        with contextlib.suppress(OSError):
            send(launch.connection, {"signal": -code} if code < 0 else {"code": code})
        launch.connection.close()
        os.close(launch.ending)
        self._launch, self._since = None, time.monotonic()
        if self._ending:
            return
        if code < 0 or not self._keeper.tidy():
            self._keeper.end()
            self._keeper = Keeper(self.keep, self._own)

    def _answer(self) -> None:
        """Answer the next question, if this user asks it."""
        connection, _ = self._listener.accept()
        with connection, contextlib.suppress(OSError, EOFError):
            if not is_of_this_user(connection):
                return
            connection.settimeout(patient(_ASKED_WITHIN_SECONDS))
            request, files = receive(connection)
            try:
                self._handle(request, files, connection)
            finally:
                for file in files:
                    os.close(file)

    def _handle(self, request: Mapping[str, Any], files: Sequence[int], connection: socket.socket) -> None:
        match request:
            case {
                "ask": "launch",
                "circumstances": {"settings": dict(settings), "environment": dict(environment)},
                "path": [*_],
                "arguments": [*_],
                "command": str(),
                "files": [*numbers],
            } if len(numbers) == len(files):
                declined = self._why_not(Circumstances(settings, environment))
                if declined:
                    send(connection, {"declined": declined})
                else:
                    self._begin(request, files, connection)
            case {"ask": "launch"}:
                send(connection, {"declined": "it has another version of dagkit"})
            case {"ask": "stop"}:
                self._end("it was asked to")
                send(connection, self._status())
            case _:
                send(connection, self._status())

    def _why_not(self, theirs: Circumstances) -> str | None:
        """Why a launch with these circumstances cannot run here; None if it can."""
        difference = self._circumstances.difference(theirs)
        if difference:
            return f"it has {difference}"
        if self._ending:
            return "it is ending"
        if self._launch is not None:
            return "it runs another launch"
        if self._keeper.java is None:
            return "its Spark is starting"
        if _code_times() != self._code or self.configured() != self._configuration:
            self._end("the code of dagkit or the configuration of Spark has changed")
            return "the code of dagkit or the configuration of Spark has changed since it started"
        return None

    def _begin(self, request: Mapping[str, Any], files: Sequence[int], connection: socket.socket) -> None:
        """Fork the process of a launch."""
        send(connection, {"accepted": os.getpid()})
        connection.settimeout(None)  # before the fork: both processes share the mode of the socket
        ended, ending = os.pipe()
        process = os.fork()
        if process == 0:
            with in_child((*self._own, self._keeper.connection)):  # Java must end with the warm driver
                os.close(ended)
                run_handed_over(request, files, connection, ending, partial(self.run, self._keeper.java))
        os.close(ending)
        self._launches += 1
        # a copy, since the caller closes its own
        self._launch = _Launch(process, ended, connection.dup())

    def _status(self) -> dict[str, Any]:
        state = "launching" if self._launch else "starting" if self._keeper.java is None else "waiting"
        if self._ending:
            state = "ending after its launch" if self._launch else "ending"
        return {
            "process": os.getpid(),
            "state": state,
            "master": self.machine.name,
            "launches": self._launches,
            "idle_minutes": self.idle_seconds / 60,
        }


@contextlib.contextmanager
def _signalled(end: Callable[[str], None]) -> Iterator[int]:
    """A pipe in which something is after a signal. SIGINT and SIGTERM end the warm driver."""
    woken, wakes = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: end("it was interrupted"))
    # Python resumes `select` after a handler, which alone would not end the wait.
    signal.set_wakeup_fd(wakes)
    try:
        yield woken
    finally:
        signal.set_wakeup_fd(-1)


def _code_times() -> dict[str, int]:
    """When the files of the imported modules were changed."""
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    times = {}
    for file in filter(None, files):
        with contextlib.suppress(OSError):
            times[file] = Path(file).stat().st_mtime_ns
    return times
