"""How fast a launch reads, from what its slots report; how long pending work takes, and whether it grows."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

RECENT = timedelta(seconds=5)
USUAL = timedelta(seconds=30)
"""The periods whose speeds an estimate takes."""
_APART = timedelta(seconds=0.25)
"""The least time between two samples that are kept: fifty windows may be committed in a second."""


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """An estimate of the seconds that pending work takes."""

    seconds: float
    """At the speed of the last half minute."""
    least: float
    """At the fastest of three speeds: of the last five seconds, of the last half minute, and of the whole launch."""
    most: float
    """At the slowest of them."""


@dataclass
class Pace:
    """The positions that a launch has read, over time. The time in which no window runs does not count."""

    _read: int = 0
    _idle: timedelta = timedelta()
    """The time that does not count."""
    _began: tuple[datetime, int] | None = None
    """When the time that counts began, and what had been read then."""
    _samples: deque[tuple[datetime, int]] = field(default_factory=deque)
    """Times without `_idle`, and positions: those of the last half minute, and one older sample."""

    def resume(self, at: datetime) -> None:
        """Note that a window begins after a time in which none ran."""
        if self._samples:
            self._idle += max(timedelta(), at - self._idle - self._samples[-1][0])
        else:
            self._began = at, self._read
            self._samples.append(self._began)

    def report(self, at: datetime, read: int) -> None:
        """Note how much slots report to have read. The time before the first report is that of starting workers."""
        if self._read:
            self.add(at, read)
        else:
            self._read, self._began = read, (at - self._idle, read)
            self._samples = deque([self._began])

    def add(self, at: datetime, read: int) -> None:
        """Note how much is read at a time. It never falls: an attempt that failed had read it."""
        if self._began is None:
            self.resume(at)
        self._read, active = max(self._read, read), at - self._idle
        if len(self._samples) > 1 and active - self._samples[-2][0] < _APART:
            self._samples.pop()
        self._samples.append((active, self._read))
        while len(self._samples) > 1 and self._samples[1][0] <= active - USUAL:
            self._samples.popleft()

    @property
    def per_second(self) -> float:
        """The positions that were read in a second of the last half minute; 0 if that is unknown."""
        return self._since(USUAL) or 0.0

    def time_for(self, positions: int, at: datetime) -> TimeLeft | None:
        """Estimate the time for the positions that followed the last sample; None if there are none, or no speed."""
        usual = self._since(USUAL)
        if positions <= 0 or not usual:
            return None
        spent = (at - self._idle - self._samples[-1][0]).total_seconds()
        speeds = [speed for speed in self._speeds() if speed]
        return TimeLeft(*(max(0.0, positions / speed - spent) for speed in (usual, max(speeds), min(speeds))))

    def _speeds(self) -> Iterator[float | None]:
        yield self._since(RECENT)
        yield self._since(USUAL)
        if self._began is not None and self._samples:
            began, before = self._began
            seconds = (self._samples[-1][0] - began).total_seconds()
            yield (self._read - before) / seconds if seconds > 0 else None

    def _since(self, period: timedelta) -> float | None:
        """The speed in this period before the last sample, at least since the sample before it; None if unknown."""
        if len(self._samples) < 2:
            return None
        *earlier, (last, read) = self._samples
        first, before = next((sample for sample in earlier if sample[0] >= last - period), earlier[-1])
        seconds = (last - first).total_seconds()
        return (read - before) / seconds if seconds > 0 else None


_TREND = timedelta(hours=1)
"""How far back a trend looks."""
_FINDS_APART = timedelta(seconds=5)
"""Of samples that follow each other faster, the largest is kept: Kafka finds something each second."""
_TOLERANCE = 1.25
"""A sample may be so many times as large as the next one."""
_LEAST_FINDS = 3
"""One large find after a small one is no trend."""


@dataclass
class BacklogTrend:
    """The positions that waited after each find of the last hour.

    A run looks for input when little waits, so the backlog falls between two finds, even if it grows from find to find.
    """

    _samples: deque[tuple[datetime, int]] = field(default_factory=deque)

    def add(self, at: datetime, waiting: int) -> None:
        """Note how much waits after a find."""
        if self._samples and at - self._samples[-1][0] < _FINDS_APART:
            at, before = self._samples.pop()
            waiting = max(waiting, before)
        self._samples.append((at, waiting))
        while self._samples[0][0] < at - _TREND:
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
        return since if finds >= _LEAST_FINDS and self._samples[-1][1] >= 2 * least else None
