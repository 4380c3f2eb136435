"""Operators: their fields are the keywords of their constructors. Metrics: a field has the type that it begins with."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import Field, PositiveInt

from dagkit import (
    InputPort,
    Operator,
    OutputPort,
    Partition,
    Partitioner,
    PartitioningContext,
    PartitionKeys,
    RowOperator,
    State,
    StatelessPartitioner,
    StreamCodec,
    auto_metric,
    avg,
)
from dagkit_operators import FileSplitterInput, Items, PartWriter


class Line: ...


class Keep(RowOperator):
    input = InputPort(Line)
    output = OutputPort(Line)
    prefix: str
    path: str = Field(default=..., min_length=1)
    limit: PositiveInt = 10
    suffixes: Sequence[str] = Field(default_factory=tuple)

    def process(self, item: Line) -> Iterator[Line]:
        yield item


Keep(prefix=".")
Keep(prefix=".", limit=3, suffixes=["a"])
Keep()  # error: call-arg
Keep(prefix=3)  # error: arg-type
Keep(prefix=".", limt=3)  # error: call-arg
Keep(prefix=".").limit.bit_length()
Keep(prefix=".").prefix.bit_length()  # error: attr-defined
Keep(".")  # error: call-arg


class Idle(RowOperator):
    """It processes nothing."""

    input = InputPort(Line)


Idle()  # error: abstract
InputPort("Line")  # error: arg-type
InputPort(Line, optionel=True)  # error: call-arg
Two = InputPort(Line, optional=True, main=True)


class Handles(Operator):
    left = InputPort(Line)

    @left.process
    def take(self, item: Line) -> None: ...


class Codec(StreamCodec[Line]):
    def to_bytes(self, item: Line) -> bytes:
        return b""

    def from_bytes(self, data: bytes) -> str:  # error: override
        return ""

    def get_partition(self, item: Line) -> int:
        return 0


class Halves(Partitioner):
    def define_partitions(self, partitions: Sequence[Partition], context: PartitioningContext) -> Sequence[Partition]:
        keys = PartitionKeys(1, frozenset({0}))
        return [Partition(partitions[0].operator, {"left": keys}), Partition(partitions[0].operator, {"left": 1})]  # error: dict-item


StatelessPartitioner(3)
StatelessPartitioner("3")
StatelessPartitioner(3.5)  # error: arg-type


class Parse(RowOperator):
    input = InputPort(str)
    output = OutputPort(int)
    seen = State(0)
    rejected = auto_metric(0)
    longest = auto_metric(0, aggregators=[max, avg])

    def process(self, item: str) -> Iterator[int]:
        self.rejected += 1
        self.longest = max(self.longest, len(item))
        self.longest = item  # error: assignment
        yield 1

    @auto_metric
    def so_far(self) -> int:
        return self.seen

    @auto_metric(aggregators=[min, max])
    def each(self) -> float:
        return 1.0

    @property
    @auto_metric
    def called(self) -> str:
        return "parse"


# What is decorated stays what it was.
Parse().so_far().bit_length()
Parse().called.upper()
Parse().rejected.bit_length()
Parse().rejected.upper()  # error: attr-defined
auto_metric(object())  # error: call-overload

# The first argument is the main property.
Items(["a"]).output.emit("b")
Items(["a"]).output.emit(1)  # error: arg-type
FileSplitterInput("in")
FileSplitterInput(["in", Path("more")], block_size=1 << 20)
FileSplitterInput(3)  # error: arg-type
PartWriter[str]("out")
PartWriter[str](3)  # error: arg-type
PartWriter[str]("out", 3)  # error: misc or call-arg
