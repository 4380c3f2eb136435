"""The pieces of one output file, and the work of the windows that wrote them, read from a ledger."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from dagkit.engine.checkpoint.discoveries import DiscoveryCodec
from dagkit.engine.facts import Split
from dagkit.engine.files.staging import Part, in_order
from dagkit.engine.history.history import history
from dagkit.engine.program.program import Program
from dagkit.engine.work.elements import Elements
from dagkit.engine.work.item import WorkItem
from dagkit.ledger import AddData, DatasetKind, Ledger, Work
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
            part.part: part
            for part in (*checkpoint.files, *checkpoint.finished)
            if part.file == file and part.window == checkpoint.window
        }
        if mine:
            parts += mine.values()
            work[checkpoint.window] = checkpoint.work
        for fact in checkpoint.facts:
            if isinstance(fact, Split) and not fact.is_shares:
                cuts.setdefault(fact.source, set()).add(fact.at)
    return WrittenFile(tuple(in_order(parts)), work, {source: frozenset(places) for source, places in cuts.items()})


def work_in_roots(ledger: Ledger, program: Program, elements: Elements) -> Iterator[WorkItem]:
    """Yield all work that input operators found for one input, as it was found."""
    codec = DiscoveryCodec(program, ())
    for name in ledger.names():
        chain = ledger.chain(name)
        if chain.kind is not DatasetKind.ROOT or name not in program.sources:
            continue
        for record in chain.records():
            if not isinstance(record.block.event, AddData):
                continue
            rows = [row for row in rows_of(chain.data(record) or b"") if "source" in row]
            discovery = codec.discovery(name, record.block.sequence_number, rows)
            for row, emitted in zip(rows, discovery.emitted, strict=True):
                targets = program.sources[name].get(emitted.port, ())
                if any(target.address == elements.into for target in targets):
                    yield from elements.work_of(emitted.item, (emitted.item.number,), row["source"])


def stretches(work: Work, into: str, item: WorkItem, cuts: frozenset[int]) -> Iterator[WorkItem]:
    """Yield the parts of a work item that a window consumed, divided at the cuts."""
    consumed = work.by_input[into].consumed if into in work.by_input else ()
    for span in consumed:
        start, end = max(item.start, span.start), min(item.end, OFFSET_INFINITY if span.end is None else span.end)
        if span.source != item.source or span.shares or start >= end:
            continue
        bounds = [start, *sorted(at for at in cuts if start < at < end), end]
        yield from (item.part(low, high) for low, high in pairwise(bounds))
