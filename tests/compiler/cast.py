"""The cast: payloads and operators that the compiler's tests draw with."""

from collections.abc import Iterator
from typing import Generic, TypeVar

from pydantic import BaseModel, Field, model_validator

from dagkit import DelayOperator, InputOperator, InputPort, Operator, OutputPort, RowOperator, StreamCodec, Unifier
from dagkit.api.partitioning import Partitioner
from dagkit.compiler import compile_application
from dagkit.errors import ApplicationFaults

T = TypeVar("T")


class Animal: ...


class Dog(Animal): ...


class Cat(Animal): ...


class Line: ...


class Word: ...


class Source(InputOperator):
    out = OutputPort(int)


class Step(Operator):
    """Four inputs, none of which must be fed, and two outputs that may stay open."""

    one = InputPort(int, optional=True)
    two = InputPort(int, optional=True)
    three = InputPort(int, optional=True)
    four = InputPort(int, optional=True)
    out = OutputPort(int)
    more = OutputPort(int)

    @one.process
    @two.process
    @three.process
    @four.process
    def process(self, item: int) -> None: ...


class Reader(Operator):
    input = InputPort(int)

    def process(self, item: int) -> None: ...


class Needy(Reader):
    output = OutputPort(int, optional=False)


class Primed(InputOperator):
    input = InputPort(int, optional=True)
    out = OutputPort(int)

    def process(self, item: int) -> None: ...


class Delay(DelayOperator[int]):
    kind = "test.delay/1"


class Lines(InputOperator):
    lines = OutputPort(Line)


class Split(RowOperator):
    lines = InputPort(Line)
    words = OutputPort(Word)

    def process(self, item: Line) -> Iterator[Word]:
        yield Word()


class Count(Operator):
    words = InputPort(Word)

    def process(self, item: Word) -> None: ...


class Keep(RowOperator, Generic[T]):
    input = InputPort[T]()
    output = OutputPort[T]()

    def process(self, item: T) -> Iterator[T]:
        yield item


class Settled(Reader):
    partitionable = False
    output = OutputPort(int)


class Deal(Partitioner):
    """A partitioner that makes so many partitions, deaf to its context."""

    def __init__(self, count):
        self.count = count

    def define_partitions(self, partitions, context):
        return [partitions[0]] * self.count


class Dealer(Reader, Partitioner):
    def define_partitions(self, partitions, context):
        return [partitions[0]] * (context.parallel_count or 2)


class SettledDealer(Dealer):
    partitionable = False


class Whole(Reader):
    checkpointable_within_app_window = False


class WholeSource(Source):
    checkpointable_within_app_window = False


class Nested(BaseModel):
    depth: int = Field(default=1, ge=1)


class Checked(InputOperator):
    count: int = Field(default=2, ge=2)
    label: str = "3"
    nested: Nested = Nested()
    out = OutputPort(int)

    @model_validator(mode="after")
    def _label_ends_like_the_count(self) -> "Checked":
        if self.count > 2 and not self.label.endswith(str(self.count)):
            raise ValueError("label must end like the count")
        return self


class Typed(Reader):
    """Ports that work only where the class of what flows is known."""

    input = InputPort(int, schema_required=True)
    output = OutputPort(int, schema_required=True)


class Old(Reader):
    input = InputPort(int, optional=True)
    output = OutputPort(int)


class New(Old):
    input = InputPort(int, optional=True)
    output = OutputPort(int)


class Parity(StreamCodec[int]):
    """Routes numbers by being odd or even."""

    def to_bytes(self, item: int) -> bytes:
        return str(item).encode()

    def from_bytes(self, data: bytes) -> int:
        return int(data)

    def get_partition(self, item: int) -> int:
        return item % 2

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))


class Sum(Unifier[int]):
    kind = "test.sum/1"

    def process(self, item: int) -> None: ...


class Summed(Reader):
    """Counts in parts that can be added up."""

    out = OutputPort(int, unifier=Sum)


compiled = compile_application


def told(author, conf=None):
    """What is reported of an application: notes if it compiles, and else all that the compiler refuses."""
    try:
        return list(compile_application(author, conf).notes)
    except ApplicationFaults as found:
        return list(found.diagnostics)


def faults(author, conf=None):
    """The errors of an application; none where it compiles."""
    return [d for d in told(author, conf) if d.severity == "error"]


def codes(author, conf=None):
    """The codes of the errors of an application, as they are reported."""
    return [fault.code for fault in faults(author, conf)]


def problems(author, conf=None):
    return [fault.problem for fault in faults(author, conf)]
