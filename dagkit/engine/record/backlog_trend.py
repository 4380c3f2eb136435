"""Whether the work that waits grows, from how much there is whenever an input has found some."""

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime, timedelta

_REMEMBERED = timedelta(hours=1)
_APART = timedelta(seconds=5)
"""Of samples that follow each other faster, the largest is kept: Kafka finds something each second."""
_TOLERANCE = 1.25
"""A sample may be so many times as large as the next one."""
_LEAST = 3
"""One large find after a small one is no trend."""


@dataclass
class BacklogTrend:
    """The positions that waited after each find of the last hour.

    A run looks for input when little waits, so the backlog falls between two finds, even if it grows from find to find.
    """

    _samples: deque[tuple[datetime, int]] = field(default_factory=deque)

    def add(self, at: datetime, waiting: int) -> None:
        """Note how much waits after a find."""
        if self._samples and at - self._samples[-1][0] < _APART:
            at, before = self._samples.pop()
            waiting = max(waiting, before)
        self._samples.append((at, waiting))
        while self._samples[0][0] < at - _REMEMBERED:
            self._samples.popleft()

    @property
    def grows_since(self) -> datetime | None:
        """The find from which on more waited after each one, now twice as much or more; None if there is none."""
        (since, least), finds = self._samples[-1], 1
        for number, (at, waiting) in enumerate(reversed(self._samples), start=1):
            if waiting > _TOLERANCE * least:
                break
            if waiting < least:
                since, least, finds = at, waiting, number
        return since if finds >= _LEAST and self._samples[-1][1] >= 2 * least else None
