"""How many records are claimed at once: slow records get small portions, since a claim cannot be split."""

import time
from collections.abc import Callable, Iterable, Iterator

from dagkit_operators.contexts.chunk import Chunk

FIRST_CLAIM = 16
"""Lines of the first claim of a block, when the time that a line takes is still unknown."""
ENOUGH_LINES = 64
"""With fewer lines, the cost of the claim itself would distort the time measured for each line."""
CLAIM_SECONDS = 0.005
"""Target time for the lines of one claim: if lines get a hundred times slower, a claim takes half a second."""
QUICK_SECONDS = 5e-6
"""Lines that take at most this long each are claimed by whole chunks: smaller claims would cost more than the lines."""
SHORTEST_SECONDS = 1e-9
"""A lower bound for measured times, since a coarse clock may return 0."""
GROWTH = 8
"""The maximum growth from one claim to the next."""


class Pace:
    """How many records the next claim may have, by the time that the last ones took."""

    def __init__(self, first: int = FIRST_CLAIM) -> None:
        self.most: int | None = first
        """None: as many as were read at once."""

    def took(self, records: int, seconds: float) -> None:
        """Adapt the next claim to the time that the last records took."""
        if records >= ENOUGH_LINES and seconds <= records * QUICK_SECONDS:
            self.most = None
        else:
            self.most = max(1, min(GROWTH * records, int(records * CLAIM_SECONDS / max(seconds, SHORTEST_SECONDS))))


def in_portions(reading: Iterable[Chunk], now: Callable[[], float] = time.perf_counter) -> Iterator[Chunk]:
    """Divide chunks into parts that are claimed at once. Slow lines get small parts, since a claim cannot be split.

    The time of a line is estimated from the previous part, which the caller has processed when it requests the next.
    """
    pace = Pace()
    for chunk in reading:
        rest: Chunk | None = chunk
        while rest is not None:
            most = pace.most
            part, rest = (rest, None) if most is None or len(rest) <= most else rest.parted(most)
            lines, began = len(part), now()
            yield part
            pace.took(lines, now() - began)
