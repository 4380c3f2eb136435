"""Aggregates are those of Python, however items arrive: one by one, in batches, by partitions, with restarts."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit.testing import Alone
from dagkit_operators import Aggregate, Mean, Record
from tests.operators.ways import alike

PAIRS = st.lists(st.lists(st.tuples(st.sampled_from("abc"), st.integers(-9, 9)), max_size=6), max_size=5)


def larger(one, other):
    return max(one, other, key=lambda number: (abs(number), number))


FUNCTIONS = {
    "sum": sum,
    "min": min,
    "max": max,
    "count": len,
    "mean": lambda values: Mean(sum(values), len(values)),
    larger: lambda values: max(values, key=lambda number: (abs(number), number)),
}
EACH = st.sampled_from(list(FUNCTIONS))


def expected(function, batches):
    by_key = {}
    for key, number in (pair for batch in batches for pair in batch):
        by_key.setdefault(key, []).append(number)
    return [(key, FUNCTIONS[function](numbers)) for key, numbers in sorted(by_key.items())]


@pytest.mark.slow
@given(batches=PAIRS, restarts=st.booleans(), function=EACH)
def test_aggregates_are_those_of_python(batches, restarts, function):
    one_by_one, in_batches = Alone(Aggregate(function=function)), Alone(Aggregate(function=function))
    for batch in batches:
        one_by_one.send(*batch)
        in_batches.send_batch(batch)
        if restarts:  # a window of the operator may last several streaming windows
            one_by_one, in_batches = one_by_one.restarted(), in_batches.restarted()
    one_by_one.operator.end_window()
    in_batches.operator.end_window()
    assert one_by_one.sent() == in_batches.sent() == expected(function, batches)


@pytest.mark.slow
@given(batches=PAIRS, partitions=st.integers(1, 3), function=EACH)
def test_the_results_of_partitions_are_merged(batches, partitions, function):
    aggregate = Aggregate(function=function)
    aggregating = [Alone(aggregate) for _ in range(partitions)]
    merging = Alone(aggregate.merging())
    for number, batch in enumerate(batches):
        aggregating[number % partitions].send_batch(batch)
    with merging.window():
        for alone in aggregating:
            alone.operator.end_window()
            merging.send(*alone.sent())
    assert merging.sent() == expected(function, batches)


@dataclass(frozen=True)
class Sale:
    shop: str
    cents: int


def test_key_and_value_are_set_and_of_records_the_value_is_aggregated():
    sales = [Sale("north", 5), Sale("east", 1), Sale("north", 2)]
    for items in (sales, [Record(7, sale) for sale in sales]):
        for key, of in (("shop", "cents"), (lambda sale: sale.shop, lambda sale: sale.cents)):
            assert alike(Aggregate(key=key, of=of), items)["aggregates"] == [("east", 1), ("north", 7)]


def test_a_mean_is_a_number_and_a_text_and_an_unknown_function_a_fault():
    assert (Mean(3, 2).value, float(Mean(3, 2)), str(Mean(3, 2))) == (1.5, 1.5, "1.5")
    assert "function" in Aggregate(function="median").faults[0].path


@pytest.mark.slow
@given(windows=PAIRS, restarts=st.booleans(), function=EACH)
def test_results_of_each_window_and_over_all_windows_are_those_of_python(windows, restarts, function):
    operator = Alone(Aggregate(function=function), connected=["aggregates", "totals", "finals"])
    for number, pairs in enumerate(windows, 1):
        with operator.window():
            operator.send_batch(pairs)
        keys = {key for key, _ in pairs}
        assert operator.sent("aggregates") == expected(function, [pairs])
        totals = [result for result in expected(function, windows[:number]) if result[0] in keys]
        assert operator.sent("totals") == totals
        operator = operator.restarted() if restarts else operator
    with operator.window(last=True):
        operator.send(("d", 1))
    assert operator.sent("finals") == expected(function, [*windows, [("d", 1)]])
    assert operator.sent("aggregates") == expected(function, [[("d", 1)]])


def test_results_over_all_windows_are_kept_only_if_they_are_sent():
    operator = Alone(Aggregate(), connected=["aggregates"])
    with operator.window():
        operator.send(("a", 1))
    assert dict(operator.operator.so_far) == {}
