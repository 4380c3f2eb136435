"""The verdicts on state are what a launch does with it."""

import pytest

from dagkit import Config, Operator
from dagkit.compiler import compile_application
from dagkit.engine.program.lower import program_of
from dagkit.engine.record.state_verdicts import Fate, Verdict, verdicts
from dagkit.errors import RunFailure
from tests.engine.cast import Collect, Desk, Draw, Script
from tests.engine.parts.cast import Tally, Total, chained


def sent_to(source: str = "script", partitions: int = 1, **sinks: Operator) -> Draw:
    script = Script(looks=((1,), (2,)))
    return chained(*({source: script, name: sink} for name, sink in sinks.items()), **dict.fromkeys(sinks, partitions))


def verdicts_on(desk: Desk) -> list[Verdict]:
    return verdicts(program_of(compile_application(desk.draw, Config.of({}))), desk.ledger())


BEFORE = sent_to(sum=Total(), collect=Collect())


@pytest.mark.parametrize(
    ("after", "fates"),
    [
        (BEFORE, {}),
        (sent_to(sum=Total()), {"collect": Fate.DROPPED}),
        (sent_to(sum=Total(), collect=Collect(), count=Tally()), {"count": Fate.NEW}),
        (sent_to(sum=Tally(), collect=Collect()), {"sum": Fate.DROPPED}),
    ],
    ids=["the same", "an operator is gone", "an operator is new", "an operator declares other state"],
)
def test_state_is_carried_or_dropped(tmp_path, after, fates):
    Desk(tmp_path, BEFORE).run()
    desk = Desk(tmp_path, after)
    expected = dict.fromkeys(("script", "sum", "collect"), Fate.CARRIED) | fates
    assert [(each.operator, each.fate, each.code) for each in verdicts_on(desk)] == [
        (name, fate, None) for name, fate in sorted(expected.items())
    ]
    desk.run()


@pytest.mark.parametrize(
    ("before", "after", "operator"),
    [
        (BEFORE, sent_to(total=Total(), collect=Collect()), "total"),
        (BEFORE, sent_to(sum=Total(), collect=Collect(), source="numbers"), "numbers"),
        (sent_to(sum=Total(), partitions=2), sent_to(sum=Total()), "sum"),
    ],
    ids=["a renamed operator", "a renamed input operator", "state without a partition to take it"],
)
def test_what_a_launch_refuses_is_refused_with_its_code(tmp_path, before, after, operator):
    Desk(tmp_path, before).run()
    desk = Desk(tmp_path, after)
    first = verdicts_on(desk)[0]
    with pytest.raises(RunFailure) as refused:
        desk.run()
    assert (first.operator, first.fate, first.code) == (operator, Fate.REFUSED, refused.value.code)
    assert first.detail == refused.value.problem
