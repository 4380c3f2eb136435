"""Trials: disturb runs of an application in processes of their own, let a last run end, and compare what came out.

Run as a program in an empty folder: `python -m tests.faults.trials APPLICATION FIRST COUNT [FAULT]` tries one fault
after another, or one fault, and prints one line of JSON for each trial.
"""

import ctypes
import json
import os
import pickle
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from dagkit.engine.program.points import Point
from dagkit.errors import DagkitError
from dagkit.ground.clock import SystemClock
from dagkit.launching import Machine
from dagkit.ledger import Ledger
from dagkit.ledger.audit.verify import verify
from tests.faults.applications import TRIED, Tried
from tests.faults.unreliable import SCHEME, Unreliable
from tests.operators.driver_kills import KillAfter
from tests.processes import await_end

T = TypeVar("T")
PR_SET_PDEATHSIG = 1
STATE = "state"
MOST_KILLS = 3
NEEDS_A_FOLDER = {("file_copy", "storage_fails")}
"""file_copy refuses an application's folder that is not mounted."""
UNCODED = 3
"""The exit code of a driver that failed without a code."""


@dataclass
class Trial:
    """One disturbed run: its application, its random numbers, and the time that an undisturbed run takes."""

    tried: Tried
    chance: Random
    number: int
    seconds: float
    machine: Machine

    def start(self, path: str = STATE, **options: Any) -> int:
        """Start a driver in a child process; return its number."""
        child = os.fork()
        if child:
            return child
        end_with_parent()
        status = 1
        try:
            self.tried.launch(path, options.pop("machine", self.machine), **options)
            status = 0
        except DagkitError as error:  # many trials mean to cause one
            status = 1
            sys.stderr.write(f"driver {os.getpid()} ended: {error}\n")
        except BaseException:  # noqa: BLE001 - the child must not return into the program of its parent
            status = UNCODED
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)

    def reach(self, *, part: float = 1.0, **options: Any) -> int:
        """Start a driver, and wait for a random part of the time of a run, or of a part of it."""
        child = self.start(**options)
        time.sleep(self.chance.random() * self.seconds * part)
        return child

    def end(self, child: int) -> None:
        """Wait for a driver that was disturbed."""
        ended(child)


def end_with_parent() -> None:
    """Let this process be killed when its parent ends."""
    assert ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL) == 0


def ended(child: int) -> int:
    """Wait for a child; return its exit code, negative for a signal."""
    await_end(child)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed_at_a_step(trial: Trial) -> str:
    """SIGKILL after one step of one window, and after another one while that is repaired."""
    steps = list(Point)
    point, window = steps[trial.number % len(steps)], 1 + trial.number // len(steps) % 3
    ended(trial.start(probe=KillAfter(point, window)))
    ended(trial.start(probe=KillAfter(trial.chance.choice(steps), window)))
    return STATE


def killed_at_any_moment(trial: Trial) -> str:
    """SIGKILL of the driver at random moments."""
    for _ in range(trial.chance.randint(1, MOST_KILLS)):
        kill(trial.reach())
    return STATE


def kill(child: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    ended(child)


def frozen_and_overtaken(trial: Trial) -> str:
    """SIGSTOP of a driver, which continues after another one has done its work."""
    child = trial.reach()
    os.kill(child, signal.SIGSTOP)
    trial.end(trial.start(take_over=True))
    os.kill(child, signal.SIGCONT)
    trial.end(child)
    return STATE


def two_at_once(trial: Trial) -> str:
    """A second driver takes over from one that has just started."""
    first = trial.reach(part=0.1)
    second = trial.start(take_over=True)
    trial.end(first)
    trial.end(second)
    return STATE


def clock_set_back(trial: Trial) -> str:
    """Clocks that jump back by up to an hour while drivers run and are killed."""

    def wall() -> datetime:
        return datetime.now(UTC) - timedelta(seconds=trial.chance.choice((0, 0, 0, 3600 * trial.chance.random())))

    for _ in range(2):
        kill(Trial.reach(trial, clock=SystemClock(wall)))
    return STATE


def storage_fails(trial: Trial) -> str:
    """Storage of the ledger that times out before or after it worked, and that reads too little."""
    place = f"{SCHEME}://{Path(STATE).absolute()}"
    for _ in range(MOST_KILLS):
        Unreliable.chance = Random(trial.chance.random())  # noqa: S311 - no secret
        ended(trial.start(place))
    Unreliable.chance = None
    return place


_EACH = (killed_at_a_step, killed_at_any_moment, frozen_and_overtaken, two_at_once, clock_set_back, storage_fails)
FAULTS: dict[str, Callable[[Trial], str]] = {each.__name__: each for each in _EACH}
"""Each disturbs runs, and returns the application's folder for the last one."""


def apart(work: Callable[[], T]) -> T:
    """The result of work that a child process does: what reads a ledger may leave threads, and then no fork is safe."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        status = 1
        try:
            with os.fdopen(writer, "wb") as sink:
                pickle.dump(work(), sink)
            status = 0
        except BaseException:  # noqa: BLE001 - as in `Trial.start`
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader, "rb") as source:
        content = source.read()
    assert ended(child) == 0
    result: T = pickle.loads(content)  # noqa: S301 - from our own child
    return result


def problems(tried: Tried, place: str) -> Iterator[str]:
    if tried.written() != tried.expected():
        yield "the output is not that of an undisturbed run"
    yield from (str(fault) for fault in verify(Ledger.open(place)).faults if not fault.is_warning)
    left = [str(path) for path in Path(STATE, "staging").glob("[0-9]*/**/*") if path.is_file()]
    if left:
        yield f"staged files remain: {left}"


def tried_once(trial: Trial, name: str, disturb: Callable[[Trial], str]) -> dict[str, Any]:
    """One trial in the working directory, which is empty."""
    place = disturb(trial)
    began = time.monotonic()
    code = ended(trial.start(place))
    recovery = time.monotonic() - began
    found = apart(lambda: list(problems(trial.tried, place))) if code == 0 else [f"the last run ended with {code}"]
    return {"fault": name, "trial": trial.number, "recovery_seconds": round(recovery, 3), "problems": found}


def undisturbed_seconds(tried: Tried, machine: Machine) -> float:
    tried.write_input(Random(0))  # noqa: S311 - no secret
    began = time.monotonic()
    assert ended(Trial(tried, Random(0), 0, 0, machine).start()) == 0  # noqa: S311 - no secret
    return time.monotonic() - began


def in_folders() -> Iterator[str]:
    """Names of folders, each the working directory and empty; a folder is removed before the next one."""
    home, number = Path.cwd(), 0
    while True:
        folder = home / str(number)
        folder.mkdir()
        os.chdir(folder)
        yield folder.name
        os.chdir(home)
        shutil.rmtree(folder)
        number += 1


def say(result: Mapping[str, Any]) -> None:
    sys.stdout.write(f"{json.dumps(result)}\n")
    sys.stdout.flush()


def main(application: str, first: int, count: int, only: str | None = None) -> None:
    tried, folders = TRIED[application], in_folders()
    faults = [only] if only else [fault for fault in FAULTS if (application, fault) not in NEEDS_A_FOLDER]
    next(folders)
    seconds = undisturbed_seconds(tried, Machine("reference"))
    for number in range(first, first + count):
        next(folders)
        fault = faults[number % len(faults)]
        chance = Random(f"{fault} {number}")  # noqa: S311 - no secret
        tried.write_input(chance)
        say(tried_once(Trial(tried, chance, number, seconds, Machine("reference")), fault, FAULTS[fault]))


if __name__ == "__main__":
    end_with_parent()
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
