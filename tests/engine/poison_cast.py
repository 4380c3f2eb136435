"""Applications in which single records end their process, and drivers that may be killed by them."""

import ctypes
import faulthandler
import gc
import multiprocessing
import os
import resource
import signal
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from dagkit import Operator, OutputPort
from dagkit.api.ports import InputPort
from dagkit.engine.parts.requests import ask
from dagkit.engine.record.history import history
from dagkit.engine.worker.watchdog import report_file
from dagkit_operators import FileSplitterInput, Items, LineReader, MatchFiles, ReadFiles
from tests.engine.cast import Collect, Desk, Digits, Draw, Ranges, chain
from tests.engine.work_cast import Looks, Names
from tests.patience import within

Way = Literal["signal", "killed", "null pointer", "memory", "loop", "endless", "exception"]
ON_POISON = "dt.attr.ON_POISON"
TIMEOUT = "dt.attr.RECORD_TIMEOUT_MILLIS"


def die(way: Way) -> None:
    """End this process, or never return."""
    if "_pytest.faulthandler" in sys.modules:  # it would print where the process was
        faulthandler.disable()
    match way:
        case "signal":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "null pointer":
            ctypes.string_at(0)
        case "memory":
            most, hard = resource.getrlimit(resource.RLIMIT_AS)
            used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), hard))
            try:
                held = [bytearray(1 << 28) for _ in range(64)]
                assert held, "there is not so much memory"
            finally:  # without memory, a thread that starts may never do so, and this process would wait for it
                resource.setrlimit(resource.RLIMIT_AS, (most, hard))
        case "loop":
            with report_file() as file:  # the timeout ends now: one that a test could await would end slow work, too
                faulthandler.dump_traceback_later(0.01, exit=True, file=file)
                die("endless")
        case "endless":
            while True:
                pass
        case _:
            raise ValueError("poison")


class Poisoned(Operator):
    """Passes numbers on, and dies at some of them."""

    input = InputPort(int)
    output = OutputPort(int)
    poison: tuple[int, ...] = ()
    way: Way = "signal"

    def process(self, item: int) -> None:
        if item in self.poison:
            die(self.way)
        self.output.emit(item)


class PoisonedNames(Poisoned):
    """Passes numbers of names on, and dies at some of the numbers."""

    input = InputPort[Any]()
    output = OutputPort[Any]()

    def process(self, item: tuple[str, int]) -> None:
        if item[1] in self.poison:
            die(self.way)
        self.output.emit(list(item))


class PoisonedLines(Poisoned):
    """Passes the text of lines on, and dies at one of them."""

    input = InputPort[Any]()
    output = OutputPort[Any]()

    def process(self, item: Any) -> None:
        text = getattr(item, "value", item)
        if text == "poison":
            die(self.way)
        self.output.emit(text)


def lines_of_blocks(home: Path) -> Draw:
    splitter = FileSplitterInput(scanner={"files": [str(home / "in")]}, block_size=400)
    return chain(splitter=splitter, reader=LineReader(), poisoned=PoisonedLines(), collect=Collect())


def lines_of_matches(home: Path) -> Draw:
    patterns = Items(items=[str(home / "in" / "*.txt")])
    read = {"match": MatchFiles(), "reader": ReadFiles()}
    return chain(patterns=patterns, **read, poisoned=PoisonedLines(), collect=Collect())


def poisoned(looks: tuple[tuple[int, ...], ...], *poison: int, way: Way = "signal") -> Draw:
    """Ranges of numbers, of which some end the process that handles them."""
    deadly = Poisoned(poison=poison, way=way)
    return chain(ranges=Ranges(looks=looks), digits=Digits(), poisoned=deadly, collect=Collect())


def poisoned_names(looks: Looks, *poison: int, kind: Any, by_now: int = 0, way: Way = "signal") -> Draw:
    """Numbers of names, read by a splittable operator of any kind, of which some end the process that handles them."""
    deadly = PoisonedNames(poison=poison, way=way)
    return chain(names=Names(looks=looks), numbered=kind(by_now=by_now), poisoned=deadly, collect=Collect())


def killed(desk: Desk) -> int:
    """Run a driver in a process of its own, and return its exit code: below 0 is a signal."""
    gc.collect()  # the child may not release clients of Kafka that earlier tests left
    process = multiprocessing.get_context("fork").Process(target=desk.run)
    process.start()
    process.join(within(120))
    if process.exitcode is None:
        process.kill()
    assert process.exitcode is not None, "the driver ends"
    return process.exitcode


def aside(desk: Desk) -> Sequence[Any]:
    return list(history(desk.ledger()))[-1].checkpoint.aside


def set_aside(desk: Desk) -> list[tuple[int, int]]:
    return [(each.item.start, each.item.end) for each in aside(desk)]


def ask_of(desk: Desk, request: Any) -> Any:
    """Ask something of the next launch, ten seconds later by the clock of the desk."""
    if desk.clock is not None:
        desk.clock.advance(seconds=10)
    return ask(desk.ledger().store, request, datetime.now(UTC) if desk.clock is None else desk.clock.now())
