"""Runs a window in a child process, so that a record that ends its process does not end the driver."""

import ctypes
import faulthandler
import gc
import importlib
import os
import pickle
import signal
import socket
import stat
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import FrameType, ModuleType
from typing import IO, Any, NoReturn

from dagkit.engine.program.failures import WorkerDied
from dagkit.engine.worker.protocol import Answer
from dagkit.engine.worker.watchdog import deaths_reported_to
from dagkit.errors import DagkitError
from dagkit.ground.forks import only_here

_PR_SET_PDEATHSIG = 1
_STOPPING = (signal.SIGINT, signal.SIGTERM)


def run_in_child(run: Callable[[], Answer], window_id: int, closed: threading.Event | None = None) -> Answer:
    """Return the answer that `run` gives in a forked process; raise `WorkerDied` if that process ended without it.

    If `closed` is set meanwhile, kill the process.
    An exception of `run` that is no failure of dagkit is a defect, and no record is to blame: raise it as RuntimeError.
    """
    began = time.monotonic()
    while isinstance(answer := _run_forked(run, window_id, closed or threading.Event()), _Importing):
        if time.monotonic() - began > _LONGEST_IMPORT_SECONDS:
            _LASTING.update(answer.modules)
        time.sleep(_PAUSE_SECONDS)
    return answer


@dataclass(frozen=True)
class _Importing:
    """The modules that other threads of the driver were importing at the fork.

    The child has their locks, which none of its threads releases: its own import of such a module would wait for ever.
    """

    modules: frozenset[str]


_PAUSE_SECONDS = 0.01
_LONGEST_IMPORT_SECONDS = 30.0
_LASTING: set[str] = set()
"""Modules whose import takes longer, such as one that launches an application while it is imported."""


def _run_forked(run: Callable[[], Answer], window_id: int, closed: threading.Event) -> Answer | _Importing:
    """Return the answer that `run` gives in a forked process; _Importing if that process could not run it."""
    # Here, so that the driver knows them at the next fork.
    _locks_of_modules(len(sys.modules))
    # Files and no pipe: it would end only with the last process that inherited it, as one that an operator forks.
    with tempfile.TemporaryFile() as answering, tempfile.TemporaryFile() as last_words:
        driver = os.getpid()
        child = _fork()
        if child == 0:
            _end_with(driver)
            _serve(run, answering, last_words)
        status = _await_end(child, closed)
        for file in (answering, last_words):
            file.seek(0)
        if os.waitstatus_to_exitcode(status) != 0:
            raise WorkerDied(_end_in_words(window_id, status, last_words.read().decode(errors="replace")))
        sent = answering.read()
    answer: Answer | _Importing | Exception = pickle.loads(sent)  # noqa: S301 - our own child wrote it
    if isinstance(answer, Exception):
        raise answer
    return answer


def _await_end(child: int, closed: threading.Event) -> int:
    """Wait for the end of a child, and return its status. Kill it if the event is set."""
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        if closed.wait(_PAUSE_SECONDS):
            os.kill(child, signal.SIGKILL)


def _fork() -> int:
    """Fork, and return 0 in the child, else its process ID."""
    # The child would print again what they hold, and wait for ever for a thread that writes to one of them now.
    _flush()
    # Python may collect in the child before `freeze`. So collection is off at the fork.
    collects = gc.isenabled()
    gc.disable()
    # Until the child handles them: a signal right after the fork would end it.
    unblocked = signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)
    try:
        child = os.fork()
        if child == 0:
            # A terminal sends these to the whole group of processes, and the driver decides when to stop. SIG_IGN would
            # not do: processes that operators start would inherit it.
            for number in _STOPPING:
                signal.signal(number, only_here(_ignore))
            # Garbage of the driver stays in the child: the end of a client of Kafka would wait for its threads, which
            # only the driver has.
            gc.freeze()
        return child
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
        if collects:
            gc.enable()


def _end_with(driver: int) -> None:
    """Let the system kill this process when the thread of the driver that forked it ends, which waits for it."""
    # Only Linux does. Elsewhere, a child of a driver that was killed completes its window, which nothing commits.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        # The driver may have ended before the call.
        if os.getppid() != driver:
            os._exit(1)


def _serve(run: Callable[[], Answer], answering: IO[bytes], last_words: IO[bytes]) -> NoReturn:
    """Write the answer or the failure, and end this process without the clean-up of the driver that it is a copy of."""
    status = 1
    try:
        _lose_connections()
        _unlock()
        faulthandler.enable(last_words)
        with deaths_reported_to(last_words):
            sent = _pickled_answer(run)
            _flush()
            answering.write(sent)
            answering.flush()
        status = 0
    except BaseException as error:  # noqa: BLE001 - the driver raises it
        last_words.write(f"{type(error).__name__}: {error}".encode(errors="replace"))
        last_words.flush()
    finally:
        os._exit(status)


def _ignore(number: int, frame: FrameType | None) -> None:
    """Handle a signal by doing nothing."""


def _lose_connections() -> None:
    """Put a socket that is closed at its other end in the place of each one of the driver."""
    # Clients of storages keep connections for later requests. This process has them too, and its requests would mix
    # with those of the driver. Now its clients find them lost and open others. Closed descriptors would not do: the
    # system could give their numbers to new connections, which the clients would then close.
    dead, other = socket.socketpair()
    other.close()
    for name in os.listdir("/dev/fd"):  # noqa: PTH208 - names of descriptors, one of which is that of this listing
        with suppress(OSError):  # that one
            # The standard files of a service may be sockets.
            is_own = int(name) in (0, 1, 2, dead.fileno())
            if not is_own and stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                os.dup2(dead.fileno(), int(name))
    # Without `detach`, the end of the socket object would close the descriptor.
    dead.detach()


def _unlock() -> None:
    """Release the locks of modules and of cached properties: other threads of the driver may have had some of them."""
    for lock in _locks_of_modules(len(sys.modules)):
        lock._at_fork_reinit()  # noqa: SLF001 - as modules of Python do after a fork
    # Before Python 3.12, all instances of a class share the lock of a property. This one goes before it.
    setattr(cached_property, "lock", property(lambda _: nullcontext(), lambda *_: None))  # noqa: B010 - as mypy asks


@lru_cache(maxsize=1)  # it takes longer than a fork
def _locks_of_modules(count: int) -> list[Any]:  # noqa: ARG001 - others are known if there are other modules
    """The locks that are in variables of modules, such as that of `strptime`, which each call takes."""
    known: list[Any] = list(sys.modules.values())
    values: list[Any] = []
    for module in known:
        with suppress(AttributeError):  # not all have variables: a library that cffi loaded is a module
            # Not as an attribute, which would load a module that is loaded when it is used.
            values += object.__getattribute__(module, "__dict__").values() if isinstance(module, ModuleType) else ()
    return [value for value in values if type(value) in _LOCKS]


_LOCKS = (type(threading.Lock()), type(threading.RLock()))


def _flush() -> None:
    """Flush the standard streams."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # there is none, its reader has ended, or it is closed
            stream.flush()


def _pickled_answer(run: Callable[[], Answer]) -> bytes:
    """The answer or the failure, pickled."""
    try:
        answer: Answer | _Importing | DagkitError
        try:
            modules = _imported_by_others() - _LASTING
            answer = _Importing(modules) if modules else run()
        except DagkitError as error:
            answer = error
        # Within the `try`: an answer that cannot be pickled is a defect, and not the death of a process.
        return pickle.dumps(answer)
    except MemoryError:
        # A record may need too much memory. The process ends, so that the record is found as one that ends its worker.
        raise
    except Exception:  # noqa: BLE001 - the driver raises it
        return pickle.dumps(RuntimeError(f"a window failed in a child process:\n{traceback.format_exc()}"))


def _imported_by_others() -> frozenset[str]:
    """The modules that other threads imported when this process was forked."""
    locks = {name: lock() for name, lock in getattr(importlib._bootstrap, "_module_locks", {}).items()}  # noqa: SLF001
    owners = {name: lock.owner for name, lock in locks.items() if lock is not None}
    return frozenset(name for name, owner in owners.items() if owner not in (None, threading.get_ident()))


def _end_in_words(window_id: int, status: int, last_words: str) -> str:
    """How a child ended, with what it wrote at its end."""
    code = os.waitstatus_to_exitcode(status)
    how = f"by {signal.Signals(-code).name}" if code < 0 else f"with status {code}"
    if code == -signal.SIGALRM:
        how = "since it made no progress in time"
    lines = last_words.rstrip()
    return f"the process of window {window_id} ended {how}{': ' if lines else ''}{lines}"
