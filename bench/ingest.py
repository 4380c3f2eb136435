"""The speed of dagkit and its peers in a simple task.

Each contestant drops the lines that begin with a dot and writes the others. The benchmark checks each output, and
reports contestants that cannot run, with what to install. The ratios in `bench/ingesting/laws.py` decide the exit code.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench._page import PAGE, write_part
from bench.ingesting.asking import ROOT
from bench.ingesting.contestants import CONTESTANTS, NAMES, Contestant
from bench.ingesting.environments import cache_folder
from bench.ingesting.laws import Verdict, judged
from bench.ingesting.race import Effort, Measured, Missing, Place, race
from bench.ingesting.report import Line, charts, line_of, machine, page, tables
from bench.ingesting.sizes import cores

MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of ours is made in it


def main(arguments: Sequence[str]) -> int:
    """Measure and print; return 1 if a ratio is not met or a contestant was not measured."""
    asked = _asked(arguments)
    effort = Effort(round(asked.gib * 2**30), asked.rounds, asked.runs)
    lines = [machine(effort)]
    if asked.json:
        print(json.dumps(lines[0]))
    for place in _places(asked.where, asked.disk):
        for found in _found(asked.only, place, effort):
            lines.append(line_of(found))
            if asked.json:
                print(json.dumps(lines[-1]), flush=True)
    if not asked.json:
        print("\n".join(tables(lines)))
    if asked.write_docs:
        write_part("ingest", page(lines), *charts(lines))
        _say(f"wrote {PAGE.relative_to(ROOT)}")
    return 0 if _is_passed(lines) else 1


def _found(contestants: Sequence[Contestant], place: Place, effort: Effort) -> Iterator[Measured | Missing | Verdict]:
    """The results of all contestants in one place, then the verdicts."""
    raced = race(contestants, place, effort, _say)
    yield from raced
    rates = {found.contestant.name: found.compared for found in raced if isinstance(found, Measured)}
    asked = frozenset(contestant.name for contestant in contestants)
    yield from judged(rates, asked, place.name, cores())


def _is_passed(lines: Sequence[Line]) -> bool:
    """Whether all contestants were measured and all ratios met."""
    return all(line["kind"] != "missing" and line.get("verdict", "holds") == "holds" for line in lines)


def _places(where: str, disk: Path) -> Iterator[Place]:
    if where in ("memory", "both"):
        if not MEMORY.is_dir():
            raise SystemExit(f"there is no {MEMORY} on this machine: use --where disk")
        yield Place("memory", MEMORY, on_disk=False)
    if where in ("disk", "both"):
        yield Place("disk", disk)


def _asked(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench ingest", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print a line of JSON for each finding")
    parser.add_argument("--gib", type=_positive, default=1.0, help="GiB of text; slow contestants read a part of it")
    parser.add_argument("--only", type=_contestants, default=CONTESTANTS, metavar="NAME,…", help=", ".join(NAMES))
    parser.add_argument("--where", choices=("disk", "memory", "both"), default="both", help="where the files are")
    parser.add_argument("--disk", type=Path, default=cache_folder(), help="a folder on the disk to measure")
    parser.add_argument("--rounds", type=_count, default=3, help="how often each contestant is started")
    parser.add_argument("--runs", type=_count, default=6, help="warm runs of each process")
    parser.add_argument("--write-docs", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    return parser.parse_args(arguments)


def _contestants(text: str) -> tuple[Contestant, ...]:
    wanted = text.split(",")
    unknown = [name for name in wanted if name not in NAMES]
    if unknown:
        raise argparse.ArgumentTypeError(f"there is no {', '.join(unknown)}; the contestants are {', '.join(NAMES)}")
    return tuple(contestant for contestant in CONTESTANTS if contestant.name in wanted)


def _positive(text: str) -> float:
    number = float(text)
    if number <= 0:
        raise argparse.ArgumentTypeError("must be greater than 0")
    return number


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
