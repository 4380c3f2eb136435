"""The pieces of one output file, where they are now, and the work of the windows that wrote them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from dagkit.api.controls import Stamped
from dagkit.api.work import is_sourced
from dagkit.engine.files.folders import folder_at
from dagkit.engine.files.pieces import look_at, opened
from dagkit.engine.files.staging import Part, in_order
from dagkit.engine.inputs.discoveries import Discovery, DiscoveryCodec, Emitted
from dagkit.engine.program.facts import Split
from dagkit.engine.program.program import Program
from dagkit.engine.record.history import history
from dagkit.engine.work.elements import Elements
from dagkit.engine.work.item import WorkItem
from dagkit.ledger import AddData, Ledger, Work
from dagkit.ledger.chain.contents import rows_of
from dagkit.ranges import OFFSET_INFINITY


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """One output file of an application."""

    parts: tuple[Part, ...]
    """Its pieces as the windows wrote them, in file order."""
    work: Mapping[int, Work]
    """The work of each window that wrote a piece."""
    cuts: Mapping[str, frozenset[int]]
    """The positions at which work was split, by source."""


def written_file(ledger: Ledger, file: str) -> WrittenFile:
    """Return what the ledger records of an output file; a file that the application did not write has no parts."""
    parts: list[Part] = []
    work: dict[int, Work] = {}
    cuts: dict[str, set[int]] = {}
    for entry in history(ledger):
        checkpoint = entry.checkpoint
        # pieces that were joined later keep the number of an earlier window
        mine = {
            part.part: part for part in entry.output.pieces if part.file == file and part.window == checkpoint.window
        }
        if mine:
            parts += mine.values()
            work[checkpoint.window] = checkpoint.work
        for fact in checkpoint.facts:
            if isinstance(fact, Split) and not fact.is_shares:
                cuts.setdefault(fact.source, set()).add(fact.at)
    return WrittenFile(tuple(in_order(parts)), work, {source: frozenset(places) for source, places in cuts.items()})


class Found(NamedTuple):
    """An item that an input operator emitted, and its place: the block of the operator's chain, and the row there."""

    emitted: Emitted
    seq: int
    line: int
    row: Mapping[str, Any]


def discovered(
    ledger: Ledger, program: Program, name: str, first: int = 0, last: int | None = None
) -> Iterator[tuple[Discovery, list[Any]]]:
    """Yield what an input operator found, with its rows: the blocks from `first` to `last` of its chain."""
    if name not in ledger.names():
        return
    codec, chain = DiscoveryCodec(program, ()), ledger.chain(name)
    for record in chain.records(first, last):
        if isinstance(record.block.event, AddData):
            rows = rows_of(chain.data(record) or b"")
            yield codec.discovery(name, record.seq, rows), rows


def found_in_root(ledger: Ledger, program: Program, name: str) -> Iterator[Found]:
    """Yield all items that an input operator emitted, in order."""
    for discovery, rows in discovered(ledger, program, name):
        for index, (each, row) in enumerate(zip(discovery.emitted, rows, strict=True)):
            if not isinstance(each.item, Stamped):
                yield Found(each, discovery.seq, index, row)


def work_in_roots(ledger: Ledger, program: Program, elements: Elements) -> Iterator[WorkItem]:
    """Yield all work that input operators found for one input, as it was found."""
    for name in program.sources:
        for found in found_in_root(ledger, program, name):
            item = found.emitted.item
            if any(target.address == elements.into for target in program.sources[name].get(found.emitted.port, ())):
                number = (item.number,) if is_sourced(item) else (found.seq, found.line)
                yield from elements.work_of(item, number, found.row.get("source"))


def stretches(work: Work, into: str, item: WorkItem, cuts: frozenset[int]) -> Iterator[WorkItem]:
    """Yield the parts of a work item that a window consumed, divided at the cuts."""
    for start, end in consumed_of(work, into, item):
        bounds = [start, *sorted(at for at in cuts if start < at < end), end]
        yield from (item.part(low, high) for low, high in pairwise(bounds))


def consumed_of(work: Work, into: str, item: WorkItem) -> Iterator[tuple[int, int]]:
    """The ranges of a work item that a window consumed: the whole, if the window counts its element among others."""
    done = work.by_input.get(into)
    if done is None:
        return
    if done.folded is not None and all(span.source != item.source for span in (*done.had, *done.pending)):
        yield item.start, item.end
    for span in done.consumed:
        start, end = max(item.start, span.start), min(item.end, OFFSET_INFINITY if span.end is None else span.end)
        if span.source == item.source and not span.shares and start < end:
            yield start, end


@dataclass(frozen=True, slots=True)
class PiecePlace:
    """The place of a piece: a stretch of a file."""

    part: Part
    file: str
    offset: int

    def content(self) -> bytes:
        """The bytes of the piece."""
        content = bytearray()
        with opened(self.file) as source:
            source.seek(self.offset)
            while more := source.read(self.part.length - len(content)):
                content += more
        return bytes(content)


def place_of(part: Part, completed: Mapping[str, Sequence[Part]], application_path: str) -> PiecePlace | None:
    """Where a piece is, given the pieces of the files that its window and later ones completed.

    None if it was joined with others before, or if the file is not there any more, or was changed.
    """
    staged, pieces = folder_at(application_path).path_of(part.part), in_order(completed.get(part.file, ()))
    there, whole = look_at([staged, part.file])
    if there is not None and there.length == part.length:
        return PiecePlace(part, staged, 0)
    if whole is None or whole.length != sum(piece.length for piece in pieces):
        return None
    starts = accumulate((piece.length for piece in pieces), initial=0)
    at = next((start for start, piece in zip(starts, pieces, strict=False) if piece.part == part.part), None)
    return None if at is None else PiecePlace(part, part.file, at)
