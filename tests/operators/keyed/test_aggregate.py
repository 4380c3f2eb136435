"""Aggregates are those of Python, however items arrive: one by one, in batches, by partitions, with restarts."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit.testing import Alone
from dagkit_operators import Aggregate, Mean, Record, value

PAIRS = st.lists(st.lists(st.tuples(st.sampled_from("abc"), st.integers(-9, 9)), max_size=6), max_size=5)


def join_sets(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    return (*one, *other)


FUNCTIONS: dict[str, Callable[[list[int]], Any]] = {
    "sum": sum,
    "min": min,
    "max": max,
    "count": len,
    "mean": lambda values: Mean(sum(values), len(values)),
}


def expected(function: Any, pairs: list[tuple[str, int]]) -> list[tuple[str, Any]]:
    by_key: dict[str, list[int]] = {}
    for key, number in pairs:
        by_key.setdefault(key, []).append(number)
    if isinstance(function, str):
        return [(key, FUNCTIONS[function](numbers)) for key, numbers in sorted(by_key.items())]
    return [(key, max(numbers, key=lambda number: (abs(number), number))) for key, numbers in sorted(by_key.items())]


def larger(one: int, other: int) -> int:
    return max(one, other, key=lambda number: (abs(number), number))


@pytest.mark.slow
@given(batches=PAIRS, restarts=st.booleans(), function=st.sampled_from([*FUNCTIONS, larger]))
def test_aggregates_are_those_of_python(batches, restarts, function):
    one_by_one, in_batches = Alone(Aggregate(function=function)), Alone(Aggregate(function=function))
    for batch in batches:
        one_by_one.send(*batch)
        in_batches.send_batch(batch)
        if restarts:  # a window of the operator may last several streaming windows
            one_by_one, in_batches = one_by_one.restarted(), in_batches.restarted()
    one_by_one.operator.end_window()
    in_batches.operator.end_window()
    pairs = [pair for batch in batches for pair in batch]
    assert one_by_one.sent() == in_batches.sent() == expected(function, pairs)


@pytest.mark.slow
@given(batches=PAIRS, partitions=st.integers(1, 3), function=st.sampled_from([*FUNCTIONS, larger]))
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
    assert merging.sent() == expected(function, [pair for batch in batches for pair in batch])


@dataclass(frozen=True)
class Sale:
    shop: str
    cents: int


@pytest.mark.parametrize(
    ("key", "of"),
    [("shop", "cents"), (lambda sale: sale.shop, lambda sale: sale.cents), (value.field("shop"), "cents")],
)
@pytest.mark.parametrize("send", ["send", "send_batch"])
def test_key_and_value_are_fields_or_functions(key, of, send):
    alone = Alone(Aggregate(key=key, of=of))
    sales = [Sale("north", 5), Sale("east", 1), Sale("north", 2)]
    with alone.window():
        alone.send(*sales) if send == "send" else alone.send_batch(sales)
    assert alone.sent() == [("east", 1), ("north", 7)]


def test_of_records_the_value_is_aggregated():
    alone = Alone(Aggregate(function="count", key=lambda text: text[0]))
    with alone.window():
        alone.send(Record(1, "ab"))
        alone.send_batch([Record(2, "ac"), Record(2, "b")])
    assert alone.sent() == [("a", 2), ("b", 1)]


def test_a_window_without_items_sends_nothing_and_the_next_starts_over():
    alone = Alone(Aggregate())
    for items, sent in [([("a", 1)], [("a", 1)]), ([], []), ([("a", 2)], [("a", 2)])]:
        with alone.window():
            alone.send(*items)
        assert alone.sent() == sent


def test_a_mean_is_a_number_and_a_text():
    assert (Mean(3, 2).value, float(Mean(3, 2)), str(Mean(3, 2))) == (1.5, 1.5, "1.5")


def test_an_unknown_function_is_a_fault():
    assert "function" in Aggregate(function="median").faults[0].path  # type: ignore[arg-type]


@pytest.mark.slow
@given(windows=PAIRS, restarts=st.booleans(), function=st.sampled_from([*FUNCTIONS, larger]))
def test_results_over_all_windows_are_those_of_python(windows, restarts, function):
    operator = Alone(Aggregate(function=function), connected=["aggregates", "totals", "finals"])
    so_far: list[tuple[str, int]] = []
    for pairs in windows:
        with operator.window():
            operator.send_batch(pairs)
        so_far += pairs
        keys = {key for key, _ in pairs}
        assert operator.sent("aggregates") == expected(function, pairs)
        assert operator.sent("totals") == [result for result in expected(function, so_far) if result[0] in keys]
        operator = operator.restarted() if restarts else operator
    with operator.window(last=True):
        operator.send(("d", 1))
    assert operator.sent("finals") == expected(function, [*so_far, ("d", 1)])
    assert operator.sent("aggregates") == [("d", expected(function, [("d", 1)])[0][1])]


def test_results_over_all_windows_are_kept_only_if_they_are_sent():
    operator = Alone(Aggregate(), connected=["aggregates"])
    with operator.window():
        operator.send(("a", 1))
    assert dict(operator.operator.so_far) == {}
