"""Operators that are made in the wrong way: reported at their line, with a repair."""

from dagkit import OperatorContext
from tests.cases import cases
from tests.compiler.cast import Step, codes, faults
from tests.compiler.sketches import sketch


class Numbered(Step):
    kind = 5


class Unmade(Step):
    def __init__(self):
        pass


class Incomparable:
    """Compared with anything, it raises."""

    def __eq__(self, other):
        raise RuntimeError

    __hash__ = None


@cases(
    "operator, problem",
    ("a kind that is no text", Numbered, "the kind of last is 5, which is not text"),
    ("a base that is not made", Unmade, "last: __init__ of Unmade does not call that of its base"),
)
def test_it_is_reported(operator, problem):
    dag = sketch("s>last", last=operator)
    assert [(fault.code, fault.problem) for fault in faults(dag)] == [("property-invalid", problem)]


def test_a_mode_that_cannot_be_compared_is_no_mode():
    dag, mode = sketch("s>last"), Incomparable()
    dag.set_operator_attribute(dag.operator("last"), OperatorContext.PROCESSING_MODE, mode)
    assert codes(dag) == ["attribute-invalid"]
    dag.set_attribute(OperatorContext.PROCESSING_MODE, mode)
    assert {*codes(dag)} == {"attribute-invalid"}
