"""The events of a chain: those of the Open Data Fabric's metadata chain that dagkit writes, and no others.

Offsets of data are closed intervals `[start, end]`. What a transform consumed of its inputs is half-open `(prev, new]`:
`prev` is carried in every event even when nothing new was read, so that the last event is enough to prepare the next.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, JsonValue, StringConstraints

from dagkit.ledger.format.hashing import Multihash
from dagkit.ledger.format.wire import Instant, Offset, Wire

DatasetId = Annotated[str, StringConstraints(pattern=r"^did:odf:[a-zA-Z0-9+/=]+$")]
ExtraName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9.-]+/[a-zA-Z0-9_-]+$")]
Extra = Mapping[ExtraName, JsonValue]
"""Attributes of our own where the fabric leaves room for them, each under a domain's name."""


class DatasetKind(StrEnum):
    """Whether a chain's data come from outside, or from other chains."""

    ROOT = "Root"
    DERIVATIVE = "Derivative"


class OffsetInterval(Wire):
    """The records of a slice, first and last included."""

    start: Offset
    end: Offset


class DataSlice(Wire):
    """The records that one event adds."""

    logical_hash: Multihash
    physical_hash: Multihash
    offset_interval: OffsetInterval
    size: Annotated[int, Field(ge=0)]


class Checkpoint(Wire):
    """The state that one event leaves behind."""

    physical_hash: Multihash
    size: Annotated[int, Field(ge=0)]


class SourceState(Wire):
    """How far a source has been seen, in its own terms."""

    source_name: str
    kind: str
    value: str


class TransformInput(Wire):
    """A chain that a transform reads; `alias` is the name it goes by in the application."""

    dataset_ref: str
    alias: str | None = None


class ExecuteTransformInput(Wire):
    """What one execution consumed of one input: blocks and offsets, both `(prev, new]`."""

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
    """One query; the last has no alias, for its result is the transform's."""

    query: str
    alias: str | None = None


class Transform(Wire):
    """What an application does, told in the only form the fabric has: an engine and its queries."""

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
    """The birth of a chain."""

    kind: Literal["Seed"] = "Seed"
    dataset_id: DatasetId
    dataset_kind: DatasetKind


class SetDataSchema(Wire):
    """The schema of all data from here on."""

    kind: Literal["SetDataSchema"] = "SetDataSchema"
    schema_: DataSchema = Field(alias="schema")


class SetTransform(Wire):
    """What a derivative chain computes, and of which inputs, in order."""

    kind: Literal["SetTransform"] = "SetTransform"
    inputs: tuple[TransformInput, ...]
    transform: Transform


class AddData(Wire):
    """What a root chain's operator discovered."""

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
        return self.prev_offset if self.new_data is None else self.new_data.offset_interval.end


class ExecuteTransform(Wire):
    """One committed window: what it consumed, what came out, what state it left."""

    kind: Literal["ExecuteTransform"] = "ExecuteTransform"
    query_inputs: tuple[ExecuteTransformInput, ...]
    prev_checkpoint: Multihash | None = None
    prev_offset: Offset | None = None
    new_data: DataSlice | None = None
    new_checkpoint: Checkpoint | None = None
    new_watermark: Instant | None = None

    @property
    def last_offset(self) -> int | None:
        return self.prev_offset if self.new_data is None else self.new_data.offset_interval.end


DataEvent = AddData | ExecuteTransform
KeyEvent = Seed | SetDataSchema | SetTransform
"""Everything that is said once and holds from then on."""

Event = Annotated[DataEvent | KeyEvent, Field(discriminator="kind")]
