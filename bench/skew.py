"""Measures waiting for stragglers on real Spark: one file with an expensive range, and one slow block among many.

The ideal is all work divided by the slots, measured slot by slot. The contestants are dagkit, dagkit without splits,
and Spark with fixed partitions, with and without speculation. The benchmark checks each output.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession

from bench._chart import Bar, Chart
from bench._page import machine_in_words, write_part
from bench.skewing.contestants import CONTESTANTS, Contestant, clear, written
from bench.skewing.work import SKEWS, Skew, Work, digest_of, ideal, rounds_for
from dagkit.engine.program.facts import Split
from dagkit.engine.record.history import history
from dagkit.ledger import Ledger

LARGEST_RATIO = 1.15
"""The most time that dagkit may take, as a multiple of the ideal."""
SLOTS = 2
MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of ours is made in it


@dataclass
class Race:
    """The times for one kind of work, in seconds."""

    skew: Skew
    work: Work
    digest: tuple[int, int]
    """The expected number of lines, and their checksum."""
    ideals: list[float]
    seconds: dict[str, list[float]] = field(default_factory=dict)
    windows: int = 0
    splits: int = 0
    """The splits in dagkit's last run."""

    def ratio(self, name: str) -> float:
        """The time of a contestant as a multiple of the ideal: the median over the rounds."""
        return median(self.seconds[name]) / median(self.ideals)

    @property
    def holds(self) -> bool:
        return self.ratio(CONTESTANTS[0].name) <= LARGEST_RATIO

    def chart(self) -> Chart:
        bars = [Bar("ideal", self.ideals), *(Bar(name, seconds) for name, seconds in self.seconds.items())]
        return Chart(f"bench-skew-{self.skew.name.replace(' ', '-')}", f"{self.skew.name.capitalize()}, seconds", bars)

    def as_json(self) -> dict[str, object]:
        times = {"ideals": self.ideals, "seconds": self.seconds, "windows": self.windows, "splits": self.splits}
        return {"skew": asdict(self.skew), **times, "ratios": {name: self.ratio(name) for name in self.seconds}}


class WrongResult(RuntimeError):
    """The output of a contestant is wrong."""


def raced(folder: Path, seconds: float, rounds: int) -> list[Race]:
    """The times of all contestants for all kinds of work."""
    races = [_begun(skew, folder, seconds, rounds) for skew in SKEWS]
    for speculates in (False, True):
        contestants = [each for each in CONTESTANTS if each.speculates is speculates]
        spark = contestants[0].session(SLOTS)
        try:
            for contestant in contestants:
                contestant.warm_up(spark, folder, SLOTS)
            for number in range(rounds):
                _say(f"round {number + 1} of {rounds}")
                for race in races:
                    for contestant in contestants:
                        _run(race, contestant, spark, folder / "out")
        finally:
            spark.stop()
    return races


def _begun(skew: Skew, folder: Path, seconds: float, rounds: int) -> Race:
    """Make the work and measure its ideal time."""
    source = folder / f"{skew.name.replace(' ', '-')}.txt"
    skew.write(source)
    work = Work.of(skew, source, SLOTS, rounds_for(seconds, skew.units_together))
    ideals = [ideal(work) for _ in range(rounds)]
    _say(f"{skew.name}: {median(one.seconds for one in ideals):.2f} s at best")
    return Race(skew, work, ideals[0].digest, [one.seconds for one in ideals])


def _run(race: Race, contestant: Contestant, spark: SparkSession, target: Path) -> None:
    took = contestant.run(spark, race.work, target)
    found = digest_of(written(target))
    if found != race.digest:
        raise WrongResult(f"{contestant.name} wrote {found}, but {race.digest} is correct")
    race.seconds.setdefault(contestant.name, []).append(took)
    if contestant is CONTESTANTS[0]:
        race.windows, race.splits = _windows_and_splits(target)
    clear(target)
    _say(f"{race.skew.name}, {contestant.name}: {took:.2f} s")


def _windows_and_splits(target: Path) -> tuple[int, int]:
    """The numbers of windows and splits in a run of dagkit."""
    entries = list(history(Ledger.open(str(target.with_suffix(".application")))))
    return len(entries), sum(isinstance(fact, Split) for entry in entries for fact in entry.checkpoint.facts)


def tables(races: Sequence[Race]) -> Iterator[str]:
    """The results for a terminal."""
    for race in races:
        yield f"{race.skew.name + ', seconds':28}{'median':>8}{'least':>8}{'ratio':>8}"
        yield f"{'ideal':28}{median(race.ideals):>8.2f}{min(race.ideals):>8.2f}{1:>8.2f}"
        for name, seconds in race.seconds.items():
            yield f"{name:28}{median(seconds):>8.2f}{min(seconds):>8.2f}{race.ratio(name):>8.2f}"
        missed = "" if race.holds else "  MISSED"
        yield f"dagkit may take {LARGEST_RATIO:g}; windows: {race.windows}, splits: {race.splits}{missed}\n"


def page(races: Sequence[Race], seconds: float, rounds: int) -> str:
    """This benchmark's part of the documents."""
    lines = ["# Stragglers", "", "```sh", "python -m bench skew --write-docs", "```", ""]
    about = (
        f"The work takes about {seconds:g} seconds on one core and runs in {SLOTS} slots: a Python function processes "
        "each line of a file and takes as long as the line specifies. **Ideal** is all work divided by the slots, "
        "measured in every slot at the same time, without blocks, windows, files or waiting. The contestants are timed "
        "from the first call to the last file in its place, in a warm session, and their output is checked. Seconds "
        f"are medians; rounds: {rounds}. Measured with {machine_in_words()}."
    )
    lines += [about, ""]
    for race in races:
        lines += [f"**{race.skew.name[0].upper()}{race.skew.name[1:]}**: {race.skew.about}.", ""]
        lines += ["|  | seconds | over the ideal |", "|---|---:|---:|", f"| ideal | {median(race.ideals):.2f} | 1.00 |"]
        lines += [f"| {name} | {median(s):.2f} | {race.ratio(name):.2f} |" for name, s in race.seconds.items()]
        verdict = (
            f"dagkit may take {LARGEST_RATIO:g} times the ideal. {'This holds' if race.holds else 'This falls short'}, "
            f"with {race.windows} windows and {race.splits} splits in the last round."
        )
        lines += ["", verdict, ""]
    lines += ["|  | how |", "|---|---|", *(f"| {each.name} | {each.about} |" for each in CONTESTANTS)]
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Measure and print; return 1 if dagkit is too far from the ideal."""
    parser = argparse.ArgumentParser(prog="python -m bench skew", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--seconds", type=float, default=40.0, help="work for one core, about")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each contestant")
    parser.add_argument("--write-docs", action="store_true", help="write the part of docs/benchmarks.md")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        races = raced(Path(folder), asked.seconds, asked.rounds)
    kept = all(race.holds for race in races)
    if asked.json:
        head = {"schema": "dagkit.bench.skew/1", "largest_ratio": LARGEST_RATIO}
        print(json.dumps({**head, "races": [race.as_json() for race in races], "holds": kept}, indent=2))
    else:
        print("\n".join(tables(races)))
    if asked.write_docs:
        write_part("skew", page(races, asked.seconds, asked.rounds), *(race.chart() for race in races))
    return 0 if kept else 1


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
