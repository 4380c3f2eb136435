"""Aggregates and counts are those of Python, however items arrive: alone, in batches, by partitions, with restarts."""

from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit.api.ports import input_ports
from dagkit.compiler import compile_application
from dagkit.errors import ApplicationFaults
from dagkit.testing import Alone
from dagkit_operators import Aggregate, CountByKey, Items, Map, Mean, Record, SumByKey
from dagkit_operators.keyed.count import AddUp
from dagkit_operators.values.keys import first_of
from tests.cases import cases
from tests.engine.cast import chain
from tests.operators.ways import BOTH_WAYS, alike

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


WINDOWS = st.lists(st.lists(st.lists(st.sampled_from("abc"), max_size=5), max_size=3), max_size=4)


@cases(
    "operator, items, counts",
    ("whole items", CountByKey(), ["a", "b", "a"], [("a", 2), ("b", 1)]),
    ("values of records", CountByKey(), [Record(1, "a"), Record(1, "b"), Record(2, "a")], [("a", 2), ("b", 1)]),
    ("keys without an order are sent as they came", CountByKey(), ["b", 1, "b"], [("b", 2), (1, 1)]),
    ("a field", CountByKey(key="shop"), [Record(1, {"shop": shop}) for shop in "bab"], [("a", 1), ("b", 2)]),
    ("a function", CountByKey(key=len), ["a", "bc", "d"], [(1, 2), (2, 1)]),
)
def test_items_are_counted_by_their_key(operator, items, counts):
    assert alike(operator, items)["counts"] == counts


@given(windows=WINDOWS, restarts=st.booleans())
def test_counts_are_those_of_python(windows, restarts):
    one_by_one, at_once = Alone(CountByKey()), Alone(CountByKey())
    for batches in windows:
        for batch in batches:
            one_by_one.send(*batch)
            at_once.send_batch(batch)
            if restarts:  # a window of an application may last several of the engine's
                one_by_one, at_once = one_by_one.restarted(), at_once.restarted()
        one_by_one.operator.end_window()
        at_once.operator.end_window()
        expected = sorted(Counter(key for batch in batches for key in batch).items())
        assert at_once.batches() == [expected] * bool(expected)
        assert one_by_one.sent() == at_once.sent() == expected


@given(windows=WINDOWS, partitions=st.integers(1, 3))
def test_partitions_that_mirror_others_are_added_up(windows, partitions):
    counting = [Alone(CountByKey()) for _ in range(partitions)]
    adding, summing = Alone(AddUp()), Alone(SumByKey())
    so_far: Counter[str] = Counter()
    for batches in windows:
        for number, batch in enumerate(batches):
            counting[number % partitions].send_batch(batch)
        counts = []
        for one in counting:
            one.operator.end_window()
            counts += one.sent()
        in_window = Counter(key for batch in batches for key in batch)
        so_far += in_window
        with adding.window(), summing.window():
            adding.send(*counts)
            summing.send_batch(counts)
        assert adding.sent() == summing.sent("sums") == sorted(in_window.items())
        assert summing.sent() == sorted((key, so_far[key]) for key in in_window)
        summing = summing.restarted()


def test_finals_are_sent_when_nothing_more_comes_and_again_when_more_came():
    at_work = Alone(SumByKey())
    for numbers, finals in [((1, 2), [("a", 1), ("b", 2)]), ((3, 0), [("a", 4), ("b", 2)])]:
        with at_work.window():
            at_work.send(("a", numbers[0]))
        assert at_work.sent("finals") == []
        with at_work.window(last=True):
            at_work.send(("b", numbers[1]))
        assert at_work.sent("finals") == finals
        at_work = at_work.restarted()


@pytest.mark.parametrize("key", ["a", b"a", ("a", 1), None, 1.5], ids=repr)
def test_a_key_of_any_type_is_one_key_over_restarts(key):
    at_work = Alone(SumByKey())
    for number in range(1, 5):
        with at_work.window():
            at_work.send((key, 1))
        assert (at_work.sent("sums"), at_work.sent()) == ([(key, 1)], [(key, number)])
        at_work = at_work.restarted()


def test_the_key_that_is_set_chooses_the_partition():
    (port,) = input_ports(CountByKey).values()
    key, _ = port.key_in(CountByKey(key="shop"))
    assert key({"shop": "b"}) == "b"


@pytest.mark.parametrize("item", ["ab", "a", 7, ("a", "b"), ("a", 1, 2), Record(1, "ab"), {"a": 1}], ids=repr)
@BOTH_WAYS
def test_an_item_that_is_no_pair_is_refused_with_what_to_write(item, send):
    at_work = Alone(SumByKey())
    words = r"no pair of a key and a (number|value).*: send pairs, as Map\(lambda"
    with pytest.raises(TypeError, match=words), at_work.window():
        send(at_work, item)


def test_an_item_that_is_no_pair_has_no_key_and_the_pairs_of_records_are_summed():
    for item in ("ab", b"ab", 7, (), {0: 1}):
        with pytest.raises(TypeError, match=r"no pair of a key and a value: send pairs, .* or set the operator's key"):
            first_of(item)
    assert alike(SumByKey(), [Record(1, ("a", 2)), Record(1, ("a", 3))])["sums"] == [("a", 5)]


Pair = tuple[str, int]


@pytest.mark.parametrize(
    ("sent", "is_summed"),
    [(Map[str, each], True) for each in (Pair, Record[Pair], Any)]
    + [(Map, True)]
    + [(Map[str, each], False) for each in (str, tuple[str, str], Record[str])],
    ids=str,
)
def test_a_stream_of_other_than_pairs_is_refused_where_its_type_is_known(sent, is_summed):
    draw = chain(Items=Items[str](items=("a",)), Made=sent(str.split), Sums=SumByKey())
    with nullcontext() if is_summed else pytest.raises(ApplicationFaults, match=r"joins Made\.output"):
        compile_application(draw)
