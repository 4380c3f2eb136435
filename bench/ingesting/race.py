"""Runs contestants, each in its own process, in turns, round after round, and checks their output."""

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from bench._at_hand import memory_at_hand
from bench.ingesting.asking import Wrong, process_of
from bench.ingesting.contestants import Contestant
from bench.ingesting.environments import Unavailable
from bench.ingesting.text import NOTHING, Text, left_in, write_text

ROOM = 3 << 30
"""Bytes of memory for contestants in addition to their input and output."""

Say = Callable[[str], None]


class WrongOutput(Wrong):
    """The output has other lines than those to keep."""


@dataclass(frozen=True, slots=True)
class Place:
    """The storage of the text and of the output."""

    name: str
    folder: Path
    on_disk: bool = True

    def settle(self) -> None:
        """Flush earlier writes, so that no contestant waits for those of another."""
        if self.on_disk:
            os.sync()


@dataclass(frozen=True, slots=True)
class Effort:
    """The amount of work for each contestant."""

    size: int
    """Bytes of text; slow contestants read a share of it."""
    rounds: int
    """How often each contestant is started."""
    runs: int
    """Warm runs of each process."""


@dataclass(frozen=True, slots=True)
class Timed:
    """The times of one process: the first run with the start, and each later run."""

    cold: float
    """Seconds from the start of the process to the end of its first run."""
    warm: tuple[float, ...]
    """Seconds of each further run."""
    inner: tuple[float, ...]
    """The part of them from the first record to the last, by the contestant's own clock, if it has one."""
    versions: Mapping[str, str]
    lost: int = 0
    """Earlier processes whose output was wrong."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The result of one contestant in one place, in megabytes (10^6) of text per second."""

    contestant: Contestant
    where: str
    size: int
    lines: int
    cold: tuple[float, ...]
    warm: tuple[float, ...]
    versions: Mapping[str, str]
    inner: tuple[float, ...] = ()
    """The rates from the first record to the last, for a contestant that measures them."""
    lost: int = 0
    """Processes whose output was wrong, and which were repeated."""

    @property
    def rate(self) -> float:
        return median(self.warm)

    @property
    def compared(self) -> float:
        """The rate for ratios: without its launches for a contestant that measures this."""
        return median(self.inner or self.warm)

    @property
    def cold_rate(self) -> float:
        return median(self.cold)


@dataclass(frozen=True, slots=True)
class Missing:
    """A contestant that was not measured, with the reason."""

    contestant: Contestant
    where: str
    why: str


def race(contestants: Sequence[Contestant], place: Place, effort: Effort, say: Say) -> list[Measured | Missing]:
    """Run all contestants in turn in each round; one that fails is left out of later rounds."""
    found: dict[str, list[Timed]] = {contestant.name: [] for contestant in contestants}
    missing: dict[str, Missing] = {}

    def miss(contestant: Contestant, fault: Exception) -> None:
        missing[contestant.name] = Missing(contestant, place.name, str(fault))
        say(f"NOT MEASURED: {contestant.name}: {fault}")

    for contestant in contestants:
        try:
            contestant.environment.make(say)
        except Unavailable as fault:
            miss(contestant, fault)
    with _scratch(place.folder) as folder, memory_at_hand(2 * effort.size + ROOM):
        texts = {
            share: write_text(folder / f"text-{share}", max(1, round(effort.size * share)))
            for share in _shares(contestants)
        }
        for number in range(1, effort.rounds + 1):
            for contestant in contestants:
                if contestant.name not in missing:
                    say(f"{place.name}, round {number} of {effort.rounds}: {contestant.name}")
                    place.settle()
                    try:
                        text = texts[contestant.share]
                        found[contestant.name].append(
                            _tried(contestant, text, folder / "run", effort.runs, place.settle)
                        )
                    except Wrong as fault:
                        miss(contestant, fault)
        return [
            missing.get(contestant.name)
            or _measured(contestant, place.name, texts[contestant.share], found[contestant.name])
            for contestant in contestants
        ]


def _shares(contestants: Sequence[Contestant]) -> list[float]:
    return sorted({contestant.share for contestant in contestants})


@contextmanager
def _scratch(parent: Path) -> Iterator[Path]:
    parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="bench-ingest-", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _measured(contestant: Contestant, where: str, text: Text, timed: Sequence[Timed]) -> Measured:
    megabytes = text.all.bytes / 1e6
    return Measured(
        contestant=contestant,
        where=where,
        size=text.all.bytes,
        lines=text.all.lines,
        cold=tuple(megabytes / one.cold for one in timed),
        warm=tuple(megabytes / seconds for one in timed for seconds in one.warm),
        versions={**timed[-1].versions, **contestant.environment.versions},
        inner=tuple(megabytes / seconds for one in timed for seconds in one.inner),
        lost=sum(one.lost for one in timed),
    )


def _tried(contestant: Contestant, text: Text, folder: Path, runs: int, settle: Callable[[], None]) -> Timed:
    """Time one process; repeat it as often as this contestant may, if its output is wrong."""
    lost = 0
    while True:
        try:
            return replace(_timed(contestant, text, folder, runs, settle), lost=lost)
        except WrongOutput:
            lost += 1
            if lost > contestant.repeats:
                raise


def _timed(contestant: Contestant, text: Text, folder: Path, runs: int, settle: Callable[[], None]) -> Timed:
    """Time one process: a first run, and `runs` warm ones."""
    begun = time.perf_counter()
    with process_of(contestant, folder) as asking:
        cold, warm, inner, versions = 0.0, list[float](), list[float](), dict[str, str]()
        for number in range(runs + 1):
            target = folder / f"run-{number}" / "out"
            target.mkdir(parents=True)
            answer = asking.ask({"source": str(text.path), "target": str(target)})
            if number:
                warm.append(answer["seconds"])
                inner.extend([] if answer["inner"] is None else [answer["inner"]])
            else:
                cold = time.perf_counter() - begun
            versions = answer["versions"]
            _look_at(target, text)
            shutil.rmtree(target.parent)
            settle()
    return Timed(cold, tuple(warm), tuple(inner), versions)


def _look_at(target: Path, text: Text) -> None:
    """Raise `WrongOutput` unless the output has exactly the lines to keep."""
    left, dotted = left_in(target)
    if dotted != NOTHING:
        raise WrongOutput(f"it kept {dotted.lines} lines that begin with a dot")
    if left != text.kept:
        raise WrongOutput(
            f"it kept {left.lines} lines of {left.bytes} bytes; there were {text.kept.lines} of {text.kept.bytes}"
        )
