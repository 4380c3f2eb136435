"""All that the ledger records of one input file."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from dagkit.engine.address import Address
from dagkit.engine.checkpoint.checkpoint import Checkpoint
from dagkit.engine.checkpoint.stored_checkpoint import own_of
from dagkit.engine.history.history import is_named
from dagkit.ledger import AddData, Chain, DatasetKind, ExecuteTransform, Ledger, Record, Span
from dagkit.ledger.chain.contents import rows_of
from dagkit.ledger.format.hashing import canonical
from dagkit.ledger.format.recorded_work import InputWork
from dagkit.ledger.format.span_sets import more


@dataclass(frozen=True, slots=True)
class BlockRead:
    """One block of a file as an input operator found it."""

    number: int | None
    start: int
    end: int | None


@dataclass(frozen=True, slots=True)
class WindowRead:
    """What one window read of a file."""

    window: int
    operator: str
    """The reader."""
    bytes: int
    """How many positions it read; bytes, for files."""
    rows: int | None
    """How many items the reader sent; None if it read other sources in this window, too."""
    outputs: tuple[str, ...]
    """The files that the window wrote to: what was read is in these, if it is in any file."""


@dataclass(slots=True)
class Reading:
    """One reading of a file; a file that changed is read again."""

    source: str
    """The name in the ledger: the path, and a version or an identity if there is one."""
    finder: str = ""
    """The input operator that found it; empty if an operator in the middle of the graph did."""
    found: datetime | None = None
    found_by: int | None = None
    """The block of the finder's chain that records it."""
    taken_by: int | None = None
    """The first window that was given its work."""
    blocks: list[BlockRead] = field(default_factory=list)
    windows: list[WindowRead] = field(default_factory=list)
    pending: int | None = 0
    """How many positions wait after the last window that names the file; None if work without an end waits."""


def readings(ledger: Ledger, path: str) -> list[Reading]:
    """All readings of a file that the ledger names, in order."""
    noted = _Noted(path)
    for reading in _found(ledger, path):
        noted.readings.setdefault(reading.source, reading)
    for checkpoint, written in _windows(ledger, path):
        for work in checkpoint.work.inputs or ():
            noted.add(checkpoint, work, written)
    return list(noted.readings.values())


def _found(ledger: Ledger, path: str) -> Iterator[Reading]:
    """The readings that root chains record, with their blocks."""
    needle = canonical(path)[1:-1].encode()
    for name, chain, record in slices(ledger):
        content = chain.data(record) or b""
        if needle not in content:
            continue
        readings: dict[str, Reading] = {}
        for row in rows_of(b"\n".join(line for line in content.splitlines() if needle in line)):
            if "source" in row and path_in(row) == path:
                new = Reading(row["source"], name, record.block.system_time, record.seq)
                blocks = readings.setdefault(row["source"], new).blocks
                blocks.append(BlockRead(_element_in(row).get("block_id"), row["start"], row.get("end")))
        yield from readings.values()


def _windows(ledger: Ledger, path: str) -> Iterator[tuple[Checkpoint, tuple[str, ...]]]:
    """The checkpoints that name a path, without what is carried, and the files that each of these windows wrote to."""
    needle = json.dumps(path)[1:-1].encode()
    for name in ledger.names():
        chain = ledger.chain(name)
        if chain.kind is not DatasetKind.DERIVATIVE:
            continue
        for record in chain.records():
            if isinstance(record.block.event, ExecuteTransform):
                content = chain.checkpoint_at(record) or b""
                if needle in content:
                    rows = rows_of(chain.data(record) or b"")
                    files = tuple(dict.fromkeys(row["file"] for row in rows if "file" in row))
                    yield Checkpoint.model_validate(own_of(json.loads(content))), files


@dataclass(slots=True)
class _Noted:
    """The readings of one file, while the windows that name it are added to them."""

    path: str
    readings: dict[str, Reading] = field(default_factory=dict)
    left: dict[tuple[str, str], list[Span]] = field(default_factory=dict)
    """What waits, by input and source."""

    def add(self, checkpoint: Checkpoint, work: InputWork, written: tuple[str, ...]) -> None:
        """Add what one window did with the file at one input."""
        reader = Address(work.input).operator
        listed = (*work.had, *work.settled, *work.pending)
        for source in dict.fromkeys(span.source for span in listed if is_named(span.source, self.path)):
            reading = self.readings.setdefault(source, Reading(source))
            if reading.taken_by is None:
                reading.taken_by = checkpoint.window
            reading.pending = _positions(self._left_after(work, source), source)
            consumed = _positions(work.consumed, source)
            if consumed:
                rows = checkpoint.rows.operators.get(reader)
                alone = not work.folded and all(span.source == source for span in work.consumed)
                passed_on = rows.passed_on if rows is not None and alone else None
                reading.windows.append(WindowRead(checkpoint.window, reader, consumed, passed_on, written))

    def _left_after(self, work: InputWork, source: str) -> list[Span]:
        """What waits of a source after a window."""
        left = list(work.pending)
        if work.waits is not None:
            before = self.left.get((work.input, source), ())
            left = more((*before, *_of(source, work.had)), _of(source, work.settled))
        self.left[work.input, source] = _of(source, left)
        return left


def _of(source: str, spans: Iterable[Span]) -> list[Span]:
    return [span for span in spans if span.source == source]


def _positions(spans: Iterable[Span], source: str) -> int | None:
    """The sum of the lengths of the spans of a source; None if one has no end."""
    mine = [span for span in spans if span.source == source and not span.shares]
    return None if any(span.end is None for span in mine) else sum((span.end or 0) - span.start for span in mine)


def slices(ledger: Ledger) -> Iterator[tuple[str, Chain, Record]]:
    """The blocks of root chains that hold data, with the names of their chains and the chains."""
    for name in ledger.names():
        chain = ledger.chain(name)
        if chain.kind is DatasetKind.ROOT:
            for record in chain.records():
                if isinstance(record.block.event, AddData):
                    yield name, chain, record


def path_in(row: Mapping[str, Any]) -> str | None:
    """The path in a row of a root chain; None if the row is no work."""
    if "source" not in row:
        return None
    path = _element_in(row).get("path")
    return path if isinstance(path, str) else str(row["source"])


def _element_in(row: Mapping[str, Any]) -> Mapping[str, Any]:
    extra = row.get("extra") or {}
    element = extra.get("element", extra)
    return element if isinstance(element, Mapping) else {}
