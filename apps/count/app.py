"""Counts: from a name and a number N, makes pairs of the name with 0, 1, … N - 1; N may be infinite.

This code does not deal with windows, slots or resuming: the engine does.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import PositiveInt

from dagkit import Batch, Config, Constant, Dag, InputPort, Listed, OutputPort, SplittableOperator, StreamingApplication
from dagkit.ranges import OFFSET_INFINITY, OffsetRange, RestrictionTracker, claimed_runs
from dagkit_operators import Items, PartWriter

UpTo = tuple[str, int | None]
"""A name, and the number to count to; None: without end."""


@dataclass(frozen=True, slots=True)
class Counted:
    """A name and one of its numbers."""

    name: str
    number: int

    def __str__(self) -> str:
        return f"{self.name} {self.number}"


class Count(SplittableOperator[UpTo]):
    """Emits every number below N, for each pair of a name and N."""

    kind = "count.count/1"
    pairs = InputPort[UpTo]()
    numbers = OutputPort(Counted)

    at_once: PositiveInt = 1 << 16
    """How many numbers to claim and send at a time."""

    def initial_restriction(self, element: UpTo) -> OffsetRange:
        return OffsetRange(0, OFFSET_INFINITY if element[1] is None else element[1])

    def process(self, element: UpTo, tracker: RestrictionTracker[OffsetRange, int]) -> Iterator[Batch[Counted]]:
        for run in claimed_runs(tracker, self.at_once):
            yield Batch({"name": Constant(element[0], len(run)), "number": Listed(run)}, Counted)


class CountUp(StreamingApplication):
    """Counts in all available partitions; each writes the numbers that it counted."""

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        pairs = dag.add_operator("Pairs", Items[UpTo]())
        count = dag.add_operator("Count", Count())
        writer = dag.add_operator("Writer", PartWriter(format=str))

        dag.add_stream("pairs", pairs.output, count.pairs)
        dag.add_stream("numbers", count.numbers, writer.input)
