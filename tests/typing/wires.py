"""Wires: what may be led where."""

from collections.abc import Iterator, Sequence
from typing import Any

from dagkit import Dag, Inlet, InputOperator, InputPort, Operator, Outlet, OutputPort, RowOperator


class Animal: ...


class Dog(Animal): ...


class Cat(Animal): ...


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


class Pets(InputOperator):
    dogs = OutputPort(Dog)
    animals = OutputPort(Animal)
    either = OutputPort[Dog | Cat]()
    some = OutputPort[Dog | None]()
    packs = OutputPort[list[Dog]]()
    anything = OutputPort[Any]()


class Vet(Operator):
    animals = InputPort(Animal)
    dogs = InputPort(Dog)
    either = InputPort[Dog | Cat]()
    some = InputPort[Dog | None]()
    packs = InputPort[Sequence[Animal]]()
    lists = InputPort[list[Animal]]()
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

# Unions and what may be missing.
dag.add_stream("14", pets.dogs, vet.either)
dag.add_stream("15", pets.either, vet.animals)
dag.add_stream("16", pets.either, vet.dogs)  # error: misc or arg-type
dag.add_stream("17", pets.dogs, vet.some)
dag.add_stream("18", pets.some, vet.dogs)  # error: misc or arg-type

# Generics: as covariant as their own declaration.
dag.add_stream("19", pets.packs, vet.packs)
dag.add_stream("20", pets.packs, vet.lists)  # error: misc or arg-type

# Anything goes anywhere.
dag.add_stream("21", pets.anything, vet.dogs)
dag.add_stream("22", pets.dogs, vet.anything)

# In steps, and near each other.
dag.add_stream("23", pets.dogs).add_sink(vet.dogs).set_locality("NODE_LOCAL")
dag.add_stream("24").set_source(pets.dogs).add_sink(vet.dogs)
dag.add_stream("25").set_source(vet.dogs)  # error: arg-type
dag.add_stream("26").add_sink(pets.dogs)  # error: arg-type
dag.add_stream("27").set_locality(3)  # error: arg-type

# Wires drawn with >> are judged by the compiler.
pets.dogs.named("dogs") >> vet.dogs
lines >> split >> count
