"""The report on numbers of partitions: bounds, lines for a terminal, and a part of the page."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median

from bench._page import machine_in_words
from bench.scaling.imagined import Imagined
from bench.scaling.phases import Changed, Phases
from bench.scaling.trials import ALL_UP_TO, STEP

SIMULATED = (
    "Simulated by the engine's scheduler with two windows in flight, each burst with a trickle after it; of fixed "
    f"numbers all are tried up to {ALL_UP_TO}, and beyond in steps of {STEP:.0%}"
)
LARGEST_RATIO = 1.1
"""The most time for a burst, as a multiple of that of the best fixed number."""
MOST_TURNS = 1
"""How often the number may change its direction in one phase."""
MOST_WINDOWS = 2
"""The most windows of one large file until every core works."""
NEAR = 1.25
"""Fixed numbers take part in further rounds up to this multiple of the shortest time."""


@dataclass
class Real:
    """The times on Spark, in milliseconds."""

    fixed: dict[int, list[float]] = field(default_factory=dict)
    drain: list[float] = field(default_factory=list)
    drain_changes: list[list[Changed]] = field(default_factory=list)
    drain_turns: int = 0
    apex: list[float] = field(default_factory=list)
    apex_changes: list[list[Changed]] = field(default_factory=list)
    apex_turns: int = 0
    windows_until_all_cores: int | None = None
    """The windows of one large file until every core worked; None: never."""
    pairs: list[tuple[float, float]] = field(default_factory=list)
    """The best fixed number again, each time with `drain` directly before or after it."""

    @property
    def best(self) -> int:
        """The fixed number with the shortest time."""
        return min(self.fixed, key=lambda count: median(self.fixed[count]))

    @property
    def ratio(self) -> float:
        """The time of `drain` as a multiple of that of the best fixed number.

        Both were measured again, in pairs: the shortest of many medians is partly luck, and the speed of a machine
        changes during the trials.
        """
        return median(drain / fixed for fixed, drain in self.pairs)

    @property
    def holds(self) -> bool:
        """Whether all bounds are met."""
        soon = self.windows_until_all_cores is not None and self.windows_until_all_cores <= MOST_WINDOWS
        return self.ratio <= LARGEST_RATIO and self.drain_turns <= MOST_TURNS and soon

    def as_json(self) -> dict[str, object]:
        return {**asdict(self), "best": self.best, "ratio": self.ratio}


def holds(each: Imagined) -> bool:
    """Whether the policy met the bounds in this simulation."""
    return each.drain_over_best <= LARGEST_RATIO and each.drain_turns <= MOST_TURNS


def real_lines(real: Real | None) -> Iterator[str]:
    """The results on Spark, for a terminal."""
    if real is None:
        return
    yield f"{'on Spark':<16}{'runs':>6}{'median s':>10}{'least s':>10}"
    for name, millis in _rows(real):
        yield f"{name:<16}{len(millis):>6}{median(millis) / 1000:>10.2f}{min(millis) / 1000:>10.2f}"
    yield (
        f"drain over the best fixed number, {real.best}: {real.ratio:.2f}, at most {LARGEST_RATIO:g}; "
        f"turns {real.drain_turns}; one file {_windows(real)}{'' if real.holds else '  MISSED'}"
    )


def simulated_lines(simulated: Sequence[Imagined]) -> Iterator[str]:
    """The results of the simulations, for a terminal."""
    for each in simulated:
        yield f"simulated: {each.world}"
        yield (
            f"  best of 1 to {each.most} is {each.best_count}: {each.best_seconds:.1f} s; "
            f"drain {each.drain_seconds:.1f} s, {each.drain_over_best:.3f} of it, turns {each.drain_turns}; "
            f"apex {each.apex_seconds:.1f} s; one {each.one_seconds:.1f} s{'' if holds(each) else '  MISSED'}"
        )


def page(phases: Phases, real: Real, simulated: Sequence[Imagined]) -> str:
    """This benchmark's part of the documents."""
    text = (
        f"The work is a burst of {phases.blocks} blocks of {phases.block_size >> 10} KiB, a pause, and "
        f"{phases.trickle} blocks one by one; a Python function processes each line. It runs with every fixed number "
        "of partitions, in ascending and descending order, and with the two policies of a reader, which start with "
        "one. The time is that from the discovery of the burst to the commit of its last block. Fixed numbers with at "
        f"most {NEAR:g} times the shortest time alternate with the policies in further rounds. The best fixed number "
        f"and `drain` are then measured again in {len(real.pairs)} pairs, and the median of their ratios counts: the "
        f"shortest of many medians is partly luck. Measured with {machine_in_words()}."
    )
    verdict = (
        f"With `drain` the burst takes {real.ratio:.2f} times as long as with the best fixed number, {real.best}; up "
        f"to {LARGEST_RATIO:g} is allowed. In one phase the number changed its direction {_times(real.drain_turns)}, "
        f"with `apex` {_times(real.apex_turns)}; {_times(MOST_TURNS)} is allowed. One large file {_windows(real)}, "
        f"with default settings. {'This holds.' if real.holds else 'This falls short.'}"
    )
    lines = ["# How many partitions", "", "```sh", "python -m bench scale --write-docs", "```", "", text, ""]
    lines += ["| partitions | runs | median, s | least, s |", "|---|---:|---:|---:|"]
    lines += [
        f"| {name} | {len(millis)} | {median(millis) / 1000:.2f} | {min(millis) / 1000:.2f} |"
        for name, millis in _rows(real)
    ]
    lines += ["", verdict, "", f"{SIMULATED}:", ""]
    lines += ["| world | best fixed | s | drain, s | over the best | apex, s | one, s |"]
    lines += ["|---|---:|---:|---:|---:|---:|---:|"]
    lines += [
        f"| {each.world} | {each.best_count} of {each.most} | {each.best_seconds:.1f} | {each.drain_seconds:.1f} | "
        f"{each.drain_over_best:.3f} | {each.apex_seconds:.0f} | {each.one_seconds:.0f} |"
        for each in simulated
    ]
    return "\n".join(lines)


def _rows(real: Real) -> Iterator[tuple[str, Sequence[float]]]:
    yield from ((f"fixed {count}", millis) for count, millis in sorted(real.fixed.items()))
    yield "drain", real.drain
    yield "apex", real.apex
    yield f"fixed {real.best}, in pairs", [fixed for fixed, _ in real.pairs]
    yield "drain, in pairs", [drain for _, drain in real.pairs]


def _windows(real: Real) -> str:
    windows = real.windows_until_all_cores
    return "never had every core" if windows is None else f"had every core after {windows} windows"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
