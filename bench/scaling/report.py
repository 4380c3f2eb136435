"""What was found about numbers of partitions: what must hold of it, lines for a terminal, and a part of the page."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median

from bench._page import machine_in_words
from bench.scaling.imagined import Imagined
from bench.scaling.phases import Changed, Phases
from dagkit.simulation.trials import EACH, STEP

SIMULATED = (
    "Simulated by the engine's scheduler with two windows in flight, each burst with a trickle after it; of fixed "
    f"numbers all are tried up to {EACH}, and beyond in steps of {STEP:.0%}"
)
LARGEST_RATIO = 1.1
"""Of the time of the best fixed number: what a burst may take."""
MOST_TURNS = 1
"""How often the number may change its direction in one phase."""
MOST_WINDOWS = 2
"""How many windows after the start of one large file every core is at work."""
NEAR = 1.25
"""Who takes part in further rounds: whoever needed no more than so many times the shortest time."""


@dataclass
class Real:
    """What was measured on Spark, in milliseconds."""

    fixed: dict[int, list[float]] = field(default_factory=dict)
    drain: list[float] = field(default_factory=list)
    drain_changes: list[list[Changed]] = field(default_factory=list)
    drain_turns: int = 0
    apex: list[float] = field(default_factory=list)
    apex_changes: list[list[Changed]] = field(default_factory=list)
    apex_turns: int = 0
    windows_until_all_cores: int | None = None
    """After the start of one large file; none: never."""
    pairs: list[tuple[float, float]] = field(default_factory=list)
    """The best fixed number once more, and `drain` right before or after it."""

    @property
    def best(self) -> int:
        """The fixed number that was soonest done."""
        return min(self.fixed, key=lambda count: median(self.fixed[count]))

    @property
    def ratio(self) -> float:
        """How many times the time of the best fixed number `drain` needed.

        Both were measured anew, in pairs: the shortest of many medians is also the luckiest, and a machine changes its
        speed while all are tried.
        """
        return median(drain / fixed for fixed, drain in self.pairs)

    @property
    def holds(self) -> bool:
        """Whether it did all that it must."""
        soon = self.windows_until_all_cores is not None and self.windows_until_all_cores <= MOST_WINDOWS
        return self.ratio <= LARGEST_RATIO and self.drain_turns <= MOST_TURNS and soon

    def as_json(self) -> dict[str, object]:
        return {**asdict(self), "best": self.best, "ratio": self.ratio}


def holds(each: Imagined) -> bool:
    """Whether the policy did in this world what it must."""
    return each.drain_over_best <= LARGEST_RATIO and each.drain_turns <= MOST_TURNS


def real_lines(real: Real | None) -> Iterator[str]:
    """For a terminal, what Spark did."""
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
    """For a terminal, what would have been."""
    for each in simulated:
        yield f"simulated: {each.world}"
        yield (
            f"  best of 1 to {each.most} is {each.best_count}: {each.best_seconds:.1f} s; "
            f"drain {each.drain_seconds:.1f} s, {each.drain_over_best:.3f} of it, turns {each.drain_turns}; "
            f"apex {each.apex_seconds:.1f} s; one {each.one_seconds:.1f} s{'' if holds(each) else '  MISSED'}"
        )


def page(phases: Phases, real: Real, simulated: Sequence[Imagined]) -> str:
    """This benchmark's part of the documents."""
    told = (
        f"A burst of {phases.blocks} blocks of {phases.block_size >> 10} KiB, silence, and {phases.trickle} blocks one "
        "by one, each line looked at by a function of Python: by every fixed number of partitions, up and down, and by "
        "the two policies of a reader, which begin with one. Timed from the moment when the burst is found until all "
        f"of it is committed; whoever then needs no more than {NEAR:g} times the shortest time takes turns with the "
        "policies in further rounds. The fixed number that is best in the end and `drain` are then measured anew, in "
        f"{len(real.pairs)} pairs, and the median of their ratios is what counts: the shortest of many medians is also "
        f"the luckiest. Measured with {machine_in_words()}."
    )
    verdict = (
        f"By `drain` the burst takes {real.ratio:.2f} times as long as by the best fixed number, {real.best}; up to "
        f"{LARGEST_RATIO:g} is allowed. In a phase the number turned {_times(real.drain_turns)}, by `apex` "
        f"{_times(real.apex_turns)}; {_times(MOST_TURNS)} it may. One large file {_windows(real)}, with default "
        f"settings. {'This holds.' if real.holds else 'This falls short.'}"
    )
    lines = ["# How many partitions", "", "```sh", "python -m bench scale --write-docs", "```", "", told, ""]
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
    yield f"fixed {real.best}, anew", [fixed for fixed, _ in real.pairs]
    yield "drain, anew", [drain for _, drain in real.pairs]


def _windows(real: Real) -> str:
    windows = real.windows_until_all_cores
    return "never had every core" if windows is None else f"had every core after {windows} windows"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
