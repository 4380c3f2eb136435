"""Partitioners that listen."""

from datetime import timedelta

import pytest

from dagkit import BatchedOperatorStats, OperatorContext, OperatorStats, Partition, PartitioningContext
from dagkit.conf.values.attribute_values import attribute_value
from dagkit.testing import FakeClock
from dagkit_operators import StatelessLatencyBasedPartitioner, StatelessThroughputBasedPartitioner
from tests.cases import cases

CLOCK = FakeClock()
BY_RATE = "StatelessThroughputBasedPartitioner:2:maximum_events=100:minimumEvents=10:cooldownMillis=2000"


def _round(listener, rates, millis=0):
    at = CLOCK.now() + timedelta(milliseconds=millis)
    return [
        listener.process_stats(
            BatchedOperatorStats(
                operator_id=partition,
                current_window_id=1,
                last_windowed_stats=[OperatorStats(1)],
                tuples_processed_psma=rate,
                latency_ma_millis=rate,
                partition=partition,
                partitions=len(rates),
                at=at,
            )
        )
        for partition, rate in enumerate(rates)
    ]


def _listener():
    (listener,) = attribute_value(OperatorContext.STATS_LISTENERS, BY_RATE)
    return listener


def test_a_property_file_names_one_as_partitioner_and_as_listener():
    partitioner = attribute_value(OperatorContext.PARTITIONER, BY_RATE)
    assert isinstance(partitioner, StatelessThroughputBasedPartitioner)
    assert partitioner == _listener()
    assert (partitioner.partition_count, partitioner.maximum_events, partitioner.minimum_events) == (2, 100, 10)


@pytest.mark.parametrize(
    ("rates", "loads"),
    [([100, 10], [0, 0]), ([101, 9], [1, -1]), ([0, 0], [-1, -1])],
    ids=["within the bounds", "one on each side", "idle"],
)
def test_each_partition_receives_its_load(rates, loads):
    assert [response.load_indicator for response in _round(_listener(), rates)] == loads


@cases(
    "loads, asked",
    ("it has lasted for the cool-down", {0: 200, 1000: 200, 1999: 200, 2000: 200}, [False, False, False, True]),
    ("it passes", {0: 200, 1000: 90, 2000: 200}, [False, False, False]),
)
def test_it_asks_when_the_load_has_lasted(loads, asked):
    listener = _listener()
    assert [_round(listener, [rate, 50], at)[-1].repartition_required for at, rate in loads.items()] == asked


def test_what_could_not_be_helped_is_not_asked_for_again():
    listener = _listener()
    asked = [_round(listener, [1], at)[-1].repartition_required for at in range(0, 20_000, 1000)]
    assert sum(asked) == 1


def test_latency_counts_milliseconds_and_before_the_first_window_no_partition_is_idle():
    stats = BatchedOperatorStats(operator_id=0, current_window_id=0, at=CLOCK.now())
    assert _listener().process_stats(stats).load_indicator == 0
    listener = StatelessLatencyBasedPartitioner(maximum_latency=500, minimum_latency=5)
    assert [response.load_indicator for response in _round(listener, [501, 500, 4])] == [1, 0, -1]


def test_the_loaded_partition_is_split():
    partitioner = StatelessThroughputBasedPartitioner(2, maximum_events=100)
    context = PartitioningContext(input_ports=("in",))
    one, two = partitioner.define_partitions([Partition("op")], context)
    loaded = Partition("op", one.keys, load=1, stats=BatchedOperatorStats(0, 1))
    idle = Partition("op", two.keys, stats=BatchedOperatorStats(1, 1))
    assert len(partitioner.define_partitions([loaded, idle], context)) == 3


@pytest.mark.parametrize(
    "text", ["Throughput:maximum_events=1:minimum_events", "Latency:maximum_latency=1:minimum_latency"]
)
def test_bounds_that_cross_are_reported(text):
    kind, _, bounds = text.partition(":")
    with pytest.raises(ValueError, match="is greater than"):
        attribute_value(OperatorContext.PARTITIONER, f"Stateless{kind}BasedPartitioner::{bounds}=2")
