"""A long run: files arrive, are overwritten, properties and partitions change, drivers are stopped and killed.

`python -m tests.soak --minutes 20 --files 1000000` asserts that memory, descriptors, threads and the cost of a window
stay as they are while windows and files add up, that nothing is left behind, and that each line is in the output once.
It prints the figures as JSON.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TypeVar

from tests.soak.soaking import Sample, Soak, Window

T = TypeVar("T")
ALLOWED: Mapping[str, tuple[float, float]] = {
    "driver_mb": (1.1, 16),
    "largest_worker_mb": (1.15, 16),
    "java_mb": (1.25, 128),
    "processes": (1, 2),
    "descriptors": (1, 12),
    "threads": (1, 6),
    "staging_folders": (1, 4),
    "window_cpu_millis": (1.3, 3),
}
"""By how much a figure of the last third may exceed that of the first: a factor, and then a summand."""


def thirds(samples: Sequence[Sample], windows: Sequence[Window]) -> dict[str, list[float]]:
    """The median of each figure in the first, the second and the last third of the time."""
    figures: dict[str, list[float]] = {name: [] for name in ALLOWED}
    for part in _parts(samples):
        for name in Sample.__annotations__:
            figures[name].append(median(getattr(sample, name) for sample in part))
    for share in _parts(windows):
        figures["window_cpu_millis"].append(median(each.cpu_millis - last.cpu_millis for last, each in pairwise(share)))
    return {name: [round(value, 1) for value in values] for name, values in figures.items()}


def _parts(values: Sequence[T]) -> list[Sequence[T]]:
    size = len(values) // 3
    assert size > 3, "the run was too short to compare its parts"
    return [values[at * size : (at + 1) * size] for at in range(3)]


def grown(figures: Mapping[str, Sequence[float]]) -> list[str]:
    """The figures that grew by more than is allowed."""
    return [
        f"{name} grew from {values[0]} to {values[-1]}"
        for name, values in figures.items()
        if values[-1] > values[0] * ALLOWED[name][0] + ALLOWED[name][1]
    ]


def main(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="tests.soak")
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--files", type=int, default=1_000_000, help="how many files count as read at the start")
    parser.add_argument("--backend", choices=["spark", "reference"], default="spark")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="dagkit-soak-") as home:
        os.chdir(home)
        soak = Soak(Path(home), options.backend, options.seed)
        soak.put_known(options.files)
        soak.run(options.minutes * 60)
        windows = soak.windows
        figures = thirds(soak.samples, windows)
        problems = [*grown(figures), *soak.problems()]
        os.chdir("/")
    report = {
        "minutes": options.minutes,
        "files": options.files,
        "windows": windows[-1].window,
        "thirds": figures,
        **soak.totals,
        "problems": problems,
    }
    sys.stdout.write(f"{json.dumps(report, indent=1)}\n")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
