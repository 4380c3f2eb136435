"""Processes of this machine: programs that tests run, and what Linux shows below /proc."""

import os
import select
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.patience import within


def run_program(
    command: Sequence[str | Path], *, seconds: float = 30, check: bool = True, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, and return its code and what it printed. Fail if it does not end, and show that.

    If `check`, fail unless its code is 0.
    """
    shown = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
    try:
        done = subprocess.run(command, check=False, timeout=within(seconds), **shown)  # noqa: S603 - tests name it
    except subprocess.TimeoutExpired as late:
        printed = "\n".join(part.decode(errors="replace") for part in (late.stdout, late.stderr) if part)
        pytest.fail(f"{command} did not end within {within(seconds):.0f} s; it printed:\n{printed}")
    if check and done.returncode:
        pytest.fail(f"{command} ended with code {done.returncode}; it printed:\n{done.stdout}\n{done.stderr}")
    return done


def next_line(process: "subprocess.Popen[str]", seconds: float = 30) -> str:
    """The next line that a process prints. The process is killed if it prints none: then the line is empty."""
    assert process.stdout is not None
    with killed_after(process, seconds):
        return process.stdout.readline()


@contextmanager
def limited(process: "subprocess.Popen[str]", seconds: float = 30) -> Iterator["subprocess.Popen[str]"]:
    """A process that was started. The block waits for its end, and it is killed after so many seconds."""
    with killed_after(process, seconds), process:
        try:
            yield process
        except BaseException:
            process.kill()
            raise


@contextmanager
def killed_after(process: "subprocess.Popen[str]", seconds: float = 30) -> Iterator[None]:
    """Kill a process if the block takes longer, so that what it prints ends."""
    late = threading.Timer(within(seconds), process.kill)
    late.daemon = True
    late.start()
    try:
        yield
    finally:
        late.cancel()


def await_end(process: int, seconds: float = 30) -> None:
    """Wait until a process has ended, which this one need not have started; fail if it does not end."""
    try:
        handle = os.pidfd_open(process)
    except ProcessLookupError:
        return
    try:
        assert select.select([handle], [], [], within(seconds))[0], f"process {process} has not ended"
    finally:
        os.close(handle)


def below(process: int) -> list[int]:
    """The processes that one started, and those that these started; none if it has ended."""
    found: list[int] = []
    with suppress(FileNotFoundError):
        for thread in Path(f"/proc/{process}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):
                for child in map(int, (thread / "children").read_text().split()):
                    found += [child, *below(child)]
    return found


def running(program: str, process: int) -> Iterator[int]:
    """The processes below one whose command line contains the name of a program."""
    for each in below(process):
        with suppress(FileNotFoundError, ProcessLookupError):
            if program in Path(f"/proc/{each}/cmdline").read_text(encoding="utf-8", errors="replace"):
                yield each
