"""`python -m bench copying`: `apps/file_copy` beside `cp`, on one file in blocks of 32 MiB.

Both take turns in one run, on one disk, with a warm session of Spark; each copy is compared with the original. Exits
with 1 if the median ratio of the copies with checksums, synced or not, is below the bound.
"""

import argparse
import filecmp
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from apps.file_copy.app import FileCopy
from bench._at_hand import memory_at_hand
from bench._chart import Bar, Chart
from bench._page import machine_in_words, write_part
from bench.ingesting.text import age
from dagkit.backends.spark import local_session
from dagkit.launching import launch

LEAST = 0.7
"""The speed of a copy with checksums, as a share of that of `cp`; for a synced one, of `cp` followed by `sync`."""
BOUND = {"dagkit, with checksums": "cp", "dagkit, synced, with checksums": "cp, synced"}
"""The contestants with a bound, and what each is compared with."""
BLOCK = 32 << 20
MIB = 1 << 20

Copy = Callable[[Path, Path], None]
"""Copies a file into a folder."""


def main(arguments: Sequence[str]) -> int:
    """Measure and print; return 1 if the bound is not met."""
    parser = argparse.ArgumentParser(prog="python -m bench copying", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--gib", type=float, default=1.0, help="the length of the file")
    parser.add_argument("--rounds", type=int, default=5, help="how often each of them copies")
    parser.add_argument(
        "--disk", type=Path, default=Path(tempfile.gettempdir()), help="a folder on the disk to measure"
    )
    parser.add_argument("--write-docs", action="store_true", help="write docs/benchmarks.md")
    asked = parser.parse_args(arguments)
    seconds = measured(asked.disk, round(asked.gib * 1024), asked.rounds)
    if asked.json:
        print(json.dumps(seconds))
    else:
        print(table(seconds, asked.gib))
    if asked.write_docs:
        bars = [Bar(name, [asked.gib * 2**30 / 1e6 / each for each in took]) for name, took in seconds.items()]
        chart = Chart("bench-copying", "Copying a file, MB/s", bars)
        write_part("copying", page(seconds, asked.gib, asked.rounds), chart)
    return 0 if all(ratio(seconds, ours, theirs) >= LEAST for ours, theirs in BOUND.items()) else 1


def measured(disk: Path, mebibytes: int, rounds: int) -> dict[str, list[float]]:
    """The seconds of each copy, by contestant."""
    session = local_session()

    def dagkit(*, durable: bool, checksums: bool = False) -> Copy:
        def copy(source: Path, place: Path) -> None:
            application = FileCopy(
                source=str(source),
                target=str(place / "target"),
                checksums=str(place / "checksums") if checksums else None,
                block_size=BLOCK,
            )
            readers = {"dt.operator.Reader.prop.minReaders": len(os.sched_getaffinity(0))}
            path = place / "application"
            launch(application, readers, spark=session, until="once", durable=durable, path=path)

        return copy

    contestants: dict[str, Copy] = {
        "cp": cp,
        "dagkit": dagkit(durable=False),
        "dagkit, with checksums": dagkit(durable=False, checksums=True),
        "cp, synced": cp_synced,
        "dagkit, synced": dagkit(durable=True),
        "dagkit, synced, with checksums": dagkit(durable=True, checksums=True),
    }
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    folder = Path(tempfile.mkdtemp(prefix="bench-copying-", dir=disk))
    try:
        source = folder / "original"
        with source.open("wb") as file:
            for _ in range(mebibytes):
                file.write(os.urandom(MIB))
        age(source)
        os.sync()
        with memory_at_hand(2 * mebibytes * MIB):
            for number in range(rounds + 1):
                for name, copy in contestants.items():
                    took = timed(copy, source, folder / "round")
                    if number:  # the first round warms the session
                        seconds[name].append(took)
                        print(f"{name}: {took:.2f} s", file=sys.stderr, flush=True)
    finally:
        shutil.rmtree(folder)
        session.stop()
    return seconds


def timed(copy: Copy, source: Path, place: Path) -> float:
    """The seconds of one copy, which must be identical."""
    (place / "target").mkdir(parents=True)
    try:
        began = time.monotonic()
        copy(source, place)
        took = time.monotonic() - began
        assert filecmp.cmp(source, place / "target" / source.name, shallow=False), "the copy is identical"
    finally:
        shutil.rmtree(place)
        os.sync()
    return took


def cp(source: Path, place: Path) -> None:
    """Copy with `cp`."""
    subprocess.run(["cp", source, place / "target"], check=True)  # noqa: S603, S607 - ours


def cp_synced(source: Path, place: Path) -> None:
    """Copy with `cp`, then wait for the disk."""
    cp(source, place)
    subprocess.run(["sync", place / "target" / source.name], check=True)  # noqa: S603, S607 - ours


def ratio(seconds: dict[str, list[float]], ours: str, theirs: str) -> float:
    """Their median time over ours."""
    return median(seconds[theirs]) / median(seconds[ours])


def table(seconds: dict[str, list[float]], gib: float) -> str:
    """The medians, and the ratio of each to `cp`."""
    lines = ["|  | MB/s | slowest to fastest | speed of `cp` = 1 |", "|---|---:|---:|---:|"]
    for name, took in seconds.items():
        rates = [gib * 2**30 / 1e6 / each for each in sorted(took, reverse=True)]
        share = ratio(seconds, name, "cp, synced" if "synced" in name else "cp")
        lines.append(f"| {name} | {median(rates):.0f} | {rates[0]:.0f} to {rates[-1]:.0f} | {share:.2f} |")
    return "\n".join(lines)


def page(seconds: dict[str, list[float]], gib: float, rounds: int) -> str:
    """This benchmark's part of the page."""
    return f"""# Copying a file

```sh
python -m bench copying --write-docs
```

`apps/file_copy` and `cp` copy one file of {gib:g} GiB, whose content is in memory, to the same disk. They take turns,
and each copy is compared with the original. The session of Spark is warm, and a launch includes finding the file, its
windows, and their commits. "Synced" copies survive a power cut: `cp` is followed by `sync`. With checksums, a copy must
reach {LEAST} of the speed of `cp`, and a synced one {LEAST} of that of `cp` with `sync`.

Measured with {machine_in_words()}; rounds: {rounds}.

{table(seconds, gib)}
"""
