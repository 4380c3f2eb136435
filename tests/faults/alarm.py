"""A limit for what may hang."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def ended_within(seconds: float) -> Iterator[None]:
    """Raise TimeoutError for a hang."""

    def over(_: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"nothing ended within {seconds:.0f} s, in {frame}")

    before = signal.signal(signal.SIGALRM, over)
    left, _ = signal.setitimer(signal.ITIMER_REAL, seconds)  # of the limit of the whole test
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, left)
