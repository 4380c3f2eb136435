"""The verdicts on state are what a launch does with it."""

from collections.abc import Callable

import pytest

from dagkit import Config, Dag, InputPort, Operator, OperatorContext, State, StatelessPartitioner
from dagkit.compiler import compile_application
from dagkit.engine.history.state_verdicts import Fate, verdicts
from dagkit.engine.program.lower import program_of
from dagkit.errors import RunFailure
from tests.engine.cast import Collect, Desk, Script


class Summing(Operator):
    """Remembers a sum."""

    kind = "verdicts.summing/1"
    input = InputPort(int)
    total = State(0)

    def process(self, item: int) -> None:
        self.total += item


class Counting(Operator):
    """Remembers a number of items."""

    kind = "verdicts.counting/1"
    input = InputPort(int)
    count = State(0)

    def process(self, item: int) -> None:
        self.count += 1


def sent_to(sinks: dict[str, type[Operator]], source: str = "script", partitions: int = 1) -> Callable[..., None]:
    def draw(dag: Dag, conf: object) -> None:
        script = dag.add_operator(source, Script(looks=((1,), (2,))))
        for name, kind in sinks.items():
            sink = dag.add_operator(name, kind())
            dag.set_operator_attribute(sink, OperatorContext.PARTITIONER, StatelessPartitioner(partitions))
            script >> sink

    return draw


BEFORE = sent_to({"sum": Summing, "collect": Collect})
CARRIED = [("script", Fate.CARRIED, None), ("sum", Fate.CARRIED, None)]


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (BEFORE, [("collect", Fate.CARRIED, None), *CARRIED]),
        (sent_to({"sum": Summing}), [("collect", Fate.DROPPED, None), *CARRIED]),
        (
            sent_to({"sum": Summing, "collect": Collect, "count": Counting}),
            [("collect", Fate.CARRIED, None), ("count", Fate.NEW, None), *CARRIED],
        ),
        (
            sent_to({"sum": Counting, "collect": Collect}),
            [("collect", Fate.CARRIED, None), ("script", Fate.CARRIED, None), ("sum", Fate.DROPPED, None)],
        ),
    ],
    ids=["the same", "an operator is gone", "an operator is new", "an operator declares other state"],
)
def test_state_is_carried_or_dropped(tmp_path, after, expected):
    Desk(tmp_path, BEFORE).run()
    desk = Desk(tmp_path, after)
    program = program_of(compile_application(after, Config.of({})))
    assert [(each.operator, each.fate, each.code) for each in verdicts(program, desk.ledger())] == expected
    desk.run()


@pytest.mark.parametrize(
    ("after", "operator"),
    [
        (sent_to({"total": Summing, "collect": Collect}), "total"),
        (sent_to({"sum": Summing, "collect": Collect}, source="numbers"), "numbers"),
    ],
    ids=["a renamed operator", "a renamed input operator"],
)
def test_what_a_launch_refuses_is_refused_with_its_code(tmp_path, after, operator):
    Desk(tmp_path, BEFORE).run()
    desk = Desk(tmp_path, after)
    first = verdicts(program_of(compile_application(after, Config.of({}))), desk.ledger())[0]
    with pytest.raises(RunFailure) as refused:
        desk.run()
    assert (first.operator, first.fate, first.code) == (operator, Fate.REFUSED, refused.value.code)
    assert first.detail == refused.value.problem


def test_state_without_a_partition_to_take_it_is_refused(tmp_path):
    Desk(tmp_path, sent_to({"sum": Summing}, partitions=2)).run()
    desk = Desk(tmp_path, sent_to({"sum": Summing}))
    first = verdicts(program_of(compile_application(desk.draw, Config.of({}))), desk.ledger())[0]
    with pytest.raises(RunFailure) as refused:
        desk.run()
    assert (first.operator, first.fate, first.code) == ("sum", Fate.REFUSED, refused.value.code)
