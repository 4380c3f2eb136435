"""What it costs that work can be split: lines read with a tracker and without, and a claim for each record.

Both readers go through one file in memory, by turns with each chunk of it; every eight chunks, of which each was first
with four, give one ratio, and the median of the ratios is judged. Time is that of the processor, which others on the
machine hardly lengthen.
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
SHARE = 8
"""Chunks whose times are added up for one ratio: whoever comes second with a chunk finds it in the cache."""
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
    """What a tracker adds to reading, where lines are used in one way."""

    use: str
    chunks: int
    mb_per_second: float
    """Without a tracker."""
    ratio: float
    """Of the time with a tracker to that without, the median over all shares."""
    lower_quartile: float
    upper_quartile: float


@dataclass(frozen=True, slots=True)
class Claim:
    """What one kind of claim costs for each record."""

    name: str
    nanos: float


class Reading:
    """One reader on its way through a file, timed chunk by chunk."""

    def __init__(self, path: Path, block: Block, read: Read, use: Use) -> None:
        self._stream = path.open("rb", buffering=0)
        self._batches = read(self._stream, block)
        self._use = use
        self.lines = 0

    def nanos(self) -> int | None:
        """What the next chunk takes; none after the last."""
        began = time.thread_time_ns()
        batch = next(self._batches, None)
        if batch is None:
            self._stream.close()
            return None
        self.lines += self._use(batch)
        return time.thread_time_ns() - began


def overheads(path: Path, rounds: int) -> Iterator[Overhead]:
    """Each use of the lines of a file, chunk by chunk with a tracker and without."""
    size = path.stat().st_size
    block = Block(0, str(path), 0, size, last=True)
    for name, use in USES.items():
        shares: list[tuple[int, int]] = []
        for number in range(rounds + 1):
            made = list(_pairs(Reading(path, block, with_claims, use), Reading(path, block, without_claims, use)))
            if number:  # the first round warms up
                shares += [_together(made[start : start + SHARE]) for start in range(0, len(made) - SHARE + 1, SHARE)]
        lower, median, upper = statistics.quantiles((one / other for one, other in shares), n=4)
        rate = SHARE * size / len(made) * 1e3 / statistics.median(other for _, other in shares)
        yield Overhead(name, len(shares) * SHARE, rate, median, lower, upper)


def _together(pairs: Sequence[tuple[int, int]]) -> tuple[int, int]:
    return sum(one for one, _ in pairs), sum(other for _, other in pairs)


def _pairs(one: Reading, other: Reading) -> Iterator[tuple[int, int]]:
    """What each chunk takes both; who is first with it changes from chunk to chunk."""
    for number in itertools.count():
        if number % 2:
            first, second = one.nanos(), other.nanos()
        else:
            second, first = other.nanos(), one.nanos()
        if first is None or second is None:
            break
        yield first, second
    assert first == second, "both come to the end with the same chunk"
    assert one.lines == other.lines, "both read the same lines"


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
        f"Lines of {size / 2**20:.0f} MiB in memory are read on one core in chunks of 1 MiB, each by turns with a "
        "tracker, which grants the lines of a chunk in one claim, and by the same code without one. **Overhead** is "
        f"the median over all shares of {SHARE} chunks, in time of the processor, with the quartiles beside it; it may "
        f"be {MOST_OVERHEAD:.0%}, whatever is done with the lines. Measured with {machine_in_words()}."
    )
    lines = ["## What claims cost", "", "```sh", "python -m bench claims --write-docs", "```", "", told, ""]
    lines += ["| lines are | MB/s without | overhead | quartiles | chunks |", "|---|---:|---:|---:|---:|"]
    words = {"counted": "counted: the kernel alone", "found": "found: for a filter on columns", "decoded": "decoded"}
    lines += [
        f"| {words[one.use]} | {one.mb_per_second:.0f} | {one.ratio - 1:+.1%} | "
        f"{one.lower_quartile - 1:+.1%} to {one.upper_quartile - 1:+.1%} | {one.chunks} |"
        for one in overhead
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
    parser.add_argument("--rounds", type=int, default=20, help="how often the text is read")
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
    print(f"{'lines are':<12}{'MB/s without':>14}{'overhead':>10}{'quartiles':>20}")
    for one in overhead:
        quartiles = f"{one.lower_quartile - 1:+.1%} to {one.upper_quartile - 1:+.1%}"
        missed = "" if one.ratio <= 1 + MOST_OVERHEAD else "  MISSED"
        print(f"{one.use:<12}{one.mb_per_second:>14.0f}{one.ratio - 1:>+10.1%}{quartiles:>20}{missed}")
    for each in cost:
        print(f"{each.name:<58}{each.nanos:>10.3g} ns")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
