"""The plan: what will run, as plain frozen data. It goes to disk and comes back equal.

Operators and streams are written as declarative applications write them (`class`, `operatorName`, `portName`), so
that the logical half of a plan is itself an application that can be launched.
"""

from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

PLAN_SCHEMA: Literal["dagkit.plan/1"] = "dagkit.plan/1"


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True)


class Role(StrEnum):
    """What an operator is to the engine."""

    INPUT = "input"
    OPERATOR = "operator"
    DELAY = "delay"


class Place(StrEnum):
    """Where a stage runs."""

    DRIVER = "driver"
    WORKERS = "workers"


class Routing(StrEnum):
    """How items find their partition at the far end of a wire."""

    STRAIGHT = "straight"
    """Partition i sends to partition i."""
    DEALT = "dealt"
    """Each item goes to one partition; work that waits on the driver, to whichever has time for it."""
    GATHERED = "gathered"
    """Every partition sends to the only one there is."""
    KEYED = "keyed"
    """The item's code, masked, names the partition that owns it."""
    BROADCAST = "broadcast"
    """Every partition gets every item."""
    DELAYED = "delayed"
    """The item comes round in the next window."""


class Why(_Value):
    """Who decided a number: the default, code, a property, or another operator's count."""

    source: Literal["default", "code", "property", "operator", "parallel"]
    text: str


class Keys(_Value):
    """The keys that a partition owns at one input."""

    mask: int
    keys: tuple[int, ...]


class PlannedPartition(_Value):
    """One physical instance: its number, and what it owns at each keyed input."""

    index: int
    keys: Mapping[str, Keys] = {}
    properties: Mapping[str, Any] = {}
    """What it is configured with otherwise than its operator is; written down only where there is such."""

    @model_serializer(mode="wrap")
    def _without_what_it_shares(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        data: dict[str, Any] = write(self)
        return data if self.properties else {name: value for name, value in data.items() if name != "properties"}


class PlannedPort(_Value):
    """A port with the payload that was settled for it."""

    name: str
    type: Literal["input", "output"]
    payload: str
    connected: bool
    attributes: Mapping[str, Any] = {}


class PlannedOperator(_Value):
    """One operator: what it is, how it is configured, and as how many partitions it runs."""

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
    """One merging operator that the planner put behind an output: what it reads, and whom it serves."""

    name: str
    kind: str
    level: int
    """0 reads partitions; 1 and up read unifiers of a cascade."""
    inputs: tuple[str, ...]
    serves: PlannedEnd | None = None
    """The sink that it stands before; a cascade's inner unifiers stand before other unifiers."""
    partition: int | None = None
    """The only partition of the sink that it serves, where each has a unifier of its own."""
    attributes: Mapping[str, Any] = {}


class PlannedSink(PlannedEnd):
    """The far end of a stream, and how items find their partition there."""

    routing: Routing
    parallel: bool = False


class PlannedStream(_Value):
    """One source, its sinks, and the unifiers between them."""

    name: str
    source: PlannedEnd
    sinks: tuple[PlannedSink, ...]
    locality: str | None = None
    payload: str
    unifiers: tuple[PlannedUnifier, ...] = ()


class Stage(_Value):
    """Operators that run as one: inside it there is no queue, no pickling and no dispatch."""

    name: str
    operators: tuple[str, ...]
    place: Place
    level: int
    """How many exchanges lie above it; all stages of one level run together."""
    slots: int
    batches: tuple[str, ...] = ()
    """The operators that take many items at once; from the first that does not, items go on one by one."""


class CutKind(StrEnum):
    """Why two operators are not one stage."""

    DRIVER = "driver"
    FAN_OUT = "fan-out"
    JOIN = "join"
    COUNTS = "counts"
    KEYS = "keys"
    UNIFIER = "unifier"
    DELAY = "delay"
    WORK = "work"


class Cut(_Value):
    """A wire that stages do not cross, and why."""

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
        """How many levels run one after the other; one more than the exchanges of the longest way."""
        return 1 + max((stage.level for stage in self.stages), default=0)
