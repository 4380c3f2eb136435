"""Processes of this machine, as Linux shows them below /proc."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


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
