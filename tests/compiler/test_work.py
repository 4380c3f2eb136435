"""The wire into a splittable operator: it begins a stage, and several partitions share what comes."""

from collections.abc import Iterator
from typing import Any

import pytest

from dagkit import Dag, InputPort, OperatorContext, OutputPort, SplittableOperator, StatelessPartitioner
from dagkit.plan.model import CutKind, Routing
from tests.compiler.cast import Source, Step, compiled


class Pieces(SplittableOperator[int]):
    """Work that can be split, with a side value."""

    kind = "cast.pieces/1"
    work = InputPort[Any](main=True)
    side = InputPort[Any](optional=True)
    out = OutputPort(int)

    @side.process
    def note(self, item: int) -> None:
        """Nothing is done with it."""

    def process(self, element: int, tracker: Any) -> Iterator[int]:
        yield element


def drawn(senders: int, receivers: int) -> Dag:
    """A step that so many partitions take, before work that so many do, with a side value from another step."""
    dag = Dag()
    source, step, other = dag.add_operator("s", Source()), dag.add_operator("a", Step()), dag.add_operator("o", Step())
    pieces = dag.add_operator("p", Pieces())
    dag.add_stream("source", source.out, step.one, other.one)
    dag.add_stream("work", step.out, pieces.work)
    dag.add_stream("side", other.out, pieces.side)
    for operator, count in ((step, senders), (pieces, receivers)):
        dag.set_operator_attribute(operator, OperatorContext.PARTITIONER, StatelessPartitioner(count))
    return dag


@pytest.mark.parametrize(
    ("senders", "receivers", "routing", "kind", "reason"),
    [
        (1, 1, Routing.STRAIGHT, CutKind.WORK, "p is splittable: work that a window leaves comes back to it"),
        (3, 1, Routing.GATHERED, CutKind.COUNTS, "3 partitions of a send to one of p"),
        (1, 2, Routing.DISTRIBUTED, CutKind.WORK, "p is splittable: its work is distributed over its 2 partitions"),
        (3, 2, Routing.DISTRIBUTED, CutKind.WORK, "p is splittable: its work is distributed over its 2 partitions"),
    ],
)
def test_work_begins_a_stage_and_is_shared(senders, receivers, routing, kind, reason):
    plan = compiled(drawn(senders, receivers)).plan
    (cut,) = [cut for cut in plan.cuts if cut.stream == "work"]
    (sink,) = next(stream.sinks for stream in plan.streams if stream.name == "work")
    assert (sink.routing, cut.kind, cut.reason) == (routing, kind, reason)
    assert cut.exchange == (routing is not Routing.STRAIGHT)


def test_side_values_reach_every_partition():
    plan = compiled(drawn(1, 3)).plan
    (sink,) = next(stream.sinks for stream in plan.streams if stream.name == "side")
    assert sink.routing is Routing.BROADCAST
