"""Drawing: what may be led where, what attributes and modules take, and what generic operators carry."""

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from dagkit import (
    Config,
    Dag,
    DagContext,
    DelayOperator,
    Inlet,
    InputOperator,
    InputPort,
    Locality,
    Module,
    Operator,
    OperatorContext,
    Outlet,
    OutputPort,
    PortContext,
    ProcessingMode,
    RowOperator,
    StatelessPartitioner,
    StreamingApplication,
)

T = TypeVar("T")


class Animal: ...
class Dog(Animal): ...
class Line: ...
class Word: ...


class Lines(InputOperator):
    lines = OutputPort(Line)


class Split(RowOperator):
    lines = InputPort(Line)
    words = OutputPort(Word)

    def process(self, item: Line) -> Iterator[Word]:
        yield Word()


class Count(Operator):
    words = InputPort(Word)


class Keep(RowOperator, Generic[T]):
    input = InputPort[T]()
    output = OutputPort[T]()
    keeps: Callable[[T], bool]

    def process(self, item: T) -> Iterator[T]:
        if self.keeps(item):
            yield item


class KeepLines(Keep[Line]):
    """The brackets may stand in the class."""


class Pets(InputOperator):
    dogs = OutputPort(Dog)
    animals = OutputPort(Animal)
    anything = OutputPort[Any]()


class Vet(Operator):
    animals = InputPort(Animal)
    dogs = InputPort(Dog)
    anything = InputPort[Any]()
    objects = InputPort(object)


dag = Dag()
lines = dag.add_operator("lines", Lines())
split = dag.add_operator("split", Split())
count = dag.add_operator("count", Count())
pets = dag.add_operator("pets", Pets())
vet = dag.add_operator("vet", Vet())

# An operator comes back as what it is.
same: Split = split
inlet: Inlet[Line] = split.lines
outlet: Outlet[Word] = split.words
declared: InputPort[Line] = Split.lines
wrong: Inlet[Word] = split.lines  # error: assignment
narrower: Outlet[Dog] = pets.animals  # error: assignment
wider: Outlet[Animal] = pets.dogs
stricter: Inlet[Dog] = vet.animals
looser: Inlet[Animal] = vet.dogs  # error: assignment

# The same type, and not.
dag.add_stream("1", lines.lines, split.lines)
dag.add_stream("2", split.words, count.words)
dag.add_stream("3", split.words, split.lines)  # error: misc or arg-type
dag.add_stream("4", lines.lines, split.lines, count.words)  # error: misc or arg-type
dag.add_stream("5", split.lines, count.words)  # error: arg-type
dag.add_stream("6", lines.lines, split.words)  # error: arg-type
dag.add_stream("7", lines, split.lines)  # error: arg-type
dag.add_stream(8, lines.lines)  # error: arg-type
dag.add_stream("9", lines.line)  # error: attr-defined

# Subclasses go where their base is read, and not the other way.
dag.add_stream("10", pets.dogs, vet.animals)
dag.add_stream("11", pets.dogs, vet.dogs, vet.animals)
dag.add_stream("12", pets.animals, vet.dogs)  # error: misc or arg-type
dag.add_stream("13", pets.dogs, vet.objects)

# Anything goes anywhere.
dag.add_stream("21", pets.anything, vet.dogs)
dag.add_stream("22", pets.dogs, vet.anything)

# In steps, and near each other.
dag.add_stream("23", pets.dogs).add_sink(vet.dogs).set_locality("NODE_LOCAL")
dag.add_stream("24").set_source(pets.dogs).add_sink(vet.dogs)
dag.add_stream("25").set_source(vet.dogs)  # error: arg-type
dag.add_stream("26").add_sink(pets.dogs)  # error: arg-type
dag.add_stream("27").set_locality(3)  # error: arg-type
dag.add_stream("near", pets.dogs, vet.dogs).set_locality(Locality.NODE_LOCAL)

# Wires drawn with >> are judged by the compiler.
pets.dogs.named("dogs") >> vet.dogs
lines >> split >> count

# A generic operator carries what stands between its brackets.
keep = dag.add_operator("keep", Keep[Line](keeps=lambda line: True))
dag.add_stream("31", lines.lines, keep.input)
dag.add_stream("32", keep.output, keep.input)
dag.add_stream("33", keep.output, count.words)  # error: misc or arg-type
words = dag.add_operator("words", Keep[Word](keeps=lambda word: True))
dag.add_stream("34", words.output, count.words)
dag.add_stream("35", lines.lines, words.input)  # error: misc or arg-type
own = dag.add_operator("own", KeepLines(keeps=lambda line: True))
dag.add_stream("36", lines.lines, own.input)
dag.add_stream("37", own.output, count.words)  # error: misc or arg-type
delay = dag.add_operator("delay", DelayOperator[Word]())
dag.add_stream("38", delay.output, count.words)
dag.add_stream("39", lines.lines, delay.input)  # error: misc or arg-type

# Each attribute takes values of its own type, on what bears it.
dag.set_attribute(DagContext.STREAMING_WINDOW_SIZE_MILLIS, 100)
dag.set_attribute(DagContext.STREAMING_WINDOW_SIZE_MILLIS, "x")  # error: misc or arg-type
dag.set_attribute(DagContext.APPLICATION_ID, None)
dag.set_attribute("DEBUG", True)  # error: arg-type
dag.set_operator_attribute(vet, OperatorContext.PARTITIONER, StatelessPartitioner(3))
dag.set_operator_attribute(vet, OperatorContext.PROCESSING_MODE, ProcessingMode.AT_MOST_ONCE)
dag.set_operator_attribute(vet, OperatorContext.PROCESSING_MODE, "AT_MOST_ONCE")  # error: misc or arg-type
dag.set_operator_attribute(vet, OperatorContext.APPLICATION_WINDOW_COUNT, None)  # error: misc or arg-type
dag.set_operator_attribute("vet", OperatorContext.STATELESS, True)  # error: arg-type
dag.set_operator_attribute(vet, OperatorContext.STATLESS, True)  # error: attr-defined
dag.set_input_port_attribute(vet.dogs, PortContext.PARTITION_PARALLEL, True)
dag.set_input_port_attribute(vet.dogs, PortContext.PARTITION_PARALLEL, 3)  # error: misc or arg-type
dag.set_input_port_attribute(pets.dogs, PortContext.PARTITION_PARALLEL, True)  # error: arg-type
dag.set_output_port_attribute(pets.dogs, PortContext.UNIFIER_LIMIT, 2)
dag.set_output_port_attribute(vet.dogs, PortContext.UNIFIER_LIMIT, 2)  # error: arg-type
dag.set_unifier_attribute(pets.dogs, OperatorContext.TIMEOUT_WINDOW_COUNT, 2)
dag.set_unifier_attribute(pets.dogs, OperatorContext.TIMEOUT_WINDOW_COUNT, "x")  # error: misc or arg-type


class Reads(Module):
    """A port stands behind a port of the same direction and type."""

    lines = InputPort(Line)
    words = OutputPort(Word)

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        split = dag.add_operator("split", Split())
        dag.expose(self.lines, split.lines)
        dag.expose(self.words, split.words)
        dag.expose(self.lines, split.words)  # error: call-overload
        dag.expose(self.words, split.lines)  # error: call-overload


class App(StreamingApplication):
    minutes: int = 1

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        reads = dag.add_module("reads", Reads())
        split = dag.add_operator("split", Split())
        dag.add_stream("lines", reads.words, split.lines)  # error: misc or arg-type
        limit: int = conf.read("limit", int, 3)
        perhaps: int | None = conf.read("limit", int)
        surely: int = conf.read("limit", int)  # error: assignment


class Unfinished(StreamingApplication):
    """It draws nothing."""


Unfinished()  # error: abstract
App(minutes=3)
App(minute=3)  # error: call-arg
