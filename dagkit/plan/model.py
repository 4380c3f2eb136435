"""The plan: what will run, as plain frozen data. Writing it to disk and reading it gives an equal plan.

Operators and streams have the same JSON form as in declarative applications (`class`, `operatorName`, `portName`), so
the logical half of a plan is itself an application that can be launched.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

PLAN_SCHEMA: Literal["dagkit.plan/1"] = "dagkit.plan/1"


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True)


class Role(StrEnum):
    """How the engine treats an operator."""

    INPUT = "input"
    OPERATOR = "operator"
    DELAY = "delay"


class Place(StrEnum):
    """Where a stage runs."""

    DRIVER = "driver"
    WORKERS = "workers"


class Routing(StrEnum):
    """How the engine chooses the partition of the sink that an item goes to."""

    STRAIGHT = "straight"
    """Partition i sends to partition i."""
    DISTRIBUTED = "distributed"
    """Each item goes to one partition. Work queued on the driver goes to a partition that has time for it."""
    GATHERED = "gathered"
    """Every partition sends to the only partition of the sink."""
    KEYED = "keyed"
    """Each item goes to the partition that owns its routing code under the mask."""
    BROADCAST = "broadcast"
    """Every partition gets every item."""
    DELAYED = "delayed"
    """The item arrives in the next window."""

    @classmethod
    def _missing_(cls, value: object) -> "Routing | None":
        """Read plans that an earlier dagkit has saved."""
        return cls.DISTRIBUTED if value == FORMERLY_DISTRIBUTED else None


FORMERLY_DISTRIBUTED = "dealt"
"""The name of `Routing.DISTRIBUTED` in older plans, and in fingerprints, which ledgers keep."""


class Why(_Value):
    """What decided a number: the default, code, a property, or another operator's count."""

    source: Literal["default", "code", "property", "operator", "parallel"]
    text: str


class Keys(_Value):
    """The keys that a partition owns at one input."""

    mask: int
    keys: tuple[int, ...]


class PlannedPartition(_Value):
    """One physical instance: its number, and the keys that it owns at each keyed input."""

    index: int
    keys: Mapping[str, Keys] = {}
    properties: Mapping[str, Any] = Field(default={}, exclude_if=lambda properties: not properties)
    """The properties that differ from those of the operator."""


def known_payload(payload: str) -> str:
    """The payload for readers; empty if it is a type variable, such as T: then nothing is known about the items."""
    return "" if re.fullmatch(r"[A-Z](_co|_contra)?", payload) else payload


class PlannedPort(_Value):
    """A port with its resolved payload type."""

    name: str
    type: Literal["input", "output"]
    payload: str
    connected: bool
    attributes: Mapping[str, Any] = {}


class PlannedOperator(_Value):
    """One operator: its kind, its configuration, and its partitions."""

    name: str
    kind: str
    class_: str = Field(validation_alias="class", serialization_alias="class")
    role: Role
    properties: Mapping[str, Any] = {}
    attributes: Mapping[str, Any] = {}
    ports: tuple[PlannedPort, ...] = ()
    partitions: tuple[PlannedPartition, ...]
    why: Why
    parallel_with: str | None = None
    """The operator whose partitions this one mirrors: the head of its parallel chain."""
    stage: str

    @property
    def count(self) -> int:
        return len(self.partitions)


class PlannedEnd(_Value):
    """A port of an operator, as a stream names it."""

    operator: str = Field(validation_alias="operatorName", serialization_alias="operatorName")
    port: str = Field(validation_alias="portName", serialization_alias="portName")

    def __str__(self) -> str:
        return f"{self.operator}.{self.port}"


class PlannedUnifier(_Value):
    """An operator that the planner inserts behind an output, to merge the items of several partitions."""

    name: str
    kind: str
    level: int
    """0 reads partitions; 1 and above read the unifiers of a cascade."""
    inputs: tuple[str, ...]
    serves: PlannedEnd | None = None
    """The sink that it feeds. None for the inner unifiers of a cascade, which feed other unifiers."""
    partition: int | None = None
    """The partition of the sink that it feeds, if each partition has its own unifier."""
    attributes: Mapping[str, Any] = {}


class PlannedSink(PlannedEnd):
    """A sink of a stream, and how items reach its partitions."""

    routing: Routing
    parallel: bool = False


class PlannedStream(_Value):
    """One source, its sinks, and the unifiers between them."""

    name: str
    source: PlannedEnd
    sinks: tuple[PlannedSink, ...]
    locality: str | None = None
    payload: str
    fields: tuple[str, ...] = Field(default=(), exclude_if=lambda fields: not fields)
    """The fields of its records, each with its type, if an author wrote their class."""
    unifiers: tuple[PlannedUnifier, ...] = ()


class Stage(_Value):
    """Operators that run as one, without a queue, pickling or dispatch between them."""

    name: str
    operators: tuple[str, ...]
    place: Place
    level: int
    """How many exchanges lie above it; all stages of one level run together."""
    slots: int

    @model_validator(mode="before")
    @classmethod
    def _without_batches(cls, data: Any) -> Any:
        """Read plans that an earlier dagkit has saved, which named the operators that take batches."""
        return {name: value for name, value in data.items() if name != "batches"} if isinstance(data, dict) else data


class CutKind(StrEnum):
    """Why two connected operators are in different stages."""

    DRIVER = "driver"
    FAN_OUT = "fan-out"
    JOIN = "join"
    COUNTS = "counts"
    KEYS = "keys"
    UNIFIER = "unifier"
    DELAY = "delay"
    WORK = "work"


class Cut(_Value):
    """A wire between two stages, with the reason why they are not one stage."""

    stream: str
    source: PlannedEnd
    sink: PlannedEnd
    kind: CutKind
    reason: str
    exchange: bool
    """Whether items change partitions here, which costs a shuffle."""


class Plan(_Value):
    """An application as it will run."""

    schema_: Literal["dagkit.plan/1"] = Field(
        default=PLAN_SCHEMA, validation_alias="schema", serialization_alias="schema"
    )
    application: str
    attributes: Mapping[str, Any] = {}
    operators: tuple[PlannedOperator, ...]
    """In the order in which they run: upstream first, ties by name."""
    streams: tuple[PlannedStream, ...]
    stages: tuple[Stage, ...]
    cuts: tuple[Cut, ...]

    @cached_property
    def by_name(self) -> Mapping[str, PlannedOperator]:
        return {operator.name: operator for operator in self.operators}

    @property
    def levels(self) -> int:
        """How many levels run one after the other: one more than the exchanges on the longest path."""
        return 1 + max((stage.level for stage in self.stages), default=0)
