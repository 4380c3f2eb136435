"""Scanning a hundred thousand files: the first scan beside `find`, later scans, and the memory that a file takes; then
a million files that were seen before: later scans, the memory of the driver, and what the ledger holds of them.

`find` and the splitter take turns on the same files, which are in the memory of the operating system. Both look at each
file's length and time, and both end with all of it in memory.
"""

import argparse
import base64
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path

from pydantic import JsonValue

from bench._page import machine_in_words, write_part
from bench.ingesting.text import age
from dagkit.engine.record.stored import StoredState
from dagkit.ground.garbage import rarely_collected
from dagkit.testing import Alone, FakeClock
from dagkit_operators import FileSplitterInput
from dagkit_operators.filesystem.listing import files_below
from dagkit_operators.finding.seen_files import BYTES, CHARACTERS, SeenFiles

LEAST_OF_FIND = 0.5
"""The least speed of a first scan, as a share of `find`'s."""
IN_FOLDER = 1000
"""Files in one folder."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds are medians of the rounds."""

    files: int
    rounds: int
    find: float
    first_scan: float
    scan_of_files: float
    """A later scan that looks at each file."""
    scan_of_folders: float
    """A later scan that looks at folders only, none of which changed."""
    bytes_found: float
    """Memory for each file that is found and not split yet."""
    bytes_known: float
    """Memory for each file that was split."""

    @property
    def of_find(self) -> float:
        """The speed of a first scan as a share of `find`'s."""
        return self.find / self.first_scan


@dataclass(frozen=True, slots=True)
class Seen:
    """What it costs to know many files. Seconds are medians."""

    files: int
    scan_of_files: float
    scan_of_folders: float
    megabytes: float
    """Memory of the process after these scans, beside that before the first."""
    written: float
    """Characters written to the ledger for each file, if windows find a thousand files each."""
    most_written: int
    """The most characters written in one of these windows."""


@contextmanager
def folders_of(count: int) -> Iterator[Path]:
    """So many files in folders."""
    with tempfile.TemporaryDirectory(prefix="finding-bench-") as place:
        for number in range(count):
            folder = Path(place, f"day-{number // IN_FOLDER:04}")
            if number % IN_FOLDER == 0:
                folder.mkdir()
            file = folder / f"part-{number:08}.log"
            file.write_bytes(b"x\n")
            age(file)
        yield Path(place)


@contextmanager
def linked_folders_of(count: int) -> Iterator[Path]:
    """So many names of files in folders; the files of a folder are links to one, which takes less time and space."""
    with tempfile.TemporaryDirectory(prefix="finding-bench-") as place:
        for start in range(0, count, IN_FOLDER):
            folder = Path(place, f"day-{start // IN_FOLDER:04}")
            folder.mkdir()
            first = folder / f"part-{start:08}.log"
            first.write_bytes(b"x\n")
            age(first)
            for number in range(start + 1, start + IN_FOLDER):
                os.link(first, folder / f"part-{number:08}.log")
        yield Path(place)


def seconds(work: Callable[[], object]) -> float:
    """The time that a function takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def measure(count: int, rounds: int) -> Measured:
    """Measure on files that are made for it."""
    with folders_of(count) as place:
        times: dict[str, list[float]] = {"find": [], "first": [], "files": [], "folders": []}
        later = {rescan: _splitter_that_knows(place, rescan) for rescan in ("files", "folders")}
        for _ in range(rounds):
            times["find"].append(seconds(lambda: _find(place, count)))
            times["first"].append(_first_scan(place, count))
            for rescan, splitter in later.items():
                times[rescan].append(_later_scan(splitter))
        found, known = _memory(place)
        find, first, files, folders = (statistics.median(measured) for measured in times.values())
        return Measured(count, rounds, find, first, files, folders, found / count, known / count)


def _find(place: Path, count: int) -> None:
    listed = subprocess.run(["find", place, "-printf", "%s %T@ %p\n"], check=True, capture_output=True)  # noqa: S603, S607
    assert listed.stdout.count(b".log\n") == count, "find lists all files"


def _splitter(place: Path, rescan: str = "files") -> Alone[FileSplitterInput]:
    scanner = {"files": [str(place)], "rescan": rescan, "scan_interval_millis": 0}
    return Alone(FileSplitterInput(scanner=scanner, blocks_threshold=10**9), now=FakeClock().now)


def _first_scan(place: Path, count: int) -> float:
    operator = _splitter(place).operator
    spent = seconds(lambda: operator._take(operator._look_through(threading.Event())))  # noqa: SLF001 - the scan without the splitting
    assert len(operator._found) == count, "the scan finds all files"  # noqa: SLF001
    return spent


def _splitter_that_knows(place: Path, rescan: str) -> Alone[FileSplitterInput]:
    """A splitter that has split all files."""
    splitter = _splitter(place, rescan)
    splitter.look()
    assert splitter.sent(), "the files are split"
    splitter.look()
    splitter.look()  # a folder is listed twice if it changed just before it was listed first
    return splitter


def _later_scan(splitter: Alone[FileSplitterInput]) -> float:
    spent = seconds(splitter.look)
    assert not splitter.sent(), "no file is found again"
    return spent


def _memory(place: Path) -> tuple[int, int]:
    """The bytes that the splitter holds for all files: found, and split."""
    splitter = _splitter(place)
    operator = splitter.operator
    tracemalloc.start()
    operator._take(operator._look_through(threading.Event()))  # noqa: SLF001
    found = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    splitter.look()
    state = splitter.state
    del splitter, operator
    tracemalloc.start()
    restored = Alone(FileSplitterInput(scanner={"files": [str(place)]}), state=state, now=FakeClock().now)
    known = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert restored.operator.known, "it knows the files"
    return found, known


def measure_seen(count: int, rounds: int) -> Seen:
    """Measure with so many files that were seen before, in a process of its own."""
    with linked_folders_of(count) as place, ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
        files, folders, megabytes = processes.submit(_scans_of_seen, place, count, rounds).result()
    return Seen(count, files, folders, megabytes, *_written(count))


def _scans_of_seen(place: Path, count: int, rounds: int) -> tuple[float, float, float]:
    """The seconds of a later scan of files and of folders, and the megabytes of memory that they took."""
    before = _resident()
    seen = SeenFiles()
    known = "".join(map(seen.add, files_below(str(place), recursive=True)))
    assert len(seen) == count, "all files are known"
    del seen
    times = []
    for rescan in ("files", "folders"):
        scanner = {"files": [str(place)], "rescan": rescan, "scan_interval_millis": 0}
        state: dict[str, JsonValue] = {"known": known, "knows_paths": True, "next_block_id": count}
        splitter = Alone(FileSplitterInput(scanner=scanner), state=state, now=FakeClock().now)
        splitter.look()
        splitter.look()  # a folder is listed twice if it changed just before it was listed first
        times.append(statistics.median(_later_scan(splitter) for _ in range(rounds)))
        megabytes = (_resident() - before) / 1e6
        del splitter
    return times[0], times[1], megabytes


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _written(count: int) -> tuple[float, int]:
    """The characters that the ledger holds of what is known, for each file, and the most for one window."""
    text = base64.b64encode(random.Random(0).randbytes(count * BYTES)).decode()
    stored, written = StoredState({}), []
    for number in range(1, count // IN_FOLDER + 1):
        stored, document = stored.after({"known": text[: number * IN_FOLDER * CHARACTERS]}, number)
        written.append(len(json.dumps(document)))
    return sum(written) / count, max(written)


def page(measured: Measured, seen: Seen) -> str:
    """This benchmark's part of the documents."""
    verdict = "holds" if measured.of_find >= LEAST_OF_FIND else "falls short"
    text = (
        f"{measured.files} files in folders of {IN_FOLDER}, in the operating system's memory; medians of "
        f"{measured.rounds} rounds, in which `find -printf '%s %T@ %p'` and the splitter take turns. A first scan must "
        f"reach {LEAST_OF_FIND} of the speed of `find`: at {measured.of_find:.2f} it {verdict}. Measured with "
        f"{machine_in_words()}."
    )
    known = f"{measured.bytes_known:.0f} bytes for each file that was split."
    micros = 1e6 / measured.files
    remembered = (
        f"With {seen.files} files seen before, a later scan without changes takes {seen.scan_of_files:.2f} s, with "
        f'`rescan="folders"` {seen.scan_of_folders:.3f} s. The driver takes {seen.megabytes:.0f} MB for them, '
        f"{seen.megabytes * 1e6 / seen.files:.0f} bytes for each, the temporary memory of a launch included. If "
        f"windows find {IN_FOLDER} files each, the ledger holds {seen.written:.0f} characters for each file; the "
        f"largest of these entries has {seen.most_written / 1e6:.1f} million."
    )
    return "\n".join(
        [
            "## Finding files",
            "",
            "```sh",
            "python -m bench finding --write-docs",
            "```",
            "",
            text,
            "",
            "|  | seconds | µs for each file |",
            "|---|---:|---:|",
            *(
                f"| {name} | {spent:.3f} | {spent * micros:.2f} |"
                for name, spent in {
                    "`find`, its output kept": measured.find,
                    "first scan": measured.first_scan,
                    "later scan, nothing changed": measured.scan_of_files,
                    'later scan with `rescan="folders"`, nothing changed': measured.scan_of_folders,
                }.items()
            ),
            "",
            f"The driver holds {measured.bytes_found:.0f} bytes for each file found and not split yet, and {known}",
            "",
            remembered,
        ]
    )


def main(arguments: list[str]) -> int:
    """Measure and print; return 1 if the first scan is too slow."""
    options = argparse.ArgumentParser(prog="python -m bench finding", description=__doc__)
    options.add_argument("--files", type=int, default=100_000)
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--seen", type=int, default=1_000_000, help="files that were seen before")
    options.add_argument("--json", action="store_true", help="print one JSON document")
    options.add_argument("--write-docs", action="store_true", help="write the results into docs/benchmarks.md")
    chosen = options.parse_args(arguments)
    with rarely_collected():  # as in a launch
        measured = measure(chosen.files, chosen.rounds)
    seen = measure_seen(chosen.seen, min(chosen.rounds, 3))
    if chosen.json:
        figures = {**asdict(measured), "of_find": measured.of_find, "seen": asdict(seen)}
        print(json.dumps({"schema": "dagkit.bench.finding/1", **figures}))
    else:
        print(page(measured, seen))
    if chosen.write_docs:
        write_part("finding", page(measured, seen))
    return 0 if measured.of_find >= LEAST_OF_FIND else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
