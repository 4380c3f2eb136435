"""Properties: bounds, laws across fields, nested models, and operators that are made in the wrong way."""

from tests.compiler.cast import Checked, Step
from tests.compiler.laws.drawing import Laws

law = Laws()


def _checked(given, *expected):
    law.add(f"properties {given}", lambda dag: dag.add_operator("checked", Checked(**given)), *expected)


_BELOW = "property-invalid: checked.{}: input should be greater than or equal to {}"
_checked({"count": 1}, _BELOW.format("count cannot be 1", 2))
_checked({"nested": {"depth": 0}}, _BELOW.format("nested.depth cannot be 0", 1))
_checked({"count": 3, "label": "4"}, "property-invalid: checked is wrong: label must end like the count")
_checked({"count": 3, "label": "a3"})
_checked({"cuont": 3}, "property-unknown: checked has no property 'cuont'")


class Numbered(Step):
    kind = 5


class Unmade(Step):
    def __init__(self):
        pass


_UNMADE = "property-invalid: last: __init__ of Unmade does not call that of its base"
law.sketched("no kind", "s>last", "property-invalid: the kind of last is 5, which is not text", last=Numbered)
law.sketched("a base that is not made", "s>last", _UNMADE, last=Unmade)
