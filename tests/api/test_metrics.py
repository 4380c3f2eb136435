"""Metrics as classes declare them."""

import pytest

from dagkit import InputPort, MetricsAggregator, Operator, State, auto_metric, avg
from dagkit.api.metrics import aggregated, declared_metrics, metrics_of, start_over
from dagkit.errors import RunFailure
from tests.cases import cases


class Base(Operator):
    input = InputPort(int)
    seen = State(0)
    count = auto_metric(0)
    kept = auto_metric(list[int]([]))

    def process(self, item: int) -> None:
        self.count += 1

    @auto_metric
    def twice(self):
        return 2 * self.count


class Derived(Base):
    @property
    @auto_metric(aggregators=[min, max])
    def half(self):
        return self.count / 2

    def twice(self):
        return 200


def test_metrics_are_fields_methods_and_properties_those_of_bases_first_and_no_properties():
    assert list(declared_metrics(Derived)) == ["count", "kept", "twice", "half"]
    assert list(Derived.model_fields) == []
    assert "count" not in Derived().model_dump()
    assert metrics_of(type("Bare", (Operator,), {})()) == {}


def test_metrics_of_one_operator_begin_with_their_value_and_avg_is_the_mean():
    operator = Derived()
    operator.process(1)
    operator.process(1)
    assert metrics_of(operator) == {"count": 2, "kept": [], "twice": 200, "half": 1.0}
    operator.kept.append(1)
    assert (operator.configured({}).count, Derived().kept) == (0, [])
    start_over(operator)
    assert operator.count == 0
    assert avg([1, 2, 6]) == 3


class Odd(Operator):
    @auto_metric
    def thing(self):
        return {1, 2}


def test_what_cannot_be_reported_is_named():
    told = r"Odd\.thing is \{1, 2\}, of class set \[metric-invalid\]\n  help: make it a number"
    with pytest.raises(RunFailure, match=told):
        metrics_of(Odd())


@cases(
    "partitions, told",
    ("whole numbers", [{"count": 1}, {"count": 2}], {"count": 3}),
    ("numbers", [{"count": 1.5}, {"count": 2}], {"count": 3.5}),
    ("text", [{"count": "a"}, {"count": "b"}], {}),
    ("yes and no", [{"count": True}, {"count": True}], {}),
    ("two aggregators", [{"half": 1.0}, {"half": 3.0}], {"min-half": 1.0, "max-half": 3.0}),
    ("one reports nothing", [{"count": 1}, {}], {"count": 1}),
    ("no partition", [], {}),
)
def test_metrics_of_all_partitions(partitions, told):
    assert aggregated(Derived(), None, 1, partitions) == told


class Aggregating(Base, MetricsAggregator):
    def aggregate(self, window_id, partitions):
        return {"by": "itself"}


class Other(MetricsAggregator):
    def aggregate(self, window_id, partitions):
        return {"by": "another", "window": window_id}


def test_an_operator_may_aggregate_its_own_metrics_unless_an_attribute_says_otherwise():
    assert aggregated(Aggregating(), None, 1, [{"count": 1}]) == {"by": "itself"}
    assert aggregated(Aggregating(), Other(), 4, [{"count": 1}]) == {"by": "another", "window": 4}
