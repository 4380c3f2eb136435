"""What it costs that work can be split: lines read with a tracker and without, and a claim for each record.

Both readers go through a block in memory, by turns with each chunk of it, many times. What counts of each chunk is the
median, and of all chunks the sum, in time of the processor, which others on the machine hardly lengthen.
"""

import argparse
import itertools
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench._page import machine_in_words, write_part
from bench.ingesting.text import write_text
from dagkit import Batch, Block
from dagkit.ranges import OffsetRange, OffsetRangeTracker, OffsetRestrictionTracker
from dagkit_operators import LineReader
from dagkit_operators.contexts import ReadLines, records_of
from dagkit_operators.lines import Seekable, chunks

MOST_OVERHEAD = 0.03
"""Of the time without a tracker: what a tracker may add."""
MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of ours is made in it
CLAIMS = 200_000
"""Claims that are timed at a time."""

Read = Callable[[Seekable, Block], Iterator[Batch[Any]]]
Use = Callable[[Batch[Any]], int]


def with_claims(stream: Seekable, block: Block) -> Iterator[Batch[Any]]:
    """What the engine runs: the lines that a tracker grants."""
    tracker = READER.tracker(block, READER.initial_restriction(block))
    return READER.reader_context().batches(stream, block, tracker)


def without_claims(stream: Seekable, block: Block) -> Iterator[Batch[Any]]:
    """The same kernel, and nobody is asked."""
    for chunk in chunks(stream, block.start, block.end):
        yield records_of(block, ReadLines(chunk))


def counted(batch: Batch[Any]) -> int:
    """The least that can be done with lines: the kernel alone is timed."""
    return len(batch)


def found(batch: Batch[Any]) -> int:
    """What a filter on columns needs: where each line ends."""
    return len(batch.column("value").ended)  # type: ignore[attr-defined]  # it is a column of lines


def decoded(batch: Batch[Any]) -> int:
    """What a function of Python needs: each line as text."""
    return sum(len(piece.values()) for piece in batch.column("value").pieces())  # type: ignore[attr-defined]  # likewise


READER = LineReader()
"""A slot has one for all its blocks."""
USES: dict[str, Use] = {"counted": counted, "found": found, "decoded": decoded}


@dataclass(frozen=True, slots=True)
class Overhead:
    """What a tracker adds to reading a block, where lines are used in one way."""

    use: str
    rounds: int
    mb_per_second: float
    """Without a tracker."""
    ratio: float
    """Of the time with a tracker to that without."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What one kind of claim costs for each record."""

    name: str
    nanos: float


class Reading:
    """One reader on its way through a block, timed chunk by chunk."""

    def __init__(self, stream: Seekable, block: Block, read: Read, use: Use) -> None:
        self._batches = read(stream, block)
        self._use = use
        self.lines = 0

    def nanos(self, lines: int) -> int:
        """What it takes until so many lines are read, or all."""
        began = time.thread_time_ns()
        while self.lines < lines:
            batch = next(self._batches, None)
            if batch is None:
                break
            self.lines += self._use(batch)
        return time.thread_time_ns() - began


def overheads(path: Path, rounds: int) -> Iterator[Overhead]:
    """Each use of the lines of a file, chunk by chunk with a tracker and without."""
    size = path.stat().st_size
    block = Block(0, str(path), 0, size, last=True)
    with path.open("rb", buffering=0) as stream:
        ends = list(itertools.accumulate(map(counted, without_claims(stream, block))))
    for name, use in USES.items():
        made = [_pairs(path, block, use, ends, first=number % 2) for number in range(2 * rounds)]
        # Of each chunk the median of the rounds in which a reader was first with it, and that of the others.
        one, other = (
            sum(
                statistics.median(pairs[chunk][reader] for pairs in turn)
                for turn in (made[::2], made[1::2])
                for chunk in range(len(ends))
            )
            for reader in (0, 1)
        )
        yield Overhead(name, len(made), 2 * size * 1e3 / other, one / other)


def _pairs(path: Path, block: Block, use: Use, ends: Sequence[int], first: int) -> list[tuple[int, int]]:
    """What each chunk takes both. Who comes second finds it in the cache: who is first changes from chunk to chunk."""
    pairs = []
    with path.open("rb", buffering=0) as mine, path.open("rb", buffering=0) as theirs:
        one, other = Reading(mine, block, with_claims, use), Reading(theirs, block, without_claims, use)
        for number, end in enumerate(ends, first):
            if number % 2:
                nanos, others = one.nanos(end), other.nanos(end)
            else:
                others, nanos = other.nanos(end), one.nanos(end)
            pairs.append((nanos, others))
    assert one.lines == other.lines == ends[-1], "both read the same lines"
    return pairs


def claims(rounds: int) -> Iterator[Claim]:
    """What claims cost for each record, the loop around them included, the median of so many rounds."""
    timed: dict[str, Callable[[], float]] = {
        "try_claim of a restriction": lambda: _singly(_work().try_claim),
        "try_claim of a range": lambda: _singly(OffsetRangeTracker(0, 10**12).try_claim),
        "claim_many, ten thousand at a time": lambda: _in_runs(_work().claim_many),
        "for comparison, a call that compares and claims nothing": lambda: _singly(lambda position: position < 10**12),
    }
    nanos: dict[str, list[float]] = {name: [] for name in timed}
    for _ in range(rounds):
        for name, measure in timed.items():
            nanos[name].append(measure())
    for name, of_each in nanos.items():
        yield Claim(name, statistics.median(of_each))


def _work() -> OffsetRestrictionTracker:
    return OffsetRestrictionTracker(OffsetRange(0, 10**12))


def _singly(claim: Callable[[int], bool]) -> float:
    began = time.thread_time_ns()
    for position in range(CLAIMS):
        claim(position)
    return (time.thread_time_ns() - began) / CLAIMS


def _in_runs(claim_many: Callable[[Any], int]) -> float:
    runs = [np.arange(start, start + 10_000) for start in range(0, 5_000_000, 10_000)]
    began = time.thread_time_ns()
    for run in runs:
        claim_many(run)
    return (time.thread_time_ns() - began) / (len(runs) * 10_000)


def page(overhead: Sequence[Overhead], cost: Sequence[Claim], size: int) -> str:
    """This benchmark's part of the documents."""
    told = (
        f"A block of {size / 2**20:.0f} MiB of lines in memory is read on one core in chunks of 1 MiB, each by turns "
        "with a tracker, which grants the lines of a chunk in one claim, and by the same code without one. "
        "**Overhead** is of the sums over all chunks, of each chunk's median, in time of the processor; it may be "
        f"{MOST_OVERHEAD:.0%}, whatever is done with the lines. Measured with {machine_in_words()}."
    )
    lines = ["## What claims cost", "", "```sh", "python -m bench claims --write-docs", "```", "", told, ""]
    lines += ["| lines are | MB/s without | overhead | rounds |", "|---|---:|---:|---:|"]
    words = {"counted": "counted: the kernel alone", "found": "found: for a filter on columns", "decoded": "decoded"}
    lines += [
        f"| {words[one.use]} | {one.mb_per_second:.0f} | {one.ratio - 1:+.1%} | {one.rounds} |" for one in overhead
    ]
    lines += ["", "| a claim | ns for each record |", "|---|---:|"]
    lines += [
        f"| {one.name} | {one.nanos:.2g} |" if one.nanos < 10 else f"| {one.name} | {one.nanos:.0f} |" for one in cost
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Measure, print, and answer whether a tracker is as cheap as it must be."""
    parser = argparse.ArgumentParser(prog="python -m bench claims", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--mib", type=int, default=64, help="MiB of text")
    parser.add_argument("--rounds", type=int, default=15, help="how often the text is read, by turns")
    parser.add_argument("--write-docs", action="store_true", help="write the part of docs/benchmarks.md")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        path = Path(folder) / "text"
        size = write_text(path, asked.mib << 20).all.bytes
        overhead = list(overheads(path, asked.rounds))
    cost = list(claims(max(3, asked.rounds)))
    kept = all(one.ratio <= 1 + MOST_OVERHEAD for one in overhead)
    if asked.json:
        told = {"overheads": [asdict(one) for one in overhead], "claims": [asdict(one) for one in cost]}
        told_whole = {"schema": "dagkit.bench.claims/1", **told, "most_overhead": MOST_OVERHEAD, "holds": kept}
        print(json.dumps(told_whole, indent=2))
    else:
        _print(overhead, cost)
    if asked.write_docs:
        write_part("claims", page(overhead, cost, size))
    return 0 if kept else 1


def _print(overhead: Sequence[Overhead], cost: Sequence[Claim]) -> None:
    print(f"{'lines are':<12}{'MB/s without':>14}{'overhead':>10}")
    for one in overhead:
        missed = "" if one.ratio <= 1 + MOST_OVERHEAD else "  MISSED"
        print(f"{one.use:<12}{one.mb_per_second:>14.0f}{one.ratio - 1:>+10.1%}{missed}")
    for each in cost:
        print(f"{each.name:<58}{each.nanos:>10.3g} ns")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
