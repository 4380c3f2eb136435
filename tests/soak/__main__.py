"""A long run: files arrive, are overwritten, properties and partitions change, drivers are stopped and killed.

`python -m tests.soak --minutes 20 --files 1000000` asserts that memory, descriptors, threads and the cost of a window
stay as they are while windows and files add up, that nothing is left behind, and that each line is in the output once.
It prints the figures as JSON.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import median
from typing import TypeVar

from dagkit.ledger import Ledger
from dagkit.ledger.audit.verify import verify
from tests.patience import within
from tests.processes import below, run_program
from tests.soak.driver import KNOWN

ROOT = Path(__file__).parents[2]
MEGABYTE = 1 << 20
SECONDS_BETWEEN = 2.0
"""Between two actions, each of which follows a sample."""
ENDED_WITHIN_SECONDS = within(60)
"""Java and its workers end after the driver."""
FILES_OF_A_FOLDER = 200
"""A look examines all files of a folder in which one arrived."""
STOPPED_AT = (0.08, 0.16)
"""When, as parts of the time, the driver is killed, and stopped. The figures are those of the last driver."""
WARM_AFTER = 0.3
"""The part of the time from which on figures count."""
SETTINGS = {
    "dt.operator.Splitter.prop.scanner.files": "input",
    "dt.operator.Splitter.prop.scanner.rescan": "folders",
    "dt.operator.Splitter.prop.scanner.scanIntervalMillis": "500",
    "dt.operator.Splitter.prop.blockSize": "4000",
    "dt.operator.Reader.prop.collectStats": "false",
    "dt.operator.Writer.prop.filePath": "output",
}


@dataclass(frozen=True, slots=True)
class Sample:
    """What the driver and its processes use at one moment."""

    driver_mb: float
    java_mb: float
    largest_worker_mb: float
    processes: int
    descriptors: int
    threads: int
    staging_folders: int


@dataclass(frozen=True, slots=True)
class Window:
    """A committed window, and the processor time of its driver until then."""

    window: int
    millis: float
    cpu_millis: float


def _megabytes(process: int) -> float:
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MEGABYTE


def _entries(folder: Path) -> int:
    return sum(1 for _ in folder.iterdir())


def _is_java(process: int) -> bool:
    return b"java" in Path(f"/proc/{process}/cmdline").read_bytes().partition(b"\0")[0]


def sampled(driver: int) -> Sample:
    """A sample of a running driver. Processes that end meanwhile are left out."""
    java, workers = 0.0, [0.0]
    processes = below(driver)
    for each in processes:
        with suppress(FileNotFoundError, ProcessLookupError):
            if _is_java(each):
                java += _megabytes(each)
            else:
                workers.append(_megabytes(each))
    staging = Path("state/staging")
    return Sample(
        _megabytes(driver),
        java,
        max(workers),
        len(processes),
        _entries(Path(f"/proc/{driver}/fd")),
        _entries(Path(f"/proc/{driver}/task")),
        _entries(staging) if staging.exists() else 0,
    )


class Soak:
    """A folder with input, output and the application's folder, and the driver that runs there."""

    def __init__(self, home: Path, backend: str, seed: int) -> None:
        self._home = home
        self._backend = backend
        self._chance = Random(seed)  # noqa: S311 - no secret
        self._driver: subprocess.Popen[str] | None = None
        self._temporary = home / "temporary"
        self._log = home / "windows.jsonl"
        self._files = 0
        self._lines_of: dict[str, list[str]] = {}
        """The last lines of each file that may be overwritten."""
        self._expected: Counter[str] = Counter()
        self._found: Counter[str] = Counter()
        self._read: set[str] = set()
        self._begun = 0
        """How many bytes of the log of windows earlier drivers wrote."""
        self.samples: list[Sample] = []
        self.totals: Counter[str] = Counter()
        for name in ("input", "output", "temporary"):
            (home / name).mkdir(parents=True)

    def put_known(self, count: int) -> None:
        """Files that count as read before the first window."""
        for number in range(count):
            if number % 1000 == 0:
                folder = self._home / "input" / f"{number // 1000}"
                folder.mkdir()
            os.close(os.open(f"{folder}/{number}", os.O_CREAT | os.O_WRONLY, 0o644))

    def run(self, seconds: float) -> None:
        """Let the application run for so long, once it has taken the files that were there as read."""
        self._start()
        self._wait_for((self._home / KNOWN).exists)
        self._burst()
        self._wait_for(lambda: bool(self._log.stat().st_size))
        began = time.monotonic()
        ends = [began + part * seconds for part in (*STOPPED_AT, 1.0)]
        for end, last in zip(ends, (self._kill, self._stop, self._stop), strict=True):
            if end != ends[0]:
                self._start()
            self._until(end, warm=began + WARM_AFTER * seconds)
            if end == ends[-1]:
                self._settle()
            last()

    def _wait_for(self, is_so: Callable[[], bool]) -> None:
        while not is_so():
            self._check()
            time.sleep(SECONDS_BETWEEN)

    def _check(self) -> None:
        """Fail if the driver has ended by itself."""
        assert self._driver.poll() is None, (self._home / "driver.log").read_text(errors="replace")[-4000:]

    def _until(self, end: float, warm: float) -> None:
        actions = [*[self._burst] * 6, *[self._overwrite] * 3, self._set, self._scale]
        before = self._log.stat().st_size
        while time.monotonic() < end or self._log.stat().st_size == before:
            self._check()
            self._chance.choice(actions)()
            time.sleep(SECONDS_BETWEEN)
            if time.monotonic() > warm:
                if not self.samples:
                    self._begun = self._log.stat().st_size
                self.samples.append(sampled(self._driver.pid))

    # ---- what happens

    def _start(self) -> None:
        self.totals["launches"] += 1
        self._temporary = self._home / "temporary" / str(self.totals["launches"])
        self._temporary.mkdir()
        words = [f"{key}={value}" for key, value in SETTINGS.items()]
        with self._log.open("a") as out, (self._home / "driver.log").open("a") as log:
            self._driver = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-m", "tests.soak.driver", self._backend, *words],
                stdout=out,
                stderr=log,
                text=True,
                env={
                    **os.environ,
                    "DAGKIT_CACHE": "",
                    "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
                    "TMPDIR": str(self._temporary),
                },
            )

    def _stop(self) -> None:
        processes = below(self._driver.pid)
        self._driver.send_signal(signal.SIGTERM)
        assert self._driver.wait(within(300)) == 0, (self._home / "driver.log").read_text(errors="replace")[-4000:]
        until = time.monotonic() + ENDED_WITHIN_SECONDS
        while any(map(_is_running, processes)) and time.monotonic() < until:
            time.sleep(0.1)
        self.totals["outliving_processes"] += sum(map(_is_running, processes))

    def _kill(self) -> None:
        self._driver.kill()
        self._driver.wait(within(600))
        shutil.rmtree(self._temporary, ignore_errors=True)  # Spark could not remove its folders

    def _burst(self) -> None:
        for _ in range(self._chance.choice((1, 3, 10, 40))):
            self._files += 1
            self._write(f"new-{self._files // FILES_OF_A_FOLDER}/{self._files}.txt")

    def _overwrite(self) -> None:
        """A file whose lines are all in the output gets other content."""
        self._look()
        ready = [name for name, lines in self._lines_of.items() if lines[-1] in self._found]
        if ready:
            self.totals["overwritten"] += 1
            self._write(self._chance.choice(ready[-50:]))

    def _write(self, name: str) -> None:
        self.totals["files_written"] += 1
        mark = self.totals["files_written"]
        lines = [f"{name} {mark} line {number}" for number in range(self._chance.randint(1, 150))]
        path = self._home / "input" / name
        path.parent.mkdir(exist_ok=True)
        hidden = path.with_name(f".{path.name}")
        hidden.write_text("".join(f"{line}\n.comment\n" for line in lines), encoding="utf-8")
        hidden.replace(path)
        self._expected.update(lines)
        self._lines_of[name] = lines[-1:]

    def _set(self) -> None:
        self._asked("set", "state", "Splitter", "block_size", str(self._chance.choice((2000, 4000, 8000))))

    def _scale(self) -> None:
        self._asked("scale", "set", "state", "Reader", str(self._chance.choice((1, 2, 3))))

    def _asked(self, *words: str) -> None:
        """Send a request with the command line; the driver answers before or after a change of its own."""
        done = run_program([sys.executable, "-m", "dagkit.cli", *words], check=False, seconds=600)
        self.totals["changes" if done.returncode == 0 else "changes_unanswered"] += 1

    # ---- what comes out

    def _look(self) -> None:
        """Read the output files that are new."""
        for entry in os.scandir(self._home / "output"):
            if entry.name not in self._read and not entry.name.startswith("."):
                self._read.add(entry.name)
                self._found.update(Path(entry.path).read_text(encoding="utf-8").splitlines())

    def _settle(self) -> None:
        """Wait until all lines are there, or none arrives for a minute."""
        last, since = -1, time.monotonic()
        while self._found != self._expected and time.monotonic() < since + within(60):
            time.sleep(SECONDS_BETWEEN)
            self._look()
            if self._found.total() != last:
                last, since = self._found.total(), time.monotonic()

    @property
    def windows(self) -> list[Window]:
        with self._log.open() as log:
            log.seek(self._begun)
            return [Window(**json.loads(line)) for line in log]

    def problems(self) -> Iterator[str]:
        self._look()
        lost, doubled = self._expected - self._found, self._found - self._expected
        if lost or doubled:
            yield f"{lost.total()} lines are lost, such as {[*lost][:2]}, and {doubled.total()} doubled"
        yield from (str(fault) for fault in verify(Ledger.open("state")).faults if not fault.is_warning)
        left = [path for name in ("state/staging", "temporary") for path in (self._home / name).rglob("*")]
        yield from (f"{path.relative_to(self._home)} is left" for path in left if path.is_file())
        if self.totals["outliving_processes"]:
            yield f"{self.totals['outliving_processes']} processes outlived their driver"
        self.totals["lines"] = self._expected.total()


def _is_running(process: int) -> bool:
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


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
