"""Metrics as classes declare them."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from dagkit import InputPort, MetricsAggregator, Operator, State, auto_metric, avg
from dagkit.api.metrics import MetricUnplain, aggregated, declared_metrics, metrics_of, start_over
from tests.cases import cases


class Base(Operator):
    input = InputPort(int)
    seen = State(0)
    count = auto_metric(0)
    kept = auto_metric(list[int]([]))

    def process(self, item: int) -> None:
        self.count += 1

    @auto_metric
    def twice(self) -> int:
        return 2 * self.count


class Derived(Base):
    @property
    @auto_metric(aggregators=[min, max])
    def half(self) -> float:
        return self.count / 2

    def twice(self) -> int:
        return 200


def test_metrics_are_fields_methods_and_properties_those_of_bases_first():
    assert list(declared_metrics(Derived)) == ["count", "kept", "twice", "half"]


def test_a_metric_is_no_property_and_no_state():
    assert list(Derived.model_fields) == []
    assert "count" not in Derived().model_dump()


def test_a_field_begins_with_its_value_and_counts():
    operator = Derived()
    operator.process(1)
    operator.process(1)
    assert metrics_of(operator) == {"count": 2, "kept": [], "twice": 200, "half": 1.0}
    start_over(operator)
    assert operator.count == 0


def test_a_list_that_a_field_begins_with_is_of_one_operator():
    first, second = Base(), Base()
    first.kept.append(1)
    assert (first.kept, second.kept) == ([1], [])


def test_copies_count_for_themselves():
    first = Base()
    first.process(1)
    assert first.configured({}).count == 0


def test_an_operator_without_metrics_has_none():
    class Bare(Operator):
        pass

    assert metrics_of(Bare()) == {}


class Odd(Operator):
    @auto_metric
    def thing(self) -> object:
        return {1, 2}


def test_what_cannot_be_reported_is_named():
    with pytest.raises(
        MetricUnplain, match=r"Odd\.thing is \{1, 2\}, of class set \[metric-invalid\]\n  help: make it a number"
    ):
        metrics_of(Odd())


def metrics(**values: Any) -> Mapping[str, Any]:
    return values


@cases(
    "partitions, told",
    ("whole numbers", [metrics(count=1), metrics(count=2)], {"count": 3}),
    ("numbers", [metrics(count=1.5), metrics(count=2)], {"count": 3.5}),
    ("text", [metrics(count="a"), metrics(count="b")], {}),
    ("yes and no", [metrics(count=True), metrics(count=True)], {}),
    ("two aggregators", [metrics(half=1.0), metrics(half=3.0)], {"min-half": 1.0, "max-half": 3.0}),
    ("one reports nothing", [metrics(count=1), {}], {"count": 1}),
    ("no partition", [], {}),
)
def test_metrics_of_all_partitions(partitions, told):
    assert aggregated(Derived(), None, 1, partitions) == told


def test_avg_is_the_mean():
    assert avg([1, 2, 6]) == 3


class Aggregating(Base, MetricsAggregator):
    def aggregate(self, window_id: int, partitions: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        return {"by": "itself"}


class Other(MetricsAggregator):
    def aggregate(self, window_id: int, partitions: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        return {"by": "another", "window": window_id}


def test_an_operator_may_aggregate_its_own_metrics():
    assert aggregated(Aggregating(), None, 1, [metrics(count=1)]) == {"by": "itself"}


def test_the_attribute_goes_before_the_operator():
    assert aggregated(Aggregating(), Other(), 4, [metrics(count=1)]) == {"by": "another", "window": 4}
