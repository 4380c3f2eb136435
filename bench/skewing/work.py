"""The work: a file of lines that cost what they say, and what it takes when nobody waits for anybody."""

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
"""Bytes of a line, with what ends it."""
CHEAP = "1 "
"""How a line begins that costs one unit; a dear one costs as many as it says."""


@dataclass(frozen=True, slots=True)
class Skew:
    """Lines that all cost the same, but for a stretch of them."""

    name: str
    about: str
    first: int
    """The first line of the dear stretch."""
    count: int
    units: int
    """What each of its lines costs; all others cost one."""
    blocks: int
    """In how many blocks, or partitions, the file is read."""

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
    """A file, and what is to be done with each of its lines."""

    source: Path
    block_size: int
    slots: int
    rounds: int
    """Of arithmetic for each unit that a line says."""

    @classmethod
    def of(cls, skew: Skew, source: Path, slots: int, rounds: int) -> "Work":
        return cls(source, -(-source.stat().st_size // skew.blocks), slots, rounds)


DEAR_STRETCH = Skew(
    "one file",
    "one file, in which the hundredth part of the lines stand together and cost 100 times more each",
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
    """A function of a line, which takes as long as the line says: so many rounds of arithmetic for each unit."""

    def burn(line: str) -> str:
        number = 1
        for _ in range(int(line[: line.index(" ")]) * rounds):
            number = (number * 1103515245 + 12345) & 0x7FFFFFFF
        return f"{number} {line}"

    return burn


def rounds_for(seconds: float, units: int) -> int:
    """The rounds of a unit with which so many units take so long on this machine."""
    tried = 2_000_000
    burn, began = burning(tried), time.process_time()
    burn(CHEAP)
    return max(1, round(seconds / units * tried / (time.process_time() - began)))


def digest_of(lines: Iterable[bytes]) -> tuple[int, int]:
    """How many lines there are, and what they add up to, in whatever order they come."""
    count = total = 0
    for line in lines:
        count, total = count + 1, (total + zlib.crc32(line.rstrip(b"\n"))) & 0xFFFFFFFF
    return count, total


def every_other_line(path: Path, first: int, slots: int, rounds: int) -> tuple[float, int, int]:
    """One slot's share of the work where lines go round: how long it takes, and what comes out."""
    burn, began = burning(rounds), time.perf_counter()
    with path.open() as lines:
        made = [burn(line.rstrip("\n")) for line in islice(lines, first, None, slots)]
    return time.perf_counter() - began, *digest_of(line.encode() for line in made)


@dataclass(frozen=True, slots=True)
class Ideal:
    """All the work, done by slots that never wait."""

    seconds: float
    """What all of it takes, divided by the slots: measured in each of them while the others work, too."""
    digest: tuple[int, int]


def ideal(work: Work) -> Ideal:
    """The work of a file line by line, dealt round: without blocks, windows, files, or anybody to wait for."""
    slots = work.slots
    with ProcessPoolExecutor(slots, mp_context=get_context("spawn")) as pool:
        list(pool.map(int, range(slots)))  # who is there takes no time any more
        running = [pool.submit(every_other_line, work.source, n, slots, work.rounds) for n in range(slots)]
        shares = [each.result() for each in running]
    digest = sum(count for _, count, _ in shares), sum(total for *_, total in shares) & 0xFFFFFFFF
    return Ideal(sum(seconds for seconds, *_ in shares) / slots, digest)
