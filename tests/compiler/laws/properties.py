"""Properties: bounds, laws across fields, nested models."""

from dagkit import Dag
from tests.compiler.cast import Checked
from tests.compiler.laws.drawing import Broken, Draw


def a_property_is_below_its_bound(dag: Dag) -> None:
    dag.add_operator("checked", Checked(count=1))


def a_property_of_a_nested_model_is_below_its_bound(dag: Dag) -> None:
    dag.add_operator("checked", Checked(nested={"depth": 0}))


def properties_that_hold_one_by_one_disagree(dag: Dag) -> None:
    dag.add_operator("checked", Checked(count=3, label="4"))


def a_property_is_misspelt(dag: Dag) -> None:
    dag.add_operator("checked", Checked(cuont=3))


def properties_that_agree(dag: Dag) -> None:
    dag.add_operator("checked", Checked(count=3, label="a3"))


BROKEN: Broken = [
    (
        a_property_is_below_its_bound,
        ["property-invalid: checked.count cannot be 1: input should be greater than or equal to 2"],
    ),
    (
        a_property_of_a_nested_model_is_below_its_bound,
        ["property-invalid: checked.nested.depth cannot be 0: input should be greater than or equal to 1"],
    ),
    (properties_that_hold_one_by_one_disagree, ["property-invalid: checked is wrong: label must end like the count"]),
    (a_property_is_misspelt, ["property-unknown: checked has no property 'cuont'"]),
]

VALID: list[Draw] = [properties_that_agree]
