"""All that the ledger records of one input file."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from dagkit.api.work import SplittableOperator
from dagkit.compiler import Compilation
from dagkit.engine.program.address import Address
from dagkit.engine.record.history import Window, own_windows, root_slices
from dagkit.engine.record.source_names import is_named
from dagkit.ledger import Ledger, Span
from dagkit.ledger.chain.contents import rows_of
from dagkit.ledger.format.hashing import canonical
from dagkit.ledger.format.recorded_work import InputWork
from dagkit.ledger.format.span_sets import more
from dagkit.runs.inventory.finders import senders
from dagkit.runs.window_again import NotFoundAgain, RunAgain, WindowAgain, past_windows


@dataclass(frozen=True, slots=True)
class BlockRead:
    """One block of a file as an input operator found it."""

    number: int | None
    start: int
    end: int | None


@dataclass(frozen=True, slots=True)
class WindowRead:
    """The part of a file that one window read."""

    window: int
    operator: str
    """The reader."""
    bytes: int | None
    """How many positions it read; bytes, for files. None if the operator reads no content, but divides files."""
    items: int | None
    """How many items the reader sent, be they records or batches; None if it read other sources in this window, too."""
    outputs: tuple[str, ...]
    """The files that the window wrote to: what was read is in these, if it is in any file."""


@dataclass(slots=True)
class Reading:
    """One reading of a file; a file that changed is read again."""

    source: str
    """The name in the ledger: the path, and a version or an identity if there is one."""
    finder: str = ""
    """The operator that found it; empty if only the application knows it, since it is in the middle of the graph."""
    found: datetime | None = None
    found_by: int | None = None
    """The block of the finder's chain that records it."""
    found_in: list[int] = field(default_factory=list)
    """The windows in which an operator in the middle of the graph found it, or further blocks of it."""
    receiver: str = ""
    """The operator that took its work."""
    taken_by: int | None = None
    """The first window that was given its work."""
    blocks: list[BlockRead] = field(default_factory=list)
    windows: list[WindowRead] = field(default_factory=list)
    pending: int | None = 0
    """How many positions no committed window has read, as the last one that names the file leaves them, or all if none
    names it; None if work without an end waits."""
    unread: int = 0
    """How many positions do not wait, although no window read them: they are set aside, given up, or were not there."""


def readings(ledger: Ledger, path: str) -> list[Reading]:
    """All readings of a file that the ledger names, in order."""
    noted = _Noted(path)
    for reading in _found(ledger, path):
        noted.readings.setdefault(reading.source, reading)
    # As it stands in checkpoints, which are ASCII. The rows of root chains are not.
    for window in own_windows(ledger, json.dumps(path)[1:-1].encode()):
        rows = rows_of(window.chain.data(window.record) or b"")
        written = tuple(dict.fromkeys(row["file"] for row in rows if "file" in row))
        for work in window.work:
            noted.add(window, work, written)
    return list(noted.readings.values())


def readings_of(compilation: Compilation, ledger: Ledger, path: str) -> list[Reading]:
    """All readings of a file, with what the application knows of those that were found in the middle of its graph."""
    found, operators = readings(ledger, path), RunAgain.of(compilation)
    order = list(operators.program.operators)
    found_inside = [reading for reading in found if reading.found_in and reading.receiver in order]
    for reading in found_inside:
        reading.finder = senders(compilation, reading.receiver)
        operator = operators.operator(reading.receiver)
        if isinstance(operator, SplittableOperator) and not operator.reads_positions:
            reading.windows = [replace(window, bytes=None, outputs=()) for window in reading.windows]
    for past in past_windows(ledger, {window for reading in found_inside for window in reading.found_in}):
        again = WindowAgain(operators, ledger, past)
        for reading in found_inside:
            if past.window in reading.found_in:
                reading.blocks += _blocks(again, reading)
    return sorted(found, key=lambda reading: order.index(reading.receiver) if reading in found_inside else -1)


def _blocks(again: WindowAgain, reading: Reading) -> list[BlockRead]:
    """The blocks of a reading that were found in a window; none if they cannot be found again."""
    try:
        work = [item for item in again.taken(reading.receiver) if item.source == reading.source]
    except NotFoundAgain:
        return []
    known = {block.number for block in reading.blocks}
    return [
        BlockRead(item.element_id, item.start, item.end if item.has_end else None)
        for item in work
        if item.element_id is not None and item.element_id not in known
    ]


def _found(ledger: Ledger, path: str) -> Iterator[Reading]:
    """The readings that root chains record, with their blocks."""
    # As it stands in rows: the lines without it are not parsed.
    needle = canonical(path)[1:-1].encode()
    for name, chain, record in root_slices(ledger):
        content = chain.data(record) or b""
        if needle not in content:
            continue
        readings: dict[str, Reading] = {}
        for row in rows_of(b"\n".join(line for line in content.splitlines() if needle in line)):
            if "source" in row and path_in(row) == path:
                new = Reading(row["source"], name, record.block.system_time, record.seq)
                blocks = readings.setdefault(row["source"], new).blocks
                blocks.append(BlockRead(_element_in(row).get("block_id"), row["start"], row.get("end")))
        for reading in readings.values():
            is_endless = any(block.end is None for block in reading.blocks)
            reading.pending = None if is_endless else sum((block.end or 0) - block.start for block in reading.blocks)
            yield reading


@dataclass(slots=True)
class _Noted:
    """The readings of one file, while the windows that name it are added to them."""

    path: str
    readings: dict[str, Reading] = field(default_factory=dict)
    left: dict[str, dict[str, list[Span]]] = field(default_factory=dict)
    """The ranges that wait, by source and input."""

    def add(self, window: Window, work: InputWork, written: tuple[str, ...]) -> None:
        """Add what one window did with the file at one input."""
        checkpoint, reader = window.checkpoint, Address(work.input).operator
        listed = (*work.had, *work.settled, *work.pending)
        for source in dict.fromkeys(span.source for span in listed if is_named(span.source, self.path)):
            reading = self.readings.setdefault(source, Reading(source))
            if reading.taken_by is None:
                reading.taken_by, reading.receiver = checkpoint.window, reader
            if any(span.source == source for span in work.found):
                reading.found = reading.found or window.committed
                reading.found_in.append(checkpoint.window)
            left = self.left.setdefault(source, {})
            left[work.input] = _left_after(left.get(work.input, ()), work, source)
            reading.pending = _positions((span for spans in left.values() for span in spans), source)
            ended = (*(work.aside or ()), *(work.given_up or ()), *(work.skipped or ()))
            reading.unread += (_positions(ended, source) or 0) - (_positions(work.retried or (), source) or 0)
            consumed = _positions(work.consumed, source)
            if consumed:
                rows = checkpoint.rows.operators.get(reader)
                alone = not work.folded and all(span.source == source for span in work.consumed)
                passed_on = rows.passed_on if rows is not None and alone else None
                reading.windows.append(WindowRead(checkpoint.window, reader, consumed, passed_on, written))


def _left_after(before: Iterable[Span], work: InputWork, source: str) -> list[Span]:
    """The ranges of a source that wait at an input after a window."""
    if work.waits is None:
        return _of(source, work.pending)
    return more((*before, *_of(source, work.had)), _of(source, work.settled))


def _of(source: str, spans: Iterable[Span]) -> list[Span]:
    return [span for span in spans if span.source == source]


def _positions(spans: Iterable[Span], source: str) -> int | None:
    """The sum of the lengths of the spans of a source; None if one has no end."""
    mine = [span for span in spans if span.source == source and not span.shares]
    return None if any(span.end is None for span in mine) else sum((span.end or 0) - span.start for span in mine)


def sources_in(ledger: Ledger) -> Iterator[str]:
    """The sources that root chains list, one for each block, in the order of each chain."""
    for _, chain, record in root_slices(ledger):
        for row in rows_of(chain.data(record) or b""):
            if "source" in row:
                yield row["source"]


def path_in(row: Mapping[str, Any]) -> str | None:
    """The path in a row of a root chain; None if the row is no work."""
    if "source" not in row:
        return None
    path = _element_in(row).get("path")
    return path if isinstance(path, str) else str(row["source"])


def length_in(row: Mapping[str, Any]) -> int | None:
    """The length of a file when a block of it was found; None if that is not recorded."""
    length = (_element_in(row).get("facts") or {}).get("length")
    return length if isinstance(length, int) else None


def _element_in(row: Mapping[str, Any]) -> Mapping[str, Any]:
    extra = row.get("extra") or {}
    element = extra.get("element", extra)
    return element if isinstance(element, Mapping) else {}
