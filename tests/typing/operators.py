"""Operators: their fields are the keywords of their constructors."""

from collections.abc import Iterator, Sequence

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
    StatelessPartitioner,
    StreamCodec,
)


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
