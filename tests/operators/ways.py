"""Operators alone and in chains: the ways in which items reach them, and what happens to them while they run."""

import resource
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import rshift
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dagkit import Batch, Constant, Dag, Lines, Operator
from dagkit.engine.program.failures import OperatorFailed
from dagkit.engine.program.points import Point, Probe
from dagkit.testing import Alone
from dagkit_operators import Record
from dagkit_operators.contexts.chunk import Chunk
from dagkit_operators.contexts.line_columns import ReadLines


@dataclass(frozen=True, slots=True)
class Named:
    name: str
    size: int


def lines(*texts: str | bytes, delimiter: bytes = b"\n", base: int = 0) -> Lines:
    """A column of lines, of which the first one starts at the byte `base` of its file."""
    encoded = [text.encode() if isinstance(text, str) else text for text in texts]
    return Lines(pa.array([text + delimiter for text in encoded], pa.binary()), delimiter, base=base)


def read_lines(*texts: str, base: int = 0) -> ReadLines:
    content = "".join(f"{text}\n" for text in texts).encode()
    return ReadLines(Chunk(np.frombuffer(content, np.uint8), base, b"\n"))


def of_block(values: Any, *path: str, block_id: int = 7) -> Batch[Any]:
    """The records of a block with a column of values."""
    return Batch({"block_id": Constant(block_id, len(values), *path), "value": values}, Record)


def at_once(alone: Alone[Any], *items: Any) -> None:
    alone.send_batch(items)


BOTH_WAYS = pytest.mark.parametrize("send", [Alone.send, at_once], ids=["one by one", "at once"])


def alike(operator: Operator, items: Sequence[Any], *batches: Batch[Any]) -> Mapping[str, list[Any]]:
    """What an operator sends to each output, which is the same for items one by one, at once, and as these batches."""
    one_by_one, *others = runs = [Alone(operator) for _ in range(2 + len(batches))]
    with one_by_one.window():
        one_by_one.send(*items)
    for alone, batch in zip(others, (items, *batches), strict=True):
        with alone.window():
            alone.send_batch(batch)
    sent, *same = [{port: alone.sent(port) for port in alone.outputs} for alone in runs]
    assert same == [sent] * len(same)
    return sent


def after_windows(
    operator: Operator, windows: Iterable[Iterable[Any]], *, restarts: bool = False, **given: Any
) -> Alone[Any]:
    """An operator that received the items of windows one by one; it may be restarted after each window."""
    alone = Alone(operator, **given)
    for items in windows:
        with alone.window():
            alone.send(*items)
        alone = alone.restarted() if restarts else alone
    return alone


def placed(dag: Dag, **operators: Operator) -> Mapping[str, Any]:
    """Copies of the operators, placed in a Dag under these names, of which each sends to the next one."""
    copies = {name: dag.add_operator(name, operator.configured({})) for name, operator in operators.items()}
    reduce(rshift, copies.values())
    return copies


def in_partitions(**counts: int) -> dict[str, str]:
    """The configuration in which operators have so many partitions."""
    return {f"dt.operator.{name}.attr.PARTITIONER": f"StatelessPartitioner:{count}" for name, count in counts.items()}


def when(at: Point, at_window: int, act: Callable[[], object]) -> Probe:
    """A probe that acts after one step of one window."""

    def probe(point: Point, window_id: int) -> None:
        if (point, window_id) == (at, at_window):
            act()

    return probe


@contextmanager
def refused(code: str, text: str | None = None) -> Iterator[pytest.ExceptionInfo[OperatorFailed]]:
    """The block fails with this code."""
    with pytest.raises(OperatorFailed, match=text) as raised:
        yield raised
    assert raised.value.code == code, raised.value


def lines_in(folder: Path | str) -> list[str]:
    """The sorted lines of all files below a folder."""
    files = (path for path in Path(folder).rglob("*") if path.is_file())
    return sorted(line for path in files for line in path.read_text(errors="surrogateescape").splitlines())


@contextmanager
def files_of_at_most(size):
    """No file of this process can become longer while the block runs, as if the disk was full."""
    before, writes_none = resource.getrlimit(resource.RLIMIT_FSIZE), sys.dont_write_bytecode
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    sys.dont_write_bytecode = True  # Python would keep a part of a compiled module, and fail when it is next imported
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        sys.dont_write_bytecode = writes_none
