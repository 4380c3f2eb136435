"""The wire into a splittable operator: it begins a stage, and several partitions share what comes."""

from collections.abc import Iterator
from typing import Any

import pytest

from dagkit import InputPort, OutputPort, SplittableOperator
from dagkit.plan.model import CutKind, Routing
from tests.compiler.cast import compiled
from tests.compiler.sketches import sketch


class Pieces(SplittableOperator[int]):
    """Work that can be split, with a side value."""

    kind = "cast.pieces/1"
    work = InputPort[Any](main=True)
    side = InputPort[Any](optional=True)
    out = OutputPort(int)

    @side.process
    def note(self, item: int) -> None: ...

    def process(self, element: int, tracker: Any) -> Iterator[int]:
        yield element


def planned(senders, receivers, stream):
    """A step of so many partitions, before work of so many, with a side value: the sink of a stream, and its cuts."""
    plan = compiled(sketch(f"s>a*{senders} s>o a>p.work*{receivers} o>p.side", p=Pieces)).plan
    (sink,) = next(planned.sinks for planned in plan.streams if planned.name == stream)
    return sink, [cut for cut in plan.cuts if cut.stream == stream]


SHARED = "p is splittable: its work is distributed over its 2 partitions"


@pytest.mark.parametrize(
    ("senders", "receivers", "routing", "kind", "reason"),
    [
        (1, 1, Routing.STRAIGHT, CutKind.WORK, "p is splittable: work that a window leaves comes back to it"),
        (3, 1, Routing.GATHERED, CutKind.COUNTS, "3 partitions of a send to one of p"),
        (1, 2, Routing.DISTRIBUTED, CutKind.WORK, SHARED),
        (3, 2, Routing.DISTRIBUTED, CutKind.WORK, SHARED),
    ],
)
def test_work_begins_a_stage_and_is_shared(senders, receivers, routing, kind, reason):
    sink, (cut,) = planned(senders, receivers, "a")
    assert (sink.routing, cut.kind, cut.reason) == (routing, kind, reason)
    assert cut.exchange == (routing is not Routing.STRAIGHT)


def test_side_values_reach_every_partition():
    assert planned(1, 3, "o")[0].routing is Routing.BROADCAST
