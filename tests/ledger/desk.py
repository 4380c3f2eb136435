"""A ledger to work on: one input operator, one application, a clock that stands still."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from dagkit.ledger import (
    Chain,
    Ledger,
    LedgerError,
    MetadataBlock,
    Record,
    Span,
    Transaction,
    Work,
    WorkBlock,
    checkpoint_of,
    lines_of,
    slice_of,
    transform_of,
)
from dagkit.ledger.audit.verify import verify
from dagkit.ledger.format.events import DataSchema, Event, SetDataSchema
from dagkit.ledger.format.recorded_work import WORK_SCHEMA
from dagkit.ledger.stores import MemoryStore, Store
from dagkit.testing import FakeClock

SPLITTER, APPLICATION = "File-splitter", "Word count"
STRANGER = "f1620" + "ab" * 32
"""A hash that nothing has."""


class Desk:
    """Appends what an engine would append, in as few words as a test wants to spend."""

    def __init__(self, store: Store | None = None, clock: FakeClock | None = None) -> None:
        self.store = store or MemoryStore()
        self.clock = clock or FakeClock()
        self.ledger = Ledger.create(self.store, clock=self.clock)
        self.root = self.ledger.root(SPLITTER)
        self.app = self.ledger.application(APPLICATION, [SPLITTER], transform_of("plan 1", "0.1.0"))

    def discover(self, *spans: tuple[int, int], source: str = "a.txt", size: int | None = None) -> Record:
        """The splitter finds stretches of a file."""
        self.clock.advance(seconds=1)
        return self.emit([WorkBlock(source=source, start=a, end=b, size=size).as_json() for a, b in spans])

    def emit(self, rows: Sequence[Any] | bytes) -> Record:
        """The splitter appends these rows, or one row that is written so."""
        planned = self.root.plan_next()
        content, count = (rows, 1) if isinstance(rows, bytes) else (lines_of(rows), len(rows))
        return self.root.append(
            planned.add_data(slice_of(content, planned.next_offset, count)), [content], planned=planned
        )

    def mark(self) -> Record:
        return self.root.append(self.root.plan_next().add_data(watermark=self.clock.advance(seconds=1)))

    def keep(self, checkpoint: bytes) -> Record:
        """The application commits a window with this checkpoint and nothing else."""
        planned = self.app.plan_next()
        return self.app.append(planned.execute(checkpoint=checkpoint_of(checkpoint)), [checkpoint], planned=planned)

    def window(
        self,
        records: int = 0,
        *,
        consumed: Sequence[tuple[int, int]] | None = None,
        pending: Sequence[tuple[int, int]] = (),
        source: str = "a.txt",
    ) -> Record:
        """The application commits a window; with `consumed` its checkpoint says what was read."""
        self.clock.advance(seconds=1)
        planned = self.app.plan_next()
        contents, new_data, checkpoint = [], None, None
        if records:
            contents.append(lines_of([{"part": f"w{self.app.standing.next_seq}", "records": records}]))
            new_data = slice_of(contents[-1], planned.next_offset, records)
        if consumed is not None:
            contents.append(state(consumed, pending, source))
            checkpoint = checkpoint_of(contents[-1])
        return self.app.append(planned.execute(new_data, checkpoint), contents, planned=planned)

    def reopened_ledger(self) -> Ledger:
        """The same folder, of which no chain was opened yet."""
        return Ledger.open(self.store, clock=self.clock)

    def reopened(self) -> "Desk":
        """The same folder, opened by another process."""
        other = object.__new__(Desk)
        other.store, other.clock = self.store, self.clock
        other.ledger = Ledger.open(self.store, clock=self.clock)
        other.root = other.ledger.chain(SPLITTER)
        other.app = other.ledger.chain(APPLICATION)
        return other


def state(consumed: Sequence[tuple[int, int]], pending: Sequence[tuple[int, int]] = (), source: str = "a.txt") -> bytes:
    work = Work(
        consumed=tuple(Span(source=source, start=a, end=b) for a, b in consumed),
        pending=tuple(Span(source=source, start=a, end=b) for a, b in pending),
    )
    return json.dumps({"work": work.as_json()}).encode()


def brings_input(planned: Transaction) -> bool:
    """Whether any input brought a block that was not consumed yet, with data or without."""
    return any(each.input.new_block_hash for each in planned.inputs)


def new_offsets(planned: Transaction) -> tuple[int | None, int | None]:
    """What the transaction consumes of its one input: `(prev, new]`."""
    (only,) = planned.inputs
    return only.input.prev_offset, only.input.new_offset


def remark(text: str, schema: DataSchema = WORK_SCHEMA) -> SetDataSchema:
    """A declaration that changes nothing but a remark on the schema."""
    return SetDataSchema(schema=schema.model_copy(update={"extra": {"dagkit.dev/remark": text}}))


def forged(chain: Chain, event: Event, **changes: Any) -> MetadataBlock:
    """The block that an honest append would make, with the changes."""
    standing = chain.standing
    honest = {
        "system_time": standing.system_time or FakeClock().now(),
        "prev_block_hash": None if standing.head is None else standing.head.hash,
        "sequence_number": standing.next_seq,
        "event": event,
    }
    return MetadataBlock(**{**honest, **changes})


def code_of(act: Callable[[], Any], error: type[LedgerError] = LedgerError) -> str:
    """The code under which the ledger refuses the act."""
    return fault_of(act, error)[0]


def fault_of(act: Callable[[], Any], error: type[LedgerError] = LedgerError) -> tuple[str, int | None]:
    """The code under which the ledger refuses the act, and the block."""
    with pytest.raises(error) as caught:
        act()
    return caught.value.code, caught.value.fault.block


def faults_in(desk: Desk | Ledger, **asked: Any) -> list[tuple[str, str | None, int | None]]:
    """What the verifier finds in the ledger, opened again: code, chain and block."""
    ledger = desk.reopened_ledger() if isinstance(desk, Desk) else desk
    return [(fault.code, fault.chain, fault.block) for fault in verify(ledger, **asked).faults]


def is_complete(desk: Desk) -> bool:
    return verify(desk.reopened_ledger()).is_complete
