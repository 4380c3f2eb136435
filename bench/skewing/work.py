"""The work: a file whose lines specify their cost, and the ideal time, without waiting."""

import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

LINES = 100_000
WIDTH = 64
"""Bytes of a line with its end."""
CHEAP = "1 "
"""The start of a line that costs one unit; an expensive line begins with its number of units."""


@dataclass(frozen=True, slots=True)
class Skew:
    """Lines of equal cost, except for one expensive range."""

    name: str
    about: str
    first: int
    """The first line of the expensive range."""
    count: int
    units: int
    """The cost of each of its lines; all others cost one."""
    blocks: int
    """The number of blocks or partitions of the file."""

    @property
    def units_together(self) -> int:
        return LINES + self.count * (self.units - 1)

    def lines(self, count: int = LINES) -> Iterator[str]:
        for number in range(count):
            dear = self.first <= number < self.first + self.count
            yield f"{self.units if dear else 1} {number} ".ljust(WIDTH - 1, "-")

    def write(self, path: Path, count: int = LINES) -> None:
        path.write_text("".join(f"{line}\n" for line in self.lines(count)))


@dataclass(frozen=True, slots=True)
class Work:
    """A file, and the work for each of its lines."""

    source: Path
    block_size: int
    slots: int
    rounds: int
    """Rounds of arithmetic for each unit of a line."""

    @classmethod
    def of(cls, skew: Skew, source: Path, slots: int, rounds: int) -> "Work":
        return cls(source, -(-source.stat().st_size // skew.blocks), slots, rounds)


DEAR_STRETCH = Skew(
    "one file",
    "one file, in which a hundredth of the lines, all in one place, cost 100 times as much each",
    first=40 * LINES // 100,
    count=LINES // 100,
    units=100,
    blocks=2,
)
SLOW_BLOCK = Skew(
    "one slow block",
    "16 blocks, one of which costs as much as all others together",
    first=11 * LINES // 16,
    count=LINES // 16,
    units=15,
    blocks=16,
)
SKEWS = (DEAR_STRETCH, SLOW_BLOCK)


def burning(rounds: int) -> Callable[[str], str]:
    """A function of a line that takes as long as the line specifies: this many rounds of arithmetic for each unit."""

    def burn(line: str) -> str:
        number = 1
        for _ in range(int(line[: line.index(" ")]) * rounds):
            number = (number * 1103515245 + 12345) & 0x7FFFFFFF
        return f"{number} {line}"

    return burn


def rounds_for(seconds: float, units: int) -> int:
    """The rounds for each unit with which these units take this long on this machine."""
    tried = 2_000_000
    burn, began = burning(tried), time.process_time()
    burn(CHEAP)
    return max(1, round(seconds / units * tried / (time.process_time() - began)))


def digest_of(lines: Iterable[bytes]) -> tuple[int, int]:
    """The number of lines and their checksum, independent of their order."""
    count = total = 0
    for line in lines:
        count, total = count + 1, (total + zlib.crc32(line.rstrip(b"\n"))) & 0xFFFFFFFF
    return count, total


def every_other_line(path: Path, first: int, slots: int, rounds: int) -> tuple[float, int, int]:
    """The time and the digest of one slot's share, with lines distributed in turn."""
    burn, began = burning(rounds), time.perf_counter()
    with path.open() as lines:
        made = [burn(line.rstrip("\n")) for line in islice(lines, first, None, slots)]
    return time.perf_counter() - began, *digest_of(line.encode() for line in made)


@dataclass(frozen=True, slots=True)
class Ideal:
    """The result of all the work, done by slots that never wait."""

    seconds: float
    """The time of all work divided by the slots, measured in every slot at the same time."""
    digest: tuple[int, int]


def ideal(work: Work) -> Ideal:
    """Do the work with lines distributed in turn: without blocks, windows, files or waiting."""
    slots = work.slots
    with ProcessPoolExecutor(slots, mp_context=get_context("spawn")) as pool:
        list(pool.map(int, range(slots)))  # start all processes before timing
        running = [pool.submit(every_other_line, work.source, n, slots, work.rounds) for n in range(slots)]
        shares = [each.result() for each in running]
    digest = sum(count for _, count, _ in shares), sum(total for *_, total in shares) & 0xFFFFFFFF
    return Ideal(sum(seconds for seconds, *_ in shares) / slots, digest)
