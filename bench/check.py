"""Whether a change made dagkit slower: five central figures of this tree and of a commit, measured by turns.

A copy of the commit measures itself with its own benchmarks, so that both do what they claim to do. Figures of two
trees differ by some percent on a machine where nothing else runs: the median over the rounds counts.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench._page import ROOT

LEAST = 0.9
"""The least speed of this tree, in speeds of the commit."""
ONLY = "dagkit-batch,dagkit-record"
INGEST = ("ingest", "--json", "--where", "memory", "--rounds", "1", "--runs", "5", "--only", ONLY)
EXCHANGE = ("exchange", "--json", "--megabytes", "400", "--rounds", "2", "--only", "text")
WINDOW = ("window", "--json", "--rounds", "2")

Answers = Sequence[Mapping[str, Any]]
"""The documents that a benchmark printed."""

Run = Callable[[Path, Sequence[str]], Answers]


class NotMeasured(RuntimeError):
    """A benchmark ended with an error instead of figures."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A speed: more is better."""

    name: str
    unit: str
    benchmark: tuple[str, ...]
    read: Callable[[Answers], float]


def _rate(contestant: str, key: str) -> Callable[[Answers], float]:
    def read(answers: Answers) -> float:
        (rate,) = (float(each[key]) for each in answers if each.get("contestant") == contestant and key in each)
        return rate

    return read


def _windows_a_second(answers: Answers) -> float:
    (millis,) = (each["median_millis"] for each in answers[0]["measured"] if each["name"] == "window")
    return 1000 / float(millis)


FIGURES = (
    Figure("batch ingest", "MB/s", INGEST, _rate("dagkit-batch", "warm_mb_per_second")),
    Figure("ingest per record", "MB/s", INGEST, _rate("dagkit-record", "warm_mb_per_second")),
    Figure("first run of a process", "MB/s", INGEST, _rate("dagkit-batch", "cold_mb_per_second")),
    Figure("exchange by text", "MB/s", EXCHANGE, lambda answers: float(answers[0]["ways"][0]["mb_per_second"])),
    Figure("windows", "1/s", WINDOW, _windows_a_second),
)


def main(arguments: Sequence[str]) -> int:
    """Measure both and print; return 1 if this tree is slower in one figure."""
    parser = argparse.ArgumentParser(prog="python -m bench check", description=__doc__)
    parser.add_argument("commit", nargs="?", default="HEAD", help="compare with this commit; HEAD unless given")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(arguments)
    with tree_of(asked.commit) as earlier:
        found = measured({"before": earlier, "now": ROOT}, asked.rounds)
    if asked.json:
        print(json.dumps(found, indent=1))
    else:
        print("\n".join(table(found)))
    return 0 if all(ratio(both) >= LEAST for both in found.values()) else 1


@contextmanager
def tree_of(commit: str) -> Iterator[Path]:
    """A copy of a commit, compiled, which is removed in the end."""
    with tempfile.TemporaryDirectory() as name:
        tree = Path(name) / "tree"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", tree, commit], cwd=ROOT, check=True)  # noqa: S603, S607
        try:
            compiling = "import hatch_build as h; [h.compile_library(s, h.FOLDER / h.library_of(s)) for s in h.SOURCES]"
            subprocess.run([sys.executable, "-c", compiling], cwd=tree, check=True)  # noqa: S603
            yield tree
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=ROOT, check=True)  # noqa: S603, S607


def run(tree: Path, benchmark: Sequence[str]) -> Answers:
    """What a benchmark of a tree prints. That it misses a bound, which it says by its exit code, does not matter."""
    paths = os.pathsep.join([str(tree), str(tree / "operators")])
    done = subprocess.run(  # noqa: S603 - our own module
        [sys.executable, "-m", "bench", *benchmark],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    try:
        return [json.loads(done.stdout)]
    except json.JSONDecodeError:  # a document in each line, or none
        lines = done.stdout.splitlines()
    if done.returncode not in (0, 1) or not lines:
        raise NotMeasured(f"python -m bench {' '.join(benchmark)} ended with {done.returncode} in {tree}")
    return [json.loads(line) for line in lines]


def measured(trees: Mapping[str, Path], rounds: int, run: Run = run) -> dict[str, dict[str, list[float]]]:
    """The figures of all trees, by name of the figure and of the tree. The trees begin a round in turn."""
    found: dict[str, dict[str, list[float]]] = {each.name: {name: [] for name in trees} for each in FIGURES}
    for number in range(rounds):
        for benchmark in dict.fromkeys(each.benchmark for each in FIGURES):
            for name in sorted(trees, reverse=bool(number % 2)):
                answers = run(trees[name], benchmark)
                for figure in FIGURES:
                    if figure.benchmark == benchmark:
                        found[figure.name][name].append(figure.read(answers))
                        print(f"{figure.name}, {name}: {found[figure.name][name][-1]:.1f}", file=sys.stderr, flush=True)
    return found


def ratio(both: Mapping[str, Sequence[float]]) -> float:
    """The speed of this tree, in speeds of the commit."""
    return median(both["now"]) / median(both["before"])


def table(found: Mapping[str, Mapping[str, Sequence[float]]]) -> Iterator[str]:
    """The figures for a terminal."""
    yield f"{'':<32}{'before':>10}{'now':>10}{'ratio':>8}  of each round"
    for figure in FIGURES:
        both = found[figure.name]
        rounds = " ".join(f"{now / before:.2f}" for before, now in zip(both["before"], both["now"], strict=True))
        slower = "" if ratio(both) >= LEAST else f"  SLOWER than {LEAST:g}"
        medians = f"{median(both['before']):>10.1f}{median(both['now']):>10.1f}{ratio(both):>8.2f}"
        yield f"{f'{figure.name}, {figure.unit}':<32}{medians}  {rounds}{slower}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
