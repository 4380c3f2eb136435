"""The busy time of a slot, divided among its operators by samples of its stack.

The operators of a slot call each other, and a clock around each call would cost more than the call. So a timer of the
system interrupts the slot every few milliseconds, and the time since the last sample is that of the innermost operator
on the stack. Rejected: a thread that takes the samples. It gets the interpreter where the slot releases it, which is
where an operator reads, writes or calls compiled code; so it finds these operators and no others.
"""

import ctypes
import random
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from types import FrameType
from typing import Any

from dagkit.engine.program.entrances import operator_at

EVERY_SECONDS = 0.02
"""How often a slot is interrupted. With its interrupt, a sample takes 2 to 35 µs of processor time."""
LEAST_SHARE = 0.05
"""Smaller shares of a slot's time are not reported while the window runs."""
_CLOCK_MONOTONIC = 1
_SIGEV_SIGNAL = 0

_sampled: "BusyTime | None" = None
"""The busy time of the slot that this process runs."""


class BusyTime:
    """How long each operator of a slot has worked, by the samples so far."""

    def __init__(self, operators: Iterable[str], millis: Callable[[], float]) -> None:
        """Take the operators in their order, and a function that returns how long the slot has worked."""
        self.operator = ""
        """The operator for which the slot works while the code of none is on the stack."""
        self._millis = millis
        self._sampled = dict.fromkeys(operators, 0.0)
        self._until = 0.0

    def sample(self, frame: FrameType | None) -> None:
        """Add the time since the last sample to the operator that works now."""
        operator = operator_at(frame, self._sampled) or self.operator
        before, self._until = self._until, self._millis()
        if operator in self._sampled:
            self._sampled[operator] += max(0.0, self._until - before)

    def divided(self, millis: float) -> Mapping[str, float]:
        """The time of a slot by operator, in the proportions of the samples; in equal parts if there are none."""
        whole = sum(self._sampled.values())
        if not whole:
            return dict.fromkeys(self._sampled, millis / max(1, len(self._sampled)))
        return {operator: millis * sampled / whole for operator, sampled in self._sampled.items()}

    def shares(self) -> Mapping[str, float]:
        """The share of each operator in the samples so far, without small ones. Another thread may call it."""
        if len(self._sampled) > 1 and not any(self._sampled.values()):
            return {}
        shares = {operator: round(share, 2) for operator, share in self.divided(1.0).items()}
        return {operator: share for operator, share in shares.items() if share >= LEAST_SHARE}

    @contextmanager
    def sampling(self) -> Iterator[None]:
        """Within the block, take samples if there is more than one operator and this is the main thread of a process.

        Only that thread is interrupted. If other code of the process uses the signal, no samples are taken.
        """
        global _sampled  # noqa: PLW0603 - a signal has one handler in a process
        if len(self._sampled) < 2 or _sampled is not None or not _is_handled():
            yield
            return
        _sampled = self
        try:
            with _interrupted():
                yield
        finally:
            _sampled = None


def _is_handled() -> bool:
    """Whether the signal of the timer reaches `_take_sample`. It stays its handler: by default, it ends a process."""
    if not hasattr(signal, "SIGPROF") or threading.current_thread() is not threading.main_thread():
        return False
    if signal.getsignal(signal.SIGPROF) is not _take_sample:
        if signal.getsignal(signal.SIGPROF) is not signal.SIG_DFL:
            return False
        signal.signal(signal.SIGPROF, _take_sample)
        signal.siginterrupt(signal.SIGPROF, False)  # the system resumes calls of compiled code that it interrupts
    return True


def _take_sample(_: int, frame: FrameType | None) -> None:
    if _sampled is not None:
        _sampled.sample(frame)


@contextmanager
def _interrupted() -> Iterator[None]:
    """Within the block, a timer sends the signal.

    It is not `ITIMER_REAL`, which the code of an operator may use. Without timers of POSIX, as on macOS, one of
    processor time takes its place; then an operator that waits has the time until the next sample only by chance.
    """
    first = random.uniform(0, EVERY_SECONDS)  # noqa: S311 - so that short windows are not always met at one place
    library, timer = _library(), ctypes.c_void_p()
    event = _Event(0, signal.SIGPROF, _SIGEV_SIGNAL)
    if library is None or library.timer_create(_CLOCK_MONOTONIC, ctypes.byref(event), ctypes.byref(timer)):
        signal.setitimer(signal.ITIMER_PROF, first, EVERY_SECONDS)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        return
    # A first time of zero would disarm the timer.
    library.timer_settime(timer, 0, ctypes.byref(_Times(0, int(EVERY_SECONDS * 1e9), 0, int(first * 1e9) + 1)), None)
    try:
        yield
    finally:
        library.timer_delete(timer)


@cache
def _library() -> Any:
    """The C library; None if it has no timers of POSIX."""
    library = ctypes.CDLL(None)
    return library if hasattr(library, "timer_create") else None


class _Event(ctypes.Structure):
    """What a timer does: `struct sigevent`."""

    _fields_ = [
        ("value", ctypes.c_void_p),
        ("signal", ctypes.c_int),
        ("notify", ctypes.c_int),
        # Linux reads 64 bytes, the last of them as a union that a signal does not use.
        ("rest", ctypes.c_char * 48),
    ]


class _Times(ctypes.Structure):
    """When a timer ends: `struct itimerspec`."""

    _fields_ = [(name, ctypes.c_long) for name in ("every_seconds", "every_nanos", "seconds", "nanos")]
