"""The properties of an operator, in the order in which a reader needs them."""

import pytest

from dagkit.cli.application.anatomy import anatomy_of
from dagkit.cli.application.operator_lookup import libraries

OPERATORS = [pytest.param(each, id=name) for library in libraries() for name, each in library.operators.items()]


@pytest.mark.gate(50)
@pytest.mark.parametrize("operator", OPERATORS)
def test_properties_that_must_be_set_come_first_and_those_of_scaling_last(operator):
    top = [each for each in anatomy_of(operator).properties if "." not in each.name]
    required = [each.required for each in top]
    assert required == sorted(required, reverse=True)
    names = [each.name for each in top]
    if "min_readers" in names:
        assert names[names.index("policy") :][:3] == ["policy", "policy_settings", "min_readers"]
        assert names[-1] == "apex_compat"


def test_the_first_property_of_a_reader_of_kafka_is_that_of_its_brokers():
    (reader,) = (library.operators["KafkaReader"] for library in libraries() if "KafkaReader" in library.operators)
    assert [each.name for each in anatomy_of(reader).properties][:2] == ["bootstrap_servers", "parse"]
