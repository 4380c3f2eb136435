"""Trials on Spark: kill and freeze its processes, let a last run end, and compare what came out.

Run as a program in an empty folder: `python -m tests.faults.spark_trials FIRST COUNT`. It prints one line of JSON for
each trial. As many trials as there are pairs of a fault and an application try each pair once.
"""

import ctypes
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pyspark.sql  # noqa: F401 - each driver, a child of this process, needs it

import dagkit.backends.spark.window.backend  # noqa: F401 - as above
from dagkit.engine.program.points import Point
from dagkit.launching import Machine
from tests.cluster.driver import cluster_settings
from tests.cluster.standalone import Standalone
from tests.faults import trials
from tests.faults.applications import TRIED
from tests.faults.trials import STATE, UNCODED, ended, in_folders, say, tried_once
from tests.faults.unreliable import SCHEME, failing_everywhere
from tests.patience import within
from tests.processes import below, run_program, running

PR_SET_CHILD_SUBREAPER = 36
LONGEST_DELAY_SECONDS = 0.3
"""A window on Spark takes about as long."""
NEW_NAMESPACE_OF_MOUNTS = 0x00020000
SMALL_DISK = "16m"
ENDED_WITHIN_SECONDS = within(60)
MOMENT_SECONDS = 6.0
"""A run takes about as long, with the start of Spark."""


@dataclass
class SparkTrial(trials.Trial):
    """A disturbed run on Spark."""

    cluster: Callable[[], Standalone]
    """Starts the cluster, unless it runs."""
    disturbed: int = 0
    """How often a driver reached the step at which it was disturbed."""
    kills: int = 0
    """How many of the processes of Spark were killed."""
    problems: list[str] = field(default_factory=list)

    def reach(self, *, part: float = 1.0, **options: object) -> int:
        """Start a driver, and wait for a random step of its first or second window and a random while longer."""
        reader, writer = os.pipe()
        point, window = self.chance.choice((Point.PLANNED, Point.RUNNING, Point.RUNNING)), self.chance.randint(1, 2)

        def probe(at: Point, window_id: int) -> None:
            if (at, window_id) == (point, window):
                os.write(writer, b".")

        child = self.start(probe=probe, **options)
        os.close(writer)
        with os.fdopen(reader, "rb") as source:
            has_come = bool(source.read(1))
        self.disturbed += has_come
        if has_come:
            time.sleep(self.chance.random() * LONGEST_DELAY_SECONDS)
        return child

    def end(self, child: int, *, by_itself: bool = False) -> None:
        """Wait for a driver that was disturbed. It fails only with a code; not at all if it recovers by itself."""
        code = ended(child)
        if code == UNCODED or (by_itself and code):
            self.problems.append(f"a disturbed driver ended with {code}")

    def kill_one(self, processes: list[int]) -> None:
        """SIGKILL of one of these processes, if there are any left."""
        if processes:
            with suppress(ProcessLookupError):
                os.kill(self.chance.choice(processes), signal.SIGKILL)
                self.kills += 1


def daemons(child: int) -> list[int]:
    """The processes from which a local Spark, or an executor, forks Python workers."""
    java = {*running("org.apache.spark", child)}  # its command line names the module of the daemon, too
    names = ("pyspark.daemon", "dagkit.backends.spark.window.daemon")
    found = [each for name in names for each in running(name, child) if each not in java]
    return [each for each in found if not any(each in below(other) for other in found)]


def workers(child: int) -> list[int]:
    return [each for daemon in daemons(child) for each in below(daemon)]


# ---- Spark on this machine


def java_killed(trial: SparkTrial) -> str:
    child = trial.reach()
    trial.kill_one([*running("org.apache.spark.deploy.SparkSubmit", child)])
    trial.end(child)
    return STATE


def python_worker_killed(trial: SparkTrial) -> str:
    """SIGKILL of a Python worker; the driver tries the window again."""
    child = trial.reach()
    trial.kill_one(workers(child))
    trial.end(child, by_itself=True)
    return STATE


def python_daemon_killed(trial: SparkTrial) -> str:
    child = trial.reach()
    trial.kill_one(daemons(child))
    trial.end(child, by_itself=True)
    return STATE


# ---- a cluster


def attempts_twice(trial: SparkTrial) -> str:
    """A Python worker freezes, Spark starts its task a second time, and the frozen attempt continues."""
    speculation = {
        "spark.speculation": "true",
        "spark.speculation.interval": "20ms",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.quantile": "0.1",
    }
    child = trial.reach(machine=Machine(master=trial.cluster().url, settings={**cluster_settings(), **speculation}))
    frozen = [each for one in trial.cluster().executors()[:1] for each in workers(one)]
    for each in frozen:
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGSTOP)
    time.sleep(1 + trial.chance.random())
    for each in frozen:
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGCONT)
    trial.end(child, by_itself=True)
    return STATE


# ---- storage


def storage_fails(trial: SparkTrial) -> str:
    """Storage that driver and workers cannot rely on: it times out before or after it worked, and reads too little."""
    place = f"{SCHEME}://{Path(STATE).absolute()}"
    for _ in range(2):
        with failing_everywhere(Path.cwd(), trial.chance.random()):
            trial.end(trial.reach(path=place))
    return place


def disk_full(trial: SparkTrial) -> str:
    """A disk with little room for ledger, staged files and output, until there is room again."""
    filler = Path("filler")
    room = trial.chance.randrange(4, 160) << 10
    with filler.open("wb", buffering=0) as sink, suppress(OSError):
        while sink.write(bytes(4096)):
            pass
    with filler.open("r+b") as sink:
        sink.truncate(max(0, filler.stat().st_size - room))
    trial.end(trial.reach())
    filler.unlink()
    return STATE


_EACH = (
    *(python_worker_killed, trials.killed_at_any_moment, java_killed, trials.frozen_and_overtaken, trials.two_at_once),
    *(python_daemon_killed, attempts_twice, storage_fails, disk_full, trials.killed_at_a_step, trials.clock_set_back),
)
FAULTS: dict[str, Callable[[SparkTrial], str]] = {each.__name__: each for each in _EACH}


def pair(number: int) -> tuple[str, str]:
    around, fault = divmod(number, len(FAULTS))
    return list(TRIED)[(fault + around) % len(TRIED)], list(FAULTS)[fault]


# ---- the program


@contextmanager
def on_a_small_disk() -> Iterator[None]:
    """The working directory is a disk of its own, which only this process and its children see."""
    folder = Path.cwd()
    run_program(["mount", "-t", "tmpfs", "-o", f"size={SMALL_DISK}", "none", folder], seconds=600)
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(folder.parent)
        run_program(["umount", "--lazy", folder], seconds=600)
        os.chdir(folder)


def adopt_orphans() -> None:
    """Become the parent of processes that outlive theirs, and mount disks for this process alone."""
    system = ctypes.CDLL(None, use_errno=True)
    assert system.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0, os.strerror(ctypes.get_errno())
    if system.unshare(NEW_NAMESPACE_OF_MOUNTS) == 0:
        run_program(["mount", "--make-rprivate", "/"], seconds=600)


def children() -> set[int]:
    return {int(each) for task in Path("/proc/self/task").iterdir() for each in (task / "children").read_text().split()}


def outliving(before: set[int]) -> Iterator[int]:
    """The processes that a trial left behind and that do not end."""
    while left := children() - before:
        for process in left:
            handle = os.pidfd_open(process)
            try:
                if not select.select([handle], [], [], ENDED_WITHIN_SECONDS)[0]:
                    yield process
                    os.kill(process, signal.SIGKILL)
            finally:
                os.close(handle)
            os.waitpid(process, 0)


def run(number: int, cluster: Callable[[], Standalone]) -> dict[str, Any]:
    application, fault = pair(number)
    tried, chance = TRIED[application], Random(f"{fault} {number}")  # noqa: S311 - no secret
    trial = SparkTrial(tried, chance, number, MOMENT_SECONDS, Machine(cores=2), cluster)
    if fault == attempts_twice.__name__:
        cluster()  # its processes are there before the trial, and stay
    before = children()
    with on_a_small_disk() if fault == "disk_full" else nullcontext():
        tried.write_input(chance)
        result = tried_once(trial, fault, FAULTS[fault])
    trial.problems += [f"process {each} outlived its driver" for each in outliving(before)]
    return {
        "application": application,
        **result,
        "disturbed": trial.disturbed,
        "kills": trial.kills,
        "problems": [*result["problems"], *trial.problems],
    }


def main(first: int, count: int) -> None:
    os.environ.setdefault("DAGKIT_CACHE", "")  # or a driver leaves a process that makes an archive of classes
    trials.end_with_parent()
    adopt_orphans()
    folders, home = in_folders(), Path.cwd()
    with ExitStack() as servers:
        cluster = cache(lambda: servers.enter_context(Standalone(home / "cluster")))
        for number in range(first, first + count):
            if pair(number) not in trials.NEEDS_A_FOLDER:
                next(folders)
                say(run(number, cluster))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
