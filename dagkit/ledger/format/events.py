"""The events of a chain, in the vocabulary of the Open Data Fabric's metadata chain.

Offsets of data are closed intervals `[start, end]`. What a transform consumed of its inputs is half-open `(prev, new]`:
`prev` is carried in every event even when nothing new was read, so that the last event is enough to prepare the next.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal, get_args

from pydantic import ConfigDict, Field, JsonValue, StringConstraints

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


class TemporalTable(Wire):
    """An input read as a table that changes over time."""

    name: str
    primary_key: tuple[str, ...]


class Transform(Wire):
    """What an application does, told in the only form the fabric has: an engine and its queries."""

    kind: Literal["Sql"] = "Sql"
    engine: str
    version: str | None = None
    query: str | None = None
    queries: tuple[SqlQueryStep, ...] | None = None
    temporal_tables: tuple[TemporalTable, ...] | None = None


class DataField(Wire):
    """A column: its name, and its type as a name or as an object with a `kind`."""

    name: str
    type: str | Mapping[str, JsonValue]
    extra: Extra | None = None


class DataSchema(Wire):
    """The columns of a chain's data."""

    fields: tuple[DataField, ...]
    extra: Extra | None = None


class AttachmentEmbedded(Wire):
    """A small text under a path."""

    path: str
    content: str


class Attachments(Wire):
    """Texts that travel inside the chain."""

    kind: Literal["Embedded"] = "Embedded"
    items: tuple[AttachmentEmbedded, ...]


class Step(Wire):
    """A step of a source: `kind` says which, the rest is that kind's own."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, JsonValue] = Field(init=False)

    kind: str

    def setting(self, name: str) -> Any:
        """One setting of the step, or None."""
        return (self.model_extra or {}).get(name)


class Seed(Wire):
    """The birth of a chain."""

    kind: Literal["Seed"] = "Seed"
    dataset_id: DatasetId
    dataset_kind: DatasetKind


class SetVocab(Wire):
    """The names of the system columns."""

    kind: Literal["SetVocab"] = "SetVocab"
    offset_column: str | None = None
    operation_type_column: str | None = None
    system_time_column: str | None = None
    event_time_column: str | None = None


class SetDataSchema(Wire):
    """The schema of all data from here on."""

    kind: Literal["SetDataSchema"] = "SetDataSchema"
    raw_arrow_schema: str | None = None
    schema_: DataSchema | None = Field(default=None, alias="schema")


class SetInfo(Wire):
    """What the chain is about."""

    kind: Literal["SetInfo"] = "SetInfo"
    description: str | None = None
    keywords: tuple[str, ...] | None = None


class SetLicense(Wire):
    """The terms of the data."""

    kind: Literal["SetLicense"] = "SetLicense"
    short_name: str
    name: str
    website_url: str
    spdx_id: str | None = None


class SetAttachments(Wire):
    """Texts of our own; facts that the fabric has no event for travel here."""

    kind: Literal["SetAttachments"] = "SetAttachments"
    attachments: Attachments


class SetPollingSource(Wire):
    """Where a root chain's data are fetched from."""

    kind: Literal["SetPollingSource"] = "SetPollingSource"
    fetch: Step
    read: Step
    merge: Step
    prepare: tuple[Step, ...] | None = None
    preprocess: Transform | None = None


class DisablePollingSource(Wire):
    """The chain is no longer fetched."""

    kind: Literal["DisablePollingSource"] = "DisablePollingSource"


class AddPushSource(Wire):
    """Who may push data into a root chain."""

    kind: Literal["AddPushSource"] = "AddPushSource"
    source_name: str
    read: Step
    merge: Step
    preprocess: Transform | None = None


class DisablePushSource(Wire):
    """The named source pushes no more."""

    kind: Literal["DisablePushSource"] = "DisablePushSource"
    source_name: str


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
KeyEvent = (
    Seed
    | SetVocab
    | SetDataSchema
    | SetInfo
    | SetLicense
    | SetAttachments
    | SetPollingSource
    | DisablePollingSource
    | AddPushSource
    | DisablePushSource
    | SetTransform
)
"""Everything that is said once and holds from then on."""

Event = Annotated[DataEvent | KeyEvent, Field(discriminator="kind")]

EVENT_KINDS: tuple[str, ...] = tuple(
    event.model_fields["kind"].default for event in (*get_args(DataEvent), *get_args(KeyEvent))
)
