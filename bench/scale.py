"""Measures how the number of partitions follows the backlog: a burst of blocks, a pause, and a trickle.

On real Spark, dagkit's policy is compared with every fixed number and with the policy of Apex. All fixed numbers run in
ascending and descending order. Those that are not far behind alternate with the policies in further rounds. The best of
them is then measured again in pairs with dagkit's policy. A simulation covers a thousand slots and a million blocks.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from statistics import median

from bench._page import write_part
from bench.ingesting.sizes import cores
from bench.scaling.imagined import imagined
from bench.scaling.phases import Phases, Stage
from bench.scaling.report import NEAR, Real, holds, page, real_lines, simulated_lines
from dagkit.backends.spark import local_session

ONE_FILE = Phases(blocks=1, block_size=128 << 20)
PAIRS = 9
"""How often the best fixed number and `drain` are measured in pairs at the end."""


def measured(phases: Phases, rounds: int, most: int) -> Real:
    """Measure all numbers and policies on real Spark."""
    spark = local_session(cores())
    real = Real()
    try:
        real.windows_until_all_cores = _windows_until_all_cores(Stage(spark, ONE_FILE))
        stage = Stage(spark, phases)
        try:
            stage.fixed(cores())  # warm up: the first run, and the first change, pay one-time costs
            stage.watched(burst_only=True)
            for counts in (range(1, most + 1), range(most, 0, -1)):  # later runs find Spark warmer
                _all_fixed(stage, real, counts)
            for number in range(rounds):
                _say(f"round {number + 1} of {rounds}")
                _further_round(stage, real)
            for number in range(PAIRS):
                _say(f"pair {number + 1} of {PAIRS}")
                real.pairs.append(_pair(stage, real.best, drain_first=number % 2 == 1))
        finally:
            stage.close()
    finally:
        spark.stop()
    return real


def _windows_until_all_cores(stage: Stage) -> int | None:
    """The windows of one large file until every core had a partition, with default settings."""
    try:
        if cores() == 1:
            return 0
        changes = stage.watched(burst_only=True).changes
        return next((change.windows for change in changes if change.after >= cores()), None)
    finally:
        stage.close()


def _all_fixed(stage: Stage, real: Real, counts: Iterable[int]) -> None:
    for count in counts:
        millis = stage.fixed(count).drained_millis
        real.fixed.setdefault(count, []).append(millis)
        _say(f"fixed {count}: {millis / 1000:.2f} s")


def _further_round(stage: Stage, real: Real) -> None:
    shortest = min(median(millis) for millis in real.fixed.values())
    near = [count for count, millis in real.fixed.items() if median(millis) <= NEAR * shortest]
    for count in sorted({1, *near}):
        real.fixed[count].append(stage.fixed(count).drained_millis)
    drain, apex = stage.watched(), stage.watched(policy="apex")
    real.drain.append(drain.drained_millis)
    real.apex.append(apex.drained_millis)
    real.drain_changes.append(drain.changes)
    real.apex_changes.append(apex.changes)
    silence = float(stage.phases.silence_millis)
    real.drain_turns = max(real.drain_turns, drain.turns(0, silence), drain.turns(silence, float("inf")))
    real.apex_turns = max(real.apex_turns, apex.turns(0, silence), apex.turns(silence, float("inf")))


def _pair(stage: Stage, count: int, *, drain_first: bool) -> tuple[float, float]:
    """Measure a fixed number and `drain` directly after each other."""
    if drain_first:
        drain = stage.watched(burst_only=True).drained_millis
        return stage.fixed(count).drained_millis, drain
    return stage.fixed(count).drained_millis, stage.watched(burst_only=True).drained_millis


def main(arguments: Sequence[str]) -> int:
    """Measure and print; return 1 if a bound was exceeded."""
    asked = _asked(arguments)
    phases = Phases(blocks=asked.blocks, block_size=asked.kib << 10)
    simulated = list(imagined()) if asked.where != "spark" else []
    real = measured(phases, asked.rounds, asked.most) if asked.where != "simulated" else None
    kept = all(map(holds, simulated)) and (real is None or real.holds)
    if asked.json:
        results = {"simulated": [asdict(one) for one in simulated], "real": None if real is None else real.as_json()}
        print(json.dumps({"schema": "dagkit.bench.scale/1", **results, "holds": kept}, indent=2))
    else:
        print("\n".join([*real_lines(real), *simulated_lines(simulated)]))
    if asked.write_docs:
        if real is None or not simulated:
            raise SystemExit("the page needs both measurements and simulations: leave --where out")
        write_part("scale", page(phases, real, simulated))
    return 0 if kept else 1


def _asked(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench scale", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--where", choices=("spark", "simulated", "both"), default="both", help="what to run")
    parser.add_argument("--blocks", type=int, default=500, help="blocks of the burst")
    parser.add_argument("--kib", type=int, default=2048, help="KiB of a block")
    parser.add_argument("--rounds", type=int, default=2, help="further rounds of the best numbers and the policies")
    parser.add_argument("--most", type=int, default=16, help="largest fixed number of partitions")
    parser.add_argument("--write-docs", action="store_true", help="write the part of docs/benchmarks.md")
    return parser.parse_args(arguments)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
