"""The journal: appends the discoveries, promises and checkpoints of a run to the ledger, and reads them back.

Opening reads a constant number of blocks, and the discoveries that no window has taken yet.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import Any

from dagkit.engine.files.staging import Part
from dagkit.engine.inputs.discoveries import Discovery, DiscoveryCodec
from dagkit.engine.inputs.event_times import later
from dagkit.engine.program.program import Program
from dagkit.engine.record.checkpoint import Checkpoint
from dagkit.engine.record.compatibility import operator_renamed
from dagkit.engine.record.stored import CheckpointReader, StoredCheckpoint, StoredState, carried_of, parts_of, plain
from dagkit.engine.work.item import WindowPromise
from dagkit.engine.worker.instances import SavedState
from dagkit.errors import RunFailure, Scene, printable
from dagkit.ledger import (
    AddData,
    Chain,
    DatasetKind,
    Fault,
    Ledger,
    Pointer,
    SequenceTaken,
    Transaction,
    checkpoint_of,
    lines_of,
    slice_of,
    transform_of,
)
from dagkit.ledger.audit.presence import refuse_missing
from dagkit.ledger.chain.contents import rows_of
from dagkit.ledger.format.block import Record
from dagkit.ledger.format.events import DataField, DataSchema, Extra, SourceState

STATE_KIND = "dagkit/state"
NAMED_STATE_KIND = "dagkit/state/named"
"""The state kind of an input operator whose name is part of its source names."""

PIECES_SCHEMA = DataSchema(
    fields=(
        DataField(name="offset", type="UInt64"),
        DataField(name="operator", type="String"),
        DataField(name="file", type="String"),
        DataField(name="part", type="String"),
        DataField(name="length", type="UInt64"),
        DataField(name="order", type="UInt64"),
        DataField(name="window", type="UInt64"),
        DataField(name="slot", type="UInt32"),
        DataField(name="block", type={"kind": "Option", "inner": "UInt64"}),
        DataField(name="finished", type="Bool"),
    )
)
"""The results of a window: the pieces of files that its tasks staged."""


class Journal:
    """The root chain of each input operator, and the chain of the application itself."""

    def __init__(self, ledger: Ledger, program: Program, fingerprint: str, version: str) -> None:
        name = chain_name(program)
        self.store = ledger.store
        # before any chain is created: a new chain in the place of a lost one would read all input a second time
        refuse_missing(ledger)
        refuse_another(ledger, name)
        refuse_lost_inputs(ledger, program)
        others = {*ledger.names(), *program.sources} - {name}
        self.roots: dict[str, Chain] = {source: ledger.root(source) for source in sorted(program.sources)}
        self.writing = DiscoveryCodec(program, {source for source in self.roots if self._is_named(source, others)})
        transform = transform_of(fingerprint, version)
        self.chain = ledger.application(name, list(self.roots), transform, PIECES_SCHEMA)
        self._checkpoint = StoredCheckpoint({}, ())
        """The last stored checkpoint."""
        self._planned: Transaction | None = None
        self._after = self._last_data
        """The last window that this run knows; all its plans follow that window."""
        self._heads = {source: root.head for source, root in self.roots.items()}
        """The last discovery that this run knows, by input operator; all its discoveries follow that one."""
        self._states: dict[str, SavedState] = {}
        """The state of each input operator when this run began."""
        self._stored: dict[str, StoredState] = {}
        """The last stored state of each input operator."""
        for source, root in self.roots.items():
            self._stored[source], self._states[source] = stored_in(root)

    @property
    def last_hash(self) -> str:
        """The hash of the block of the last committed window."""
        at = self._last_data
        assert at is not None, "a window was committed"
        return at.hash

    @property
    def _last_data(self) -> Pointer | None:
        """The block of the last committed window."""
        return self.chain.standing.data_at

    @property
    def last_block(self) -> int:
        """The number of the last block of the application's chain."""
        return self.chain.head.seq

    # ---- resuming

    def checkpoint(self) -> Checkpoint:
        """Return the checkpoint of the last window."""
        checkpoint, self._checkpoint = last_checkpoint(self.chain)
        return checkpoint

    def newest_checkpoint(self) -> Checkpoint:
        """Read the ledger again and return its newest checkpoint, even if another driver committed it."""
        self.chain.reopen()
        return self.checkpoint()

    def state_of(self, operator: str) -> SavedState:
        """The state of an input operator when this run began."""
        return self._states[operator]

    def discoveries(self) -> list[Discovery]:
        """Return the discoveries that no window has taken yet, in order."""
        found, standing = [], self.chain.standing
        for name, root in self.roots.items():
            consumed = standing.consumed.get(root.dataset_id)
            first = 0 if consumed is None or consumed.seq is None else consumed.seq + 1
            found += [
                (record.block.system_time, self.discovery(name, record))
                # Up to the head that this run knows: another driver may have found more since.
                for record in root.records(first, self._heads[name].seq)
                if isinstance(record.block.event, AddData)
            ]
        return [discovery for _, discovery in sorted(found, key=lambda pair: (pair[0], pair[1].operator, pair[1].seq))]

    def promised(self) -> tuple[WindowPromise, Mapping[str, int]] | None:
        """Return the promise of the uncommitted window and each input's last discovery in it, or None."""
        planned = self._followed(self.chain.plan_next(self._nothing_new()))
        if not planned.promised:
            return None
        self._planned = planned
        names = {root.dataset_id: name for name, root in self.roots.items()}
        upto = {names[p.input.dataset_id]: p.seq for p in planned.inputs if p.seq is not None}
        for name, seq in upto.items():
            if seq > self._heads[name].seq:  # another driver found and promised it while this run opened the ledger
                raise self.roots[name].log.taken(seq)
        return WindowPromise.model_validate(planned.notes), upto

    # ---- writing

    def watermark_of(self, operator: str) -> datetime | None:
        """The watermark of an input operator after its last discovery."""
        return self.roots[operator].standing.watermark

    def add(
        self,
        discovery: Discovery,
        state: SavedState,
        watermark: datetime | None = None,
        extra: Extra | None = None,
    ) -> Discovery:
        """Append a discovery to the ledger with the state and the watermark of its operator after it.

        `extra` is recorded in the same event.
        """
        root = self.roots[discovery.operator]
        planned = root.plan_next()
        # plan_next has read the chain again: after a block of another driver, this state would lack what that one found
        if root.head != self._heads[discovery.operator]:
            raise root.log.taken(self._heads[discovery.operator].seq + 1)
        rows = list(self.writing.rows(discovery, planned.next_offset))
        content = lines_of(rows)
        stored, document = self._stored[discovery.operator].after(state, root.standing.next_seq)
        event = planned.add_data(
            new_data=slice_of(content, planned.next_offset, len(rows)) if rows else None,
            source_state=SourceState(
                source_name=discovery.operator,
                kind=NAMED_STATE_KIND if discovery.operator in self.writing.named else STATE_KIND,
                value=_text(document, discovery.operator),
            ),
            watermark=later(planned.watermark, watermark),
            extra=extra,
        )
        record = root.append(event, [content] if rows else [], planned=planned)
        self._stored[discovery.operator] = stored
        self._heads[discovery.operator] = root.head
        return Discovery(discovery.operator, discovery.emitted, record.seq, rows)

    def promise(self, upto: Mapping[str, int], promise: WindowPromise) -> None:
        """Promise the next window: it takes the discoveries up to these and runs as noted, even after a crash."""
        given = {self.roots[name].dataset_id: seq for name, seq in upto.items()}
        unseen = {root.dataset_id: 0 for root in self.roots.values()}  # only its Seed block, no discovery
        limits = {**unseen, **self._nothing_new(), **given}
        planned, notes = self._followed(self.chain.plan_next(limits)), promise.as_notes()
        if planned.promised and (planned.notes != notes or _limits_of(planned) != limits):
            raise SequenceTaken(_promised_by_another(self.chain.name))
        self._planned = planned if planned.promised else self.chain.promise(planned, notes)

    def commit(self, checkpoint: Checkpoint, parts: Sequence[Part]) -> None:
        """Append a window to the ledger: its inputs, its results and its checkpoint."""
        assert self._planned is not None, "a window is promised before it is committed"
        planned, self._planned, chain = self._planned, None, self.chain
        rows = [_row(part, planned.next_offset + index) for index, part in enumerate(parts)]
        content = lines_of(rows)
        with _written_by(f"window {checkpoint.window}"):
            stored, text = self._checkpoint.after(
                checkpoint.as_json(), chain.standing.next_seq, partial(stored_at, chain)
            )
        kept, times = text.encode(), checkpoint.progress.event_times
        event = planned.execute(
            new_data=slice_of(content, planned.next_offset, len(rows)) if rows else None,
            checkpoint=checkpoint_of(kept),
            watermark=later(planned.watermark, times.application),
        )
        chain.append(event, [content, kept] if rows else [kept], planned=planned)
        self._checkpoint = stored
        self._after = self._last_data

    def _followed(self, planned: Transaction) -> Transaction:
        """Return the plan if it follows the last window that this run knows; raise `SequenceTaken` otherwise."""
        if planned.after != self._after:
            raise self.chain.log.taken(0 if planned.after is None else planned.after.seq)
        return planned

    def refuse_overtaken(self, error: BaseException) -> None:
        """Raise `SequenceTaken` if another driver has appended to the ledger: that may be the cause of the error."""
        chain = self.chain
        if chain.log.has(chain.standing.next_seq):
            raise chain.log.taken(chain.standing.next_seq) from error

    def _is_named(self, source: str, others: Collection[str]) -> bool:
        """Whether an input operator's name is part of its source names; the ledger keeps the first decision."""
        kept = self.roots[source].standing.source_state
        return len({*others, source}) > 1 if kept is None else kept.kind == NAMED_STATE_KIND

    def _nothing_new(self) -> dict[str, int]:
        """Limits that leave all new discoveries to later windows."""
        consumed = self.chain.standing.consumed
        positions = {root.dataset_id: consumed.get(root.dataset_id) for root in self.roots.values()}
        return {name: at.seq for name, at in positions.items() if at is not None and at.seq is not None}

    def discovery(self, name: str, record: Record) -> Discovery:
        """The discovery in a block of an input operator's chain."""
        content = self.roots[name].data(record)
        return self.writing.discovery(name, record.seq, [] if content is None else rows_of(content))


def stored_in(root: Chain) -> tuple[StoredState, SavedState]:
    """The state of an input operator in its root chain: in the stored form and as a whole."""
    state, at = root.standing.source_state, root.standing.data_at
    if state is None or at is None:
        return StoredState({}), {}
    return StoredState.read(json.loads(state.value), at.seq, lambda seq: _document_of(root, seq))


def last_checkpoint(chain: Chain) -> tuple[Checkpoint, StoredCheckpoint]:
    """The checkpoint of an application's last window, and its stored form."""
    content, at = chain.checkpoint(), chain.standing.state_at
    if content is None or at is None:
        return Checkpoint(), StoredCheckpoint({}, ())
    stored = json.loads(content)
    whole = CheckpointReader(partial(stored_at, chain)).whole(stored, at.seq)
    checkpoint = Checkpoint.model_validate(whole)
    return checkpoint, StoredCheckpoint(carried_of(checkpoint.as_json()), parts_of(stored, at.seq, len(content)))


def stored_at(chain: Chain, seq: int) -> Mapping[str, Any]:
    """The part of its checkpoint that a block of an application's chain stores."""
    content = chain.checkpoint_at(chain.read(seq))
    assert content is not None, f"block {seq} of {chain.name} is named as one that holds a checkpoint"
    stored: Mapping[str, Any] = json.loads(content)
    return stored


def _document_of(root: Chain, seq: int) -> Mapping[str, Any]:
    event = root.read(seq).block.event
    assert isinstance(event, AddData), f"block {seq} of {root.name} is named as one that holds state"
    assert event.new_source_state is not None, f"block {seq} of {root.name} is named as one that holds state"
    document: Mapping[str, Any] = json.loads(event.new_source_state.value)
    return document


@contextmanager
def _written_by(whose: str) -> Iterator[None]:
    """Raise `checkpoint-unwritable` if the block cannot write state as JSON."""
    try:
        yield
    except (ValueError, TypeError, RecursionError) as error:
        raise RunFailure(
            f"the state that {whose} left cannot be written as JSON: {error}",
            "keep numbers, text and lists of them",
            code="checkpoint-unwritable",
        ) from error


def _text(state: Any, whose: str) -> str:
    """State as JSON in ASCII: it may hold text from files that are not valid UTF-8."""
    with _written_by(whose):
        return json.dumps(state, sort_keys=True, separators=(",", ":"), allow_nan=False, default=plain)


def chain_name(program: Program) -> str:
    """The name of the application's own chain."""
    name = program.application
    while name in program.sources:
        name += " (application)"
    return name


def refuse_another(ledger: Ledger, name: str) -> None:
    """Raise `application-mismatched` if the ledger has the chain of an application with another name."""
    known = ledger.names()
    kept = next((other for other in known if ledger.chain(other).kind is DatasetKind.DERIVATIVE), None)
    if name not in known and kept is not None:
        raise RunFailure(
            f"the ledger in {printable(str(ledger.store))} belongs to {kept}, and this application is called {name}",
            f"choose another folder with --path or APPLICATION_PATH; if {kept} was renamed, set APPLICATION_NAME to "
            "its old name",
            code="application-mismatched",
        )


def refuse_lost_inputs(ledger: Ledger, program: Program) -> None:
    """Raise if an input operator is missing and left discoveries, or was renamed."""
    name = chain_name(program)
    if name not in ledger.names():
        return
    chain = ledger.chain(name)
    before = ledger.inputs_of(chain)
    standing = chain.standing
    new = sorted(set(program.sources) - set(before.values()))
    for dataset_id, alias in sorted(before.items()):
        if alias in program.sources:
            continue
        if new:
            raise operator_renamed(alias, new[0], "progress", f"what {alias} found is found again then, if it is there")
        consumed = standing.consumed.get(dataset_id)
        found = ledger.chain(alias).standing.data_at
        if found is not None and (consumed is None or consumed.seq is None or consumed.seq < found.seq):
            raise RunFailure(
                f"the input operator {alias} is gone, and no window has processed what it found last",
                "launch once with it until everything is processed, or start over under another APPLICATION_PATH",
                Scene(alias),
                code="discovery-unfinished",
            )


def _limits_of(planned: Transaction) -> dict[str, int]:
    return {p.input.dataset_id: p.seq for p in planned.inputs if p.seq is not None}


def _promised_by_another(chain: str) -> Fault:
    return Fault(
        code="promise-taken",
        problem="another driver promised another plan of this window",
        help="find the second driver and stop it, then start again",
        chain=chain,
    )


def _row(part: Part, offset: int) -> dict[str, Any]:
    return {"offset": offset, **part.model_dump(mode="json", exclude_none=True)}
