"""Contestants without an engine: the kernel of dagkit, `grep`, and a hand-written loop."""

import os
import shutil
import subprocess
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path

from bench.ingesting.sizes import BLOCK_SIZE, cores
from dagkit import Lines
from dagkit.backends.spark.window.worker import hold_memory
from dagkit_operators.contexts.lines import chunks
from dagkit_operators.contexts.reader_context import binary_array
from dagkit_operators.native.bytewise import kept_by_beginning


def kernel(source: Path, target: Path) -> None:
    """The core of a fused stage: read chunks of lines, copy the kept ones, write once for each chunk."""
    _kernel(source, target / "kept", 0, None)


def kernel_on_every_core(source: Path, target: Path) -> None:
    """The same with a share of the text for each core, in existing processes."""
    size, shares = source.stat().st_size, cores()
    ends = [size * number // shares for number in range(shares + 1)]
    work = [(source, target / f"kept-{number}", ends[number], ends[number + 1]) for number in range(shares)]
    list(_processes().map(_kernel, *zip(*work, strict=True)))


@cache
def _processes() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(cores(), mp_context=get_context("forkserver"))


def _kernel(source: Path, kept: Path, start: int, end: int | None) -> None:
    hold_memory()
    with source.open("rb", buffering=0) as stream, kept.open("wb", buffering=0) as out:
        for chunk in chunks(stream, start, end):
            left = kept_by_beginning(binary_array(chunk.data, chunk.offsets), b".", wanted=False)
            _write_all(out.fileno(), Lines(left).content)


def _write_all(file: int, data: memoryview) -> None:
    while len(data):
        data = data[os.write(file, data) :]


def grep(source: Path, target: Path) -> None:
    """`grep -v` in the C locale, its fastest mode."""
    program = shutil.which("grep")
    if program is None:
        raise FileNotFoundError("there is no `grep` on this machine: install it with the system's package manager")
    with (target / "kept").open("wb") as out:
        command = [program, "-v", r"^\.", str(source)]
        subprocess.run(command, stdout=out, env={"LC_ALL": "C"}, check=True)  # noqa: S603 - a fixed command


def hand_loop(source: Path, target: Path) -> None:
    """The same blocks, the same function of a decoded line and the same files, without an engine."""
    keep: Callable[[str], bool] = lambda line: not line.startswith(".")  # noqa: E731 - what the application writes
    for start in range(0, source.stat().st_size, BLOCK_SIZE):
        with source.open("rb") as lines, (target / f"{start // BLOCK_SIZE:x}").open("wb") as out:
            place, end = start, start + BLOCK_SIZE
            if start:
                lines.seek(start - 1)
                place += len(lines.readline()) - 1  # a line that began before the block belongs to the block before
            for line in lines:
                if place >= end:
                    break
                place += len(line)
                if keep(line[:-1].decode()):
                    out.write(line)
