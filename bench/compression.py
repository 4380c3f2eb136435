"""The speed of gzip: the first reading of a file beside igzip, and the second reading on two cores beside the first.

A LineReader reads the blocks that a FileSplitterInput finds, without an engine; its lines are discarded. The second
time, the blocks of the content are dealt to two processes in turn. All take turns, each in a process that has loaded
its modules, and the file is in memory. Times are processor times, of the busier process where there are two, so that
other work on the machine hardly matters.
"""

import argparse
import json
import multiprocessing
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from bench._page import machine_in_words, write_part
from bench.ingesting.text import write_text
from dagkit import Block, Context
from dagkit.api.running import Until
from dagkit.ranges import OffsetRange
from dagkit.testing import Alone
from dagkit_operators import FileSplitterInput, LineReader

LEAST_FIRST = 0.8
"""The least speed of the first reading, compared with igzip."""
LEAST_SECOND = 1.7
"""The least speed of the second reading on two cores, compared with the first."""
MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of ours is made in it
BLOCK = 32 << 20
IGZIP = ["igzip"] if shutil.which("igzip") else [sys.executable, "-m", "isal.igzip"]


@dataclass(frozen=True, slots=True)
class Result:
    """The medians over all rounds."""

    igzip_mb_per_second: float
    first_mb_per_second: float
    second_mb_per_second: float
    first_ratio: float
    second_ratio: float
    second_ratio_of_elapsed: float
    """The second reading compared with the first by elapsed time, which other work on the machine lengthens."""
    rounds: int


def seconds_of(blocks: Sequence[Block], application_path: str, *, counts: bool) -> tuple[float, int]:
    """The processor time for reading these blocks, and the number of their lines; 0 unless they are counted."""
    reader = Alone(LineReader(), connected=[])
    reader.operator.setup(Context("bench", "read", application_path=application_path))
    began, lines = time.process_time(), 0
    for block in blocks:
        tracker = reader.operator.tracker(block, OffsetRange(block.start, block.end))
        for batch in reader.operator.process(block, tracker):
            lines += len(batch) if counts else 0
    return time.process_time() - began, lines


def blocks_of(path: Path, application_path: str) -> list[Block]:
    """The blocks that a splitter finds."""
    splitter = Alone(
        FileSplitterInput(scanner={"files": [str(path)], "minimum_age_millis": 0}, block_size=BLOCK), until=Until.ONCE
    )
    splitter.operator.setup(Context("bench", "find", application_path=application_path, until=Until.ONCE))
    blocks: list[Block] = []
    while not blocks:
        splitter.look()
        blocks = splitter.sent()
    return blocks


def igzip_seconds(path: Path) -> float:
    """The processor time of igzip."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*IGZIP, "-d", "-c", str(path)], stdout=subprocess.DEVNULL, check=True)  # noqa: S603 - a file of ours
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def measured(folder: Path, size: int, rounds: int) -> Result:
    """Measure all contestants by turns."""
    text = write_text(folder / "text", size)
    path = folder / "text.gz"
    compress = zlib.compressobj(6, wbits=31)
    with (folder / "text").open("rb") as plain, path.open("wb") as file:
        while piece := plain.read(1 << 20):
            file.write(compress.compress(piece))
        file.write(compress.flush())
    times: dict[str, list[float]] = {"igzip": [], "first": [], "second": []}
    elapsed: list[float] = []
    with ExitStack() as opens:
        cores = [opens.enter_context(ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))) for _ in range(2)]
        for number in range(rounds + 1):  # the first round warms up, and counts the lines
            counts, home = number == 0, str(folder / f"application{number}")
            times["igzip"].append(igzip_seconds(path))
            whole = blocks_of(path, home)
            assert len(whole) == 1, "the first time, the file is read whole"
            begun = time.perf_counter()
            seconds, lines = cores[0].submit(seconds_of, whole, home, counts=counts).result()
            first_elapsed = time.perf_counter() - begun
            times["first"].append(seconds)
            blocks = blocks_of(path, home)
            assert len(blocks) == -(-size // BLOCK), "the second time, the content is divided"
            begun = time.perf_counter()
            dealt = [core.submit(seconds_of, blocks[turn::2], home, counts=counts) for turn, core in enumerate(cores)]
            answers = [each.result() for each in dealt]
            elapsed.append(first_elapsed / (time.perf_counter() - begun))
            times["second"].append(max(seconds for seconds, _ in answers))
            if counts:
                assert lines == sum(lines for _, lines in answers) == text.all.lines, "each line is read once"
    igzip, first, second = (times[name][1:] for name in ("igzip", "first", "second"))
    speed, speed_first, speed_second = (size / 1e6 / statistics.median(of_each) for of_each in (igzip, first, second))
    first_ratio = statistics.median(theirs / ours for theirs, ours in zip(igzip, first, strict=True))
    second_ratio = statistics.median(before / after for before, after in zip(first, second, strict=True))
    elapsed_ratio = statistics.median(elapsed[1:])
    return Result(speed, speed_first, speed_second, first_ratio, second_ratio, elapsed_ratio, rounds)


def holds(result: Result) -> bool:
    """Whether both readings are as fast as they must be."""
    return result.first_ratio >= LEAST_FIRST and result.second_ratio >= LEAST_SECOND


def page(result: Result, size: int) -> str:
    """This benchmark's part of the documents."""
    text = (
        f"One LineReader reads {size / 2**20:.0f} MiB of lines from a gzip file of level 6 for the first time, in "
        "turns with `igzip -d`; both discard the content. The reader makes the index, with which two processes read "
        f"the blocks of {BLOCK >> 20} MiB of the content the second time. Speeds are bytes of content by processor "
        "time, for the second reading by that of the busier process; ratios are medians over the rounds. By elapsed "
        f"time, the second reading was {result.second_ratio_of_elapsed:.2f} times as fast as the first. "
        f"Measured with {machine_in_words()}."
    )
    lines = ["## Compressed files", "", "```sh", "python -m bench compression --write-docs", "```", "", text, ""]
    lines += ["| | MB/s | ratio | at least | rounds |", "|---|---:|---:|---:|---:|"]
    rows = (
        ("`igzip -d`", result.igzip_mb_per_second, None, None),
        ("first reading, compared with igzip", result.first_mb_per_second, result.first_ratio, LEAST_FIRST),
        ("second reading, compared with the first", result.second_mb_per_second, result.second_ratio, LEAST_SECOND),
    )
    for name, speed, ratio, least in rows:
        ratios = "| | |" if ratio is None else f"| {ratio:.2f} | {least} |"
        lines.append(f"| {name} | {speed:.0f} {ratios} {result.rounds} |")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Measure, and return 1 if a ratio is too small."""
    parser = argparse.ArgumentParser(prog="python -m bench compression", description=__doc__)
    parser.add_argument("--mebibytes", type=int, default=256, help="the size of the content")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--write-docs", action="store_true", help="write the result to docs/benchmarks.md")
    given = parser.parse_args(arguments)
    size = given.mebibytes << 20
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.exists() else None) as folder:
        result = measured(Path(folder), size, given.rounds)
    print(json.dumps(asdict(result)) if given.json else page(result, size))
    if given.write_docs:
        write_part("compression", page(result, size))
    return int(not holds(result))
