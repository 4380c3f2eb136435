"""Counts: a pair of a name and a number N becomes the pairs of the name with 0, 1, … up to N - 1; N may be infinite.

Nothing here knows of windows, of slots, or of who goes on where somebody was stopped.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import PositiveInt

from dagkit import Batch, Config, Constant, Dag, InputPort, Listed, OutputPort, SplittableOperator, StreamingApplication
from dagkit.ranges import OFFSET_INFINITY, OffsetRange, RestrictionTracker, claimed_runs
from dagkit_operators import Items, PartWriter

UpTo = tuple[str, int | None]
"""A name, and how far it is counted; None: for ever."""


@dataclass(frozen=True, slots=True)
class Counted:
    """A name with one of its numbers."""

    name: str
    number: int

    def __str__(self) -> str:
        return f"{self.name} {self.number}"


class Count(SplittableOperator[UpTo]):
    """Every number below N, for each pair of a name and N."""

    kind = "count.count/1"
    pairs = InputPort[UpTo]()
    numbers = OutputPort(Counted)

    at_once: PositiveInt = 1 << 16
    """Numbers that are claimed, and sent, at a time."""

    def initial_restriction(self, element: UpTo) -> OffsetRange:
        return OffsetRange(0, OFFSET_INFINITY if element[1] is None else element[1])

    def process(self, element: UpTo, tracker: RestrictionTracker[OffsetRange, int]) -> Iterator[Batch[Counted]]:
        for run in claimed_runs(tracker, self.at_once):
            yield Batch({"name": Constant(element[0], len(run)), "number": Listed(run)}, Counted)


class CountUp(StreamingApplication):
    """Numbers, counted by as many as there are, and written by those who counted them."""

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        pairs = dag.add_operator("Pairs", Items[UpTo]())
        count = dag.add_operator("Count", Count())
        writer = dag.add_operator("Writer", PartWriter(format=str))

        dag.add_stream("pairs", pairs.output, count.pairs)
        dag.add_stream("numbers", count.numbers, writer.input)
