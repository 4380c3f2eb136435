"""What a contestant is asked to do. It needs only the standard library."""

import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Task:
    """Copy all messages of a topic to another, as a file of JSON."""

    address: str
    source: str
    target: str

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")


def task_in(path: Path) -> Task:
    """The task in a file."""
    return Task(**json.loads(path.read_text(encoding="utf-8")))


def until_stopped(folder: Path) -> None:
    """Wait until the benchmark asks to stop."""
    while not (folder / "stop").exists():
        time.sleep(0.05)


def use_one_core() -> None:
    """Bind this process, and those that it starts, to one core."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
