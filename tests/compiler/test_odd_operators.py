"""Operators that are made in the wrong way: reported at their line, with a repair."""

from typing import Any

import pytest

from dagkit import Dag, OperatorContext
from tests.compiler.cast import Source, Step, faults


class Numbered(Step):
    kind = 5


class Unmade(Step):
    def __init__(self) -> None:
        pass


class Incomparable:
    """Whatever it is held against, it raises."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    __hash__ = None


@pytest.mark.parametrize(
    ("operator", "problem"),
    [
        (Numbered, "the kind of last is 5, which is not text"),
        (Unmade, "last: __init__ of Unmade does not call that of its base"),
    ],
)
def test_it_is_reported(operator, problem):
    dag = Dag()
    last = dag.add_operator("last", operator())
    dag.add_stream("on", dag.add_operator("source", Source()).out, last.one)
    assert [(fault.code, fault.problem) for fault in faults(dag)] == [("property-invalid", problem)]


def test_a_mode_that_cannot_be_compared_is_no_mode():
    dag = Dag()
    last = dag.add_operator("last", Step())
    dag.add_stream("on", dag.add_operator("source", Source()).out, last.one)
    mode: Any = Incomparable()
    dag.set_operator_attribute(last, OperatorContext.PROCESSING_MODE, mode)
    assert [fault.code for fault in faults(dag)] == ["attribute-invalid"]
    dag.set_attribute(OperatorContext.PROCESSING_MODE, mode)
    assert {fault.code for fault in faults(dag)} == {"attribute-invalid"}
