"""Runs contestants, each in its own process, in turns, round after round, and checks their output."""

import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import IO, Any

from bench.ingesting.at_hand import memory_at_hand
from bench.ingesting.contestants import Contestant
from bench.ingesting.environments import Unavailable
from bench.ingesting.text import NOTHING, Text, left_in, write_text

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 900
"""The longest allowed run."""

ROOM = 3 << 30
"""Bytes of memory for contestants in addition to their input and output."""
FAREWELL_SECONDS = 30
"""The time that a process has to end after its last question."""

Say = Callable[[str], None]


class Wrong(Exception):
    """A contestant failed, or its output is wrong."""


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
    versions: Mapping[str, str]


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

    @property
    def rate(self) -> float:
        return median(self.warm)

    @property
    def cold_rate(self) -> float:
        return median(self.cold)


@dataclass(frozen=True, slots=True)
class Missing:
    """A contestant that was not measured, with the reason."""

    contestant: Contestant
    where: str
    why: str


@dataclass(frozen=True, slots=True)
class Asking:
    """The process of a contestant, which answers questions."""

    process: "subprocess.Popen[str]"
    stderr: IO[str]
    """The file with its stderr."""

    def ask(self, question: Mapping[str, str]) -> Mapping[str, Any]:
        """Its answer; raise `Wrong` with the last line of stderr if there is none."""
        questions, answers = self.process.stdin, self.process.stdout
        assert questions is not None, "questions go to the contestant's stdin"
        assert answers is not None, "answers come from the contestant's stdout"
        with suppress(BrokenPipeError):  # then there is no answer either
            questions.write(json.dumps(question) + "\n")
            questions.flush()
        if not select.select([answers], [], [], PATIENCE_SECONDS)[0]:
            self.process.kill()
            raise Wrong(f"it took longer than {PATIENCE_SECONDS} seconds")
        line = answers.readline()
        if not line:
            raise Wrong(self._last_words())
        answer: Mapping[str, Any] = json.loads(line)
        return answer

    def _last_words(self) -> str:
        self.process.wait(FAREWELL_SECONDS)
        self.stderr.seek(0)
        lines = [line.strip() for line in self.stderr if line.strip()]
        return lines[-1] if lines else "it ended without an answer"


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
                        timed = _timed(contestant, texts[contestant.share], folder / "run", effort.runs, place.settle)
                        found[contestant.name].append(timed)
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
        versions=timed[-1].versions,
    )


def _timed(contestant: Contestant, text: Text, folder: Path, runs: int, settle: Callable[[], None]) -> Timed:
    """Time one process: a first run, and `runs` warm ones."""
    begun = time.perf_counter()
    with process_of(contestant, folder) as asking:
        cold, warm, versions = 0.0, list[float](), dict[str, str]()
        for number in range(runs + 1):
            target = folder / f"run-{number}" / "out"
            target.mkdir(parents=True)
            answer = asking.ask({"source": str(text.path), "target": str(target)})
            if number:
                warm.append(answer["seconds"])
            else:
                cold = time.perf_counter() - begun
            versions = answer["versions"]
            _look_at(target, text)
            shutil.rmtree(target.parent)
            settle()
    return Timed(cold, tuple(warm), versions)


@contextmanager
def process_of(contestant: Contestant, folder: Path) -> Iterator[Asking]:
    """The contestant's process, with a folder that is deleted at its end."""
    folder.mkdir()
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [str(contestant.environment.python), "-m", "bench.ingesting.serve", contestant.call, *contestant.packages]
    try:
        with (folder / "stderr").open("w+", encoding="utf-8", errors="replace") as stderr:
            process = subprocess.Popen(  # noqa: S603 - one of our own modules
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                cwd=folder,
                env={**os.environ, "PYTHONPATH": paths, "SPARK_LOCAL_DIRS": str(folder)},
                start_new_session=True,
            )
            try:
                yield Asking(process, stderr)
            finally:
                _end(process)
    finally:
        shutil.rmtree(folder)


def _end(process: "subprocess.Popen[str]") -> None:
    """End the process and all its children; kill them if they do not end by themselves."""
    with suppress(BrokenPipeError, subprocess.TimeoutExpired):
        process.communicate(timeout=FAREWELL_SECONDS)
    for _ in range(FAREWELL_SECONDS * 10):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 0)
            time.sleep(0.1)
            continue
        return
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _look_at(target: Path, text: Text) -> None:
    """Raise `Wrong` unless the output has exactly the lines to keep."""
    left, dotted = left_in(target)
    if dotted != NOTHING:
        raise Wrong(f"it kept {dotted.lines} lines that begin with a dot")
    if left != text.kept:
        raise Wrong(
            f"it kept {left.lines} lines of {left.bytes} bytes; there were {text.kept.lines} of {text.kept.bytes}"
        )
