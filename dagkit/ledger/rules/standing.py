"""The standing of a chain: everything that its next block may depend on.

Two computations must agree: `advance` folds the whole chain, block by block; `resume` reads the last record and at most
two that it points to. The verifier checks the second against the first.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from dagkit.ledger.format.block import Carry, Dataset, Pointer, Record
from dagkit.ledger.format.events import (
    AddData,
    DataEvent,
    DatasetKind,
    Event,
    ExecuteTransform,
    ExecuteTransformInput,
    Seed,
    SetTransform,
    SourceState,
    changed_checkpoint,
)
from dagkit.ledger.format.faults import ChainBroken, Fault

Reader = Callable[[Pointer], Record]
"""Reads the record that a pointer names."""


@dataclass(frozen=True, slots=True)
class Position:
    """How far one input was consumed: its last consumed block, and the last offset at that block."""

    seq: int | None = None
    block_hash: str | None = None
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """The standing after a chain's last block; that of an empty chain is `Standing()`."""

    head: Pointer | None = None
    system_time: datetime | None = None
    dataset: Dataset | None = None
    data: DataEvent | None = None
    """The last AddData or ExecuteTransform, even if declarations follow it."""
    data_at: Pointer | None = None
    slice_at: Pointer | None = None
    state_at: Pointer | None = None
    """The block that first named the current checkpoint."""
    key_at: Pointer | None = None
    keys: Mapping[str, Pointer] = field(default_factory=dict)
    inputs: tuple[str, ...] = ()
    consumed: Mapping[str, Position] = field(default_factory=dict)

    @property
    def next_seq(self) -> int:
        return 0 if self.head is None else self.head.seq + 1

    @property
    def kind(self) -> DatasetKind | None:
        return None if self.dataset is None else self.dataset.kind

    @property
    def offset(self) -> int | None:
        """The offset of the last record."""
        return None if self.data is None else self.data.last_offset

    @property
    def checkpoint(self) -> str | None:
        """The checkpoint that the next event starts from."""
        return None if self.data is None or self.data.new_checkpoint is None else self.data.new_checkpoint.physical_hash

    @property
    def watermark(self) -> datetime | None:
        return None if self.data is None else self.data.new_watermark

    @property
    def source_state(self) -> SourceState | None:
        return self.data.new_source_state if isinstance(self.data, AddData) else None


def consumed_numbers(
    event: Event, standing: Standing, number_of: Callable[[ExecuteTransformInput], int | None]
) -> tuple[int | None, ...] | None:
    """The numbers of the last consumed blocks of the inputs; `number_of` finds those of new blocks."""
    if not isinstance(event, ExecuteTransform):
        return None
    return tuple(
        standing.consumed.get(part.dataset_id, Position()).seq if part.new_block_hash is None else number_of(part)
        for part in event.query_inputs
    )


def carry(standing: Standing, event: Event, consumed: tuple[int | None, ...] | None) -> Carry:
    """The carry of a block with this event."""
    # Most blocks are data blocks, so these stay small and reach the declarations through `key`.
    declares = not isinstance(event, DataEvent)
    return Carry(
        key=standing.key_at,
        data=standing.data_at,
        slice=standing.slice_at,
        state=standing.state_at,
        consumed=consumed,
        dataset=standing.dataset if declares else None,
        inputs=standing.inputs or None if declares else None,
        keys=dict(standing.keys) or None if declares else None,
    )


def advance(standing: Standing, record: Record) -> Standing:
    """The standing after one more block."""
    event, here = record.block.event, record.pointer
    moved = replace(standing, head=here, system_time=record.block.system_time)
    if isinstance(event, DataEvent):
        return replace(
            moved,
            data=event,
            data_at=here,
            slice_at=here if _adds_data(event) else standing.slice_at,
            state_at=standing.state_at if changed_checkpoint(event) is None else here,
            consumed=_consumed(event, record.carry),
        )
    return replace(
        moved,
        key_at=here,
        keys={**standing.keys, event.kind: here},
        dataset=_dataset(event, standing.dataset),
        inputs=_inputs(event, standing.inputs),
    )


def resume(record: Record, read: Reader) -> Standing:
    """The standing, from the last record and at most two more."""
    event, here, carried = record.block.event, record.pointer, record.carry
    if isinstance(event, DataEvent):
        data: Record | None = record
        keyed = read(_present(carried.key, here))
    else:
        data = None if carried.data is None else read(carried.data)
        keyed = record
    key_event = keyed.block.event
    done = None if data is None else data.block.event
    if isinstance(key_event, DataEvent) or not isinstance(done, AddData | ExecuteTransform | None):
        raise ChainBroken(_forged(here))
    return Standing(
        head=here,
        system_time=record.block.system_time,
        dataset=_dataset(key_event, keyed.carry.dataset),
        data=done,
        data_at=None if data is None else data.pointer,
        slice_at=here if _adds_data(event) else carried.slice,
        state_at=carried.state if changed_checkpoint(event) is None else here,
        key_at=keyed.pointer,
        keys={**(keyed.carry.keys or {}), key_event.kind: keyed.pointer},
        inputs=_inputs(key_event, keyed.carry.inputs or ()),
        consumed={} if data is None or done is None else _consumed(done, data.carry),
    )


def _present(pointer: Pointer | None, here: Pointer) -> Pointer:
    if pointer is None:
        raise ChainBroken(_forged(here))
    return pointer


def _forged(here: Pointer) -> Fault:
    return Fault(
        code="carry-forged",
        problem="the pointers that it carries lead to the wrong blocks",
        help="`dagkit ledger verify` names the first damaged block; restore the folder from a backup",
        block=here.seq,
    )


def _adds_data(event: Event) -> bool:
    return isinstance(event, DataEvent) and event.new_data is not None


def _dataset(event: Event, before: Dataset | None) -> Dataset | None:
    return Dataset(id=event.dataset_id, kind=event.dataset_kind) if isinstance(event, Seed) else before


def _inputs(event: Event, before: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(i.dataset_ref for i in event.inputs) if isinstance(event, SetTransform) else before


def _consumed(event: DataEvent, carried: Carry) -> Mapping[str, Position]:
    if isinstance(event, AddData):
        return {}
    numbers = carried.consumed or (None,) * len(event.query_inputs)
    # A forged carry may have fewer numbers than inputs. The replay, which computes the carry again, reports it.
    return {
        part.dataset_id: Position(number, part.last_block_hash, part.last_offset)
        for part, number in zip(event.query_inputs, numbers, strict=False)
    }
