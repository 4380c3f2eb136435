"""The events of a chain: the subset of the Open Data Fabric's events that dagkit writes.

Offsets of data are closed intervals `[start, end]`. The consumed part of an input is half-open, `(prev, new]`: every
event carries `prev`, even when nothing new was read, so that the last event is enough to prepare the next.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, JsonValue, NonNegativeInt, StringConstraints

from dagkit.ledger.format.hashing import Multihash
from dagkit.ledger.format.wire import Instant, Offset, Wire

DatasetId = Annotated[str, StringConstraints(pattern=r"^did:odf:[a-zA-Z0-9+/=]+$")]
ExtraName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9.-]+/[a-zA-Z0-9_-]+$")]
Extra = Mapping[ExtraName, JsonValue]
"""dagkit's own attributes, where the fabric allows extensions; each name begins with a domain."""


class DatasetKind(StrEnum):
    """Whether a chain's data come from outside or from other chains."""

    ROOT = "Root"
    DERIVATIVE = "Derivative"


class OffsetInterval(Wire):
    """The offsets of a slice; both ends are included."""

    start: Offset
    end: Offset


class DataSlice(Wire):
    """The records that one event adds."""

    logical_hash: Multihash
    physical_hash: Multihash
    offset_interval: OffsetInterval
    size: NonNegativeInt

    @property
    def first(self) -> int:
        """The offset of the first record."""
        return self.offset_interval.start

    @property
    def last(self) -> int:
        """The offset of the last record."""
        return self.offset_interval.end


class Checkpoint(Wire):
    """The state after one event."""

    physical_hash: Multihash
    size: NonNegativeInt


class SourceState(Wire):
    """How far a source has been read, in the source's own notation."""

    source_name: str
    kind: str
    value: str


class TransformInput(Wire):
    """A chain that a transform reads; `alias` is its name in the application."""

    dataset_ref: str
    alias: str | None = None


class ExecuteTransformInput(Wire):
    """The part of one input that one execution consumed: blocks and offsets, both `(prev, new]`."""

    dataset_id: DatasetId
    prev_block_hash: Multihash | None = None
    new_block_hash: Multihash | None = None
    prev_offset: Offset | None = None
    new_offset: Offset | None = None

    @property
    def last_block_hash(self) -> Multihash | None:
        return self.new_block_hash or self.prev_block_hash

    @property
    def last_offset(self) -> int | None:
        return self.prev_offset if self.new_offset is None else self.new_offset


class SqlQueryStep(Wire):
    """One query; the last has no alias, because its result is the transform's."""

    query: str
    alias: str | None = None


class Transform(Wire):
    """What an application does, in the form that the fabric requires: an engine and its queries."""

    kind: Literal["Sql"] = "Sql"
    engine: str
    version: str | None = None
    queries: tuple[SqlQueryStep, ...]


class DataField(Wire):
    """A column: its name, and its type as a name or as an object with a `kind`."""

    name: str
    type: str | Mapping[str, JsonValue]
    extra: Extra | None = None


class DataSchema(Wire):
    """The columns of a chain's data."""

    fields: tuple[DataField, ...]
    extra: Extra | None = None


class Seed(Wire):
    """The first event of a chain: its identity and kind."""

    kind: Literal["Seed"] = "Seed"
    dataset_id: DatasetId
    dataset_kind: DatasetKind


class SetDataSchema(Wire):
    """The schema of all data from here on."""

    kind: Literal["SetDataSchema"] = "SetDataSchema"
    schema_: DataSchema = Field(alias="schema")


class SetTransform(Wire):
    """What a derivative chain computes, and from which inputs, in order."""

    kind: Literal["SetTransform"] = "SetTransform"
    inputs: tuple[TransformInput, ...]
    transform: Transform


class AddData(Wire):
    """The work that a root chain's operator discovered."""

    kind: Literal["AddData"] = "AddData"
    prev_checkpoint: Multihash | None = None
    prev_offset: Offset | None = None
    new_data: DataSlice | None = None
    new_checkpoint: Checkpoint | None = None
    new_watermark: Instant | None = None
    new_source_state: SourceState | None = None
    extra: Extra | None = None

    @property
    def last_offset(self) -> int | None:
        return self.prev_offset if self.new_data is None else self.new_data.last


class ExecuteTransform(Wire):
    """One committed window: the inputs consumed, the data added, the state after it."""

    kind: Literal["ExecuteTransform"] = "ExecuteTransform"
    query_inputs: tuple[ExecuteTransformInput, ...]
    prev_checkpoint: Multihash | None = None
    prev_offset: Offset | None = None
    new_data: DataSlice | None = None
    new_checkpoint: Checkpoint | None = None
    new_watermark: Instant | None = None

    @property
    def last_offset(self) -> int | None:
        return self.prev_offset if self.new_data is None else self.new_data.last


DataEvent = AddData | ExecuteTransform
"""Events with data, a checkpoint and a watermark."""
KeyEvent = Seed | SetDataSchema | SetTransform
"""Events that declare something which holds until it is declared again."""

Event = Annotated[DataEvent | KeyEvent, Field(discriminator="kind")]


def changed_checkpoint(event: Event) -> Checkpoint | None:
    """The checkpoint that an event leaves; None if it carries the one before, or has none."""
    if not isinstance(event, DataEvent) or event.new_checkpoint is None:
        return None
    return None if event.new_checkpoint.physical_hash == event.prev_checkpoint else event.new_checkpoint
