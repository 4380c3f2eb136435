"""The start of the next append, and the promise with which a crashed window runs again with the same blocks."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from pydantic import JsonValue

from dagkit.ledger.format.block import Pointer
from dagkit.ledger.format.events import (
    AddData,
    Checkpoint,
    DataSlice,
    ExecuteTransform,
    ExecuteTransformInput,
    Extra,
    SourceState,
)
from dagkit.ledger.format.wire import Wire
from dagkit.ledger.rules import InputBlock
from dagkit.ledger.rules.standing import Position, Standing

PROMISE_FORMAT: Literal["dagkit.promise/1"] = "dagkit.promise/1"


class PlannedInput(Wire):
    """The part of one input that a window consumes, and the number of its last block."""

    input: ExecuteTransformInput
    seq: int | None = None


class Promise(Wire):
    """A planned window, as stored until its block is appended."""

    format: Literal["dagkit.promise/1"] = PROMISE_FORMAT
    after: Pointer | None = None
    """The data block that the window follows; key blocks in between do not matter."""
    inputs: tuple[PlannedInput, ...] = ()
    notes: Mapping[str, JsonValue] = {}


@dataclass(frozen=True, slots=True)
class Transaction:
    """Everything needed to prepare the next data block of a chain."""

    after: Pointer | None
    prev_offset: int | None
    checkpoint: Checkpoint | None
    watermark: datetime | None
    source_state: SourceState | None
    inputs: tuple[PlannedInput, ...] = ()
    notes: Mapping[str, Any] = field(default_factory=dict)
    promised: bool = False
    """Whether the window was promised before, by this driver or by one that crashed: it must run as planned."""

    @property
    def next_offset(self) -> int:
        return 0 if self.prev_offset is None else self.prev_offset + 1

    def add_data(
        self,
        new_data: DataSlice | None = None,
        checkpoint: Checkpoint | None = None,
        watermark: datetime | None = None,
        source_state: SourceState | None = None,
        extra: Extra | None = None,
    ) -> AddData:
        """The event of a root chain; omitted values are carried over."""
        return AddData(
            prev_checkpoint=self._prev_checkpoint,
            prev_offset=self.prev_offset,
            new_data=new_data,
            new_checkpoint=checkpoint or self.checkpoint,
            new_watermark=watermark or self.watermark,
            new_source_state=source_state or self.source_state,
            extra=extra,
        )

    def execute(
        self,
        new_data: DataSlice | None = None,
        checkpoint: Checkpoint | None = None,
        watermark: datetime | None = None,
    ) -> ExecuteTransform:
        """The event of a derivative chain; omitted values are carried over."""
        return ExecuteTransform(
            query_inputs=tuple(planned.input for planned in self.inputs),
            prev_checkpoint=self._prev_checkpoint,
            prev_offset=self.prev_offset,
            new_data=new_data,
            new_checkpoint=checkpoint or self.checkpoint,
            new_watermark=watermark or self.watermark,
        )

    @property
    def _prev_checkpoint(self) -> str | None:
        return None if self.checkpoint is None else self.checkpoint.physical_hash


def planned(dataset_id: str, last: Position, upto: InputBlock | None) -> PlannedInput:
    """The part of an input between the last consumed block and `upto`; without new blocks its new fields are None."""
    if upto is None or upto.hash == last.block_hash:
        unmoved = ExecuteTransformInput(dataset_id=dataset_id, prev_block_hash=last.block_hash, prev_offset=last.offset)
        return PlannedInput(input=unmoved, seq=last.seq)
    return PlannedInput(
        input=ExecuteTransformInput(
            dataset_id=dataset_id,
            prev_block_hash=last.block_hash,
            new_block_hash=upto.hash,
            prev_offset=last.offset,
            # An empty interval is written by absence, also if the new blocks add no data.
            new_offset=None if upto.offset == last.offset else upto.offset,
        ),
        seq=upto.seq,
    )


def prepare(standing: Standing, heads: Mapping[str, InputBlock]) -> Transaction:
    """The next transaction of a chain, from its standing and the heads of its inputs."""
    return Transaction(
        after=standing.data_at,
        prev_offset=standing.offset,
        checkpoint=None if standing.data is None else standing.data.new_checkpoint,
        watermark=standing.watermark,
        source_state=standing.source_state,
        inputs=tuple(
            planned(name, standing.consumed.get(name, Position()), heads.get(name)) for name in standing.inputs
        ),
    )
