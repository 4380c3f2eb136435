"""Prove that every position was consumed exactly as often as it was found, or name the gap or the overlap."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from pydantic import ValidationError

from dagkit.ledger.audit.work_audit import Audit, DiscoveredWork, Flaw
from dagkit.ledger.chain.chain import Chain
from dagkit.ledger.chain.contents import rows_of
from dagkit.ledger.format.block import Record
from dagkit.ledger.format.events import AddData, ExecuteTransform, SetDataSchema, changed_checkpoint
from dagkit.ledger.format.faults import Fault, LedgerCode, LedgerError
from dagkit.ledger.format.recorded_work import EmittedItem, Span, Work, WorkBlock, row_of, work_of
from dagkit.ledger.format.span_sets import joined

_CODES: dict[str, LedgerCode] = {"missing": "bytes-missing", "doubled": "bytes-doubled", "unread": "bytes-unread"}
_HELP: dict[str, str] = {
    "missing": "these bytes are not in the output: run the application over them, or accept the loss",
    "doubled": "these bytes are in the output twice: find the records by their window and remove them",
    "unread": "run the application until it is done",
}


def _fault(flaw: Flaw, chain: str, block: int | None) -> Fault:
    """Convert a flaw to a fault of a chain."""
    return Fault(_CODES[flaw.kind], f"{flaw.span} {flaw.why}", _HELP[flaw.kind], chain, block)


def lists_work(chain: Chain) -> bool:
    """Whether the chain's data are ranges of sources, so that completeness can be proven."""
    try:
        declared = chain.last("SetDataSchema")
    except LedgerError:
        return False  # the replay reports what is wrong with the chain
    event = None if declared is None else declared.block.event
    if not isinstance(event, SetDataSchema):
        return False
    return {"source", "start", "end"} <= {column.name for column in event.schema_.fields}


def blocks_of(chain: Chain, record: Record) -> list[WorkBlock]:
    """The ranges that a root block lists, without the items that the operator emitted beside them."""
    return [row for row in _rows(chain, record) if isinstance(row, WorkBlock)]


def _rows(chain: Chain, record: Record) -> list[WorkBlock | EmittedItem]:
    """The ranges and the items that a root block lists."""
    content = chain.data(record)
    return [] if content is None else [row_of(row) for row in rows_of(content)]


def _readable(chain: Chain, record: Record) -> list[WorkBlock]:
    """The ranges of a readable slice; the proof of the root chain reports an unreadable one."""
    try:
        return blocks_of(chain, record)
    except (LedgerError, ValidationError, ValueError):
        return []


@dataclass(slots=True)
class RootProof:
    """Checks one root chain; takes each of its blocks once, in order."""

    chain: Chain
    discovery: DiscoveredWork = field(default_factory=DiscoveredWork)

    def block(self, record: Record) -> Iterator[Fault]:
        """The flaws of the next block."""
        if not isinstance(record.block.event, AddData):
            return
        try:
            blocks = blocks_of(self.chain, record)
        except (ValidationError, ValueError) as error:
            yield _unreadable(self.chain.name, record.seq, str(error).splitlines()[0])
            return
        for block in blocks:
            yield from (_fault(flaw, self.chain.name, record.seq) for flaw in self.discovery.add(block))

    def end(self) -> Iterator[Fault]:
        """Ranges that were skipped or are not discovered yet."""
        yield from (_fault(flaw, self.chain.name, None) for flaw in self.discovery.end())


@dataclass(slots=True)
class WindowProof:
    """Checks one derivative chain against the input blocks that each window consumed."""

    chain: Chain
    inputs: dict[str, Chain]
    """The root chains that list work, by dataset id."""
    audit: Audit = field(default_factory=Audit)
    unproven: dict[str, int] = field(default_factory=dict)
    """Items of root chains that were given to windows which recorded nothing of their work, by chain."""
    _upto: dict[str, int] = field(default_factory=dict)

    def block(self, record: Record) -> Iterator[Fault]:
        """The flaws of the next window."""
        event = record.block.event
        if not isinstance(event, ExecuteTransform) or not self.inputs:
            return
        try:
            rows = list(self._given(event, record))
            given = [row.span for _, row in rows if isinstance(row, WorkBlock)]
            work = self._work(event, record, given)
        except (ValidationError, ValueError) as error:
            yield _unreadable(self.chain.name, record.seq, str(error).splitlines()[0])
            return
        if work is None or work.inputs is None:
            for name, row in rows:
                if isinstance(row, EmittedItem):
                    self.unproven[name] = self.unproven.get(name, 0) + 1
        flaws = self.audit.window(given, work)
        yield from (_fault(flaw, self.chain.name, record.seq) for flaw in flaws)

    def end(self) -> Iterator[Fault]:
        """Work that was discovered and is not consumed yet."""
        for span in joined(self.audit.pending):
            if _is_poll(span):
                continue
            yield _fault(Flaw("unread", span, "is pending"), self.chain.name, self.chain.head.seq)
        for name, chain in self.inputs.items():
            rest = chain.records(self._upto.get(name, -1) + 1)
            for span in joined(block.span for record in rest for block in _readable(chain, record)):
                yield _fault(Flaw("unread", span, "is not consumed yet"), chain.name, None)

    def _given(self, event: ExecuteTransform, record: Record) -> Iterator[tuple[str, WorkBlock | EmittedItem]]:
        """What the root chains list that is new to the window, by their names."""
        numbers = record.carry.consumed or ()
        # A forged carry may have fewer numbers than inputs. The replay reports it.
        for consumed, number in zip(event.query_inputs, numbers, strict=False):
            chain = self.inputs.get(consumed.dataset_id)
            if chain is None or number is None:
                continue
            first = self._upto.get(consumed.dataset_id, -1) + 1
            for root in chain.records(first, number):
                yield from ((chain.name, row) for row in _rows(chain, root))
            self._upto[consumed.dataset_id] = max(number, first - 1)

    def _work(self, event: ExecuteTransform, record: Record, given: list[Span]) -> Work | None:
        if event.new_checkpoint is not None and changed_checkpoint(event) is None:
            return self.audit.unchanged(given)
        content = self.chain.checkpoint_at(record)
        if content is None:
            return None
        try:
            # Not `read_json`: state may hold NaN, which that refuses, and the proof reads nothing but `work`.
            document = json.loads(content)
        except RecursionError:
            raise ValueError("the checkpoint is nested too deeply") from None
        except ValueError:
            return None  # a checkpoint that is not JSON lists no work
        # Outside the try: malformed work must not count as no work.
        return work_of(document)


def _unreadable(chain: str, seq: int, why: str) -> Fault:
    """The fault of a list of work that cannot be parsed."""
    return Fault(
        "work-unreadable", f"its list of work cannot be read: {why}", "see which operator wrote it", chain, seq
    )


def known_inputs(chain: Chain, find: dict[str, Chain]) -> dict[str, Chain]:
    """The inputs of a chain that list work, by dataset id."""
    return {name: find[name] for name in chain.standing.inputs if name in find and lists_work(find[name])}


def _is_poll(span: Span) -> bool:
    """Whether a span stands for later polls of an element, such as a pattern of files: nothing of it was found."""
    # The name of such an element is its JSON form, and that of a file or a topic is not.
    return span.end is None and span.start > 0 and span.source.startswith(('"', "{", "["))
