"""The cost of splittable work: lines read with a tracker and without, and a claim for each record.

Both readers read a block in memory many times, taking turns chunk by chunk. The result is the sum over all chunks of
each chunk's median, in processor time, which other processes hardly affect.
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
from dagkit_operators.contexts.line_columns import ReadLines
from dagkit_operators.contexts.lines import chunks
from dagkit_operators.contexts.reader_context import records_of
from dagkit_operators.filesystem.access import Seekable

MOST_OVERHEAD = 0.03
"""The most that a tracker may add, as a share of the time without it."""
MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of ours is made in it
CLAIMS = 200_000
"""Claims in one timed run."""

Read = Callable[[Seekable, Block], Iterator[Batch[Any]]]
Use = Callable[[Batch[Any]], int]


def with_claims(stream: Seekable, block: Block) -> Iterator[Batch[Any]]:
    """Read as the engine does: the lines that a tracker grants."""
    tracker = READER.tracker(block, OffsetRange(block.start, block.end))
    batches: Any = READER.reader_context.batches(stream, block, tracker)
    return batches  # type: ignore[no-any-return]  # nothing is rejected


def without_claims(stream: Seekable, block: Block) -> Iterator[Batch[Any]]:
    """Read with the same kernel, without a tracker."""
    for chunk in chunks(stream, block.start, block.end):
        yield records_of(block, ReadLines(chunk))


def counted(batch: Batch[Any]) -> int:
    """Only count the lines: this times the kernel alone."""
    return len(batch)


def found(batch: Batch[Any]) -> int:
    """Find the ends of the lines, as a filter on columns needs them."""
    column: Any = batch.column("value")
    return len(column.ended)


def decoded(batch: Batch[Any]) -> int:
    """Decode each line, as a Python function needs it."""
    column: Any = batch.column("value")
    return sum(len(piece.values()) for piece in column.pieces())


READER = LineReader()
"""One reader for all blocks, as in a slot."""
USES: dict[str, Use] = {"counted": counted, "found": found, "decoded": decoded}


@dataclass(frozen=True, slots=True)
class Overhead:
    """The overhead of a tracker for one use of the lines of a block."""

    use: str
    rounds: int
    mb_per_second: float
    """Without a tracker."""
    ratio: float
    """The time with a tracker divided by the time without."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The cost of one kind of claim for each record."""

    name: str
    nanos: float


class Reading:
    """One reader of a block, timed chunk by chunk."""

    def __init__(self, stream: Seekable, block: Block, read: Read, use: Use) -> None:
        self._batches = read(stream, block)
        self._use = use
        self.lines = 0

    def nanos(self, lines: int) -> int:
        """The nanoseconds until this many lines, or all, are read."""
        began = time.thread_time_ns()
        while self.lines < lines:
            batch = next(self._batches, None)
            if batch is None:
                break
            self.lines += self._use(batch)
        return time.thread_time_ns() - began


def overheads(path: Path, rounds: int) -> Iterator[Overhead]:
    """The overhead of each use of the lines of a file, chunk by chunk with a tracker and without."""
    size = path.stat().st_size
    block = Block(0, str(path), 0, size, last=True)
    with path.open("rb", buffering=0) as stream:
        ends = list(itertools.accumulate(map(counted, without_claims(stream, block))))
    for name, use in USES.items():
        made = [_pairs(path, block, use, ends, first=number % 2) for number in range(2 * rounds)]
        # For each chunk: the median of the rounds in which a reader came first, and that of the other rounds.
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
    """The times of both for each chunk. The first reader alternates, as the second finds the chunk in the cache."""
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
    """The costs of claims for each record, including the loop: the median of the rounds."""
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
    text = (
        f"One core reads a block of {size / 2**20:.0f} MiB of lines in memory in chunks of 1 MiB, alternately with a "
        "tracker, which grants the lines of a chunk in one claim, and with the same code without one. **Overhead** "
        "compares the sums over all chunks of each chunk's median, in processor time; it may be at most "
        f"{MOST_OVERHEAD:.0%} for every use of the lines. Measured with {machine_in_words()}."
    )
    lines = ["## Cost of claims", "", "```sh", "python -m bench claims --write-docs", "```", "", text, ""]
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
    """Measure and print; return 1 if a tracker costs more than allowed."""
    parser = argparse.ArgumentParser(prog="python -m bench claims", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--mib", type=int, default=64, help="MiB of text")
    parser.add_argument("--rounds", type=int, default=15, help="how often both readers read the text")
    parser.add_argument("--write-docs", action="store_true", help="write the part of docs/benchmarks.md")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        path = Path(folder) / "text"
        size = write_text(path, asked.mib << 20).all.bytes
        overhead = list(overheads(path, asked.rounds))
    cost = list(claims(max(3, asked.rounds)))
    kept = all(one.ratio <= 1 + MOST_OVERHEAD for one in overhead)
    if asked.json:
        results = {"overheads": [asdict(one) for one in overhead], "claims": [asdict(one) for one in cost]}
        document = {"schema": "dagkit.bench.claims/1", **results, "most_overhead": MOST_OVERHEAD, "holds": kept}
        print(json.dumps(document, indent=2))
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
    for claim in cost:
        print(f"{claim.name:<58}{claim.nanos:>10.3g} ns")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
