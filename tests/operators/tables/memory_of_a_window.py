"""Adds a window to a table of a lake, and prints the bytes by which this raised the memory of the process."""

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from dagkit_operators.tables import delta, staged_rows
from dagkit_operators.tables.staged_rows import _entry_of
from tests.operators.tables.lakes import LAKES

ROWS, WIDTH = 1 << 10, 1 << 11
"""Those of one entry of 2 MiB."""
SMALLER = 8
"""The pieces of a window are smaller by this factor, so that a window of many pieces is written in seconds."""


@dataclass
class Window:
    """A window with values that cannot be compressed."""

    writer: str
    window_id: int
    count: int

    def entries(self) -> Iterator[bytes]:
        offsets = pa.py_buffer(pa.array(range(0, (ROWS + 1) * WIDTH, WIDTH), pa.int32()).buffers()[1])
        for _ in range(self.count):
            values = pa.Array.from_buffers(pa.binary(), ROWS, [None, offsets, pa.py_buffer(os.urandom(ROWS * WIDTH))])
            yield bytes(_entry_of(pa.table({"number": range(ROWS), "value": values})))


def highest() -> int:
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) << 10


def main(kind: str, home: str, count: int) -> None:
    staged_rows._BYTES_TOGETHER //= SMALLER
    delta._ROW_GROUP_BYTES //= SMALLER
    system = LAKES[kind](Path(home)).system()
    system.prepare("writer")
    system.apply(Window("writer", 1, 16))  # of several pieces: the libraries have what they keep
    before = highest()
    system.apply(Window("writer", 2, count))
    sys.stdout.write(f"{highest() - before}\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
