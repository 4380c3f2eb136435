"""The example CountFn of Beam's document about splittable functions, line by line."""

from typing import Any

from dagkit import InputPort, OutputPort, SplittableOperator
from dagkit.ranges import OffsetRange
from dagkit.testing import check_every_split_of
from dagkit_operators import Items, Map
from tests.engine.cast import Collect, Desk, arrived


class CountFn(SplittableOperator[Any, Any]):
    """Counts from 0 to the number that comes with a key."""

    kind = "documents.count-fn/1"
    elements = InputPort[Any]()
    numbers = OutputPort(tuple)

    def process(self, element, tracker):
        for i in range(*tracker.current_restriction()):
            if not tracker.try_claim(i):
                return
            yield element[0], i

    def initial_restriction(self, element):
        return (0, element[1])


def test_it_counts_whatever_is_split(tmp_path):
    def graph(dag, conf):
        items = dag.add_operator("items", Items(items=[["a", 30], ["b", 4]]))
        text = dag.add_operator("text", Map(lambda pair: f"{pair[0]}{pair[1]}"))
        items >> dag.add_operator("count", CountFn()) >> text >> dag.add_operator("collect", Collect())

    assert sorted(arrived(Desk(tmp_path, graph).run())) == sorted(
        [*(f"a{number}" for number in range(30)), *(f"b{number}" for number in range(4))]
    )
    check_every_split_of(CountFn(), ["a", 30])


def test_a_restriction_is_a_pair():
    start, stop = OffsetRange(3, 30)
    assert (start, stop) == (3, 30)
