"""Counts add up to what came, however it came: one by one, in batches, in windows, by partitions, with restarts."""

from collections import Counter
from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit import Dag
from dagkit.api.ports import input_ports
from dagkit.compiler import compile_application
from dagkit.errors import ApplicationFaults
from dagkit.testing import Alone
from dagkit_operators import CountByKey, Items, Map, Record, SumByKey, value
from dagkit_operators.keyed.count import AddUp
from dagkit_operators.values.keys import first_of

WINDOWS = st.lists(st.lists(st.lists(st.sampled_from("abc"), max_size=5), max_size=3), max_size=4)


def test_each_window_shows_what_came_in_it_in_order():
    at_work = Alone(CountByKey())
    with at_work.window():
        at_work.send("b", "a", "b")
    assert at_work.sent() == [("a", 1), ("b", 2)]
    with at_work.window():
        at_work.send("b")
    assert at_work.sent() == [("b", 1)]
    with at_work.window():
        pass
    assert at_work.batches() == []


def test_of_records_the_values_are_counted():
    at_work = Alone(CountByKey())
    with at_work.window():
        at_work.send(Record(1, "a"), Record(2, "a"))
        at_work.send_batch([Record(3, "a")])
    assert at_work.sent() == [("a", 3)]


def test_keys_without_an_order_are_sent_as_they_came():
    at_work = Alone(CountByKey())
    with at_work.window():
        at_work.send("b", 1, "b")
    assert at_work.sent() == [("b", 2), (1, 1)]


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
        assert one_by_one.sent() == at_once.sent() == expected


@given(windows=WINDOWS, partitions=st.integers(1, 3))
def test_partitions_that_mirror_others_are_added_up(windows, partitions):
    counting = [Alone(CountByKey()) for _ in range(partitions)]
    adding, summing = Alone(AddUp()), Alone(SumByKey())
    so_far: Counter[str] = Counter()
    for batches in windows:
        for number, batch in enumerate(batches):
            counting[number % partitions].send_batch(batch)
        told = []
        for one in counting:
            one.operator.end_window()
            told += one.sent()
        in_window = Counter(key for batch in batches for key in batch)
        so_far += in_window
        with adding.window(), summing.window():
            adding.send(*told)
            summing.send_batch(told)
        assert adding.sent() == summing.sent("sums") == sorted(in_window.items())
        assert summing.sent() == sorted((key, so_far[key]) for key in in_window)
        summing = summing.restarted()


@pytest.mark.parametrize("send", ["send", "send_batch"])
def test_totals_are_of_all_windows_and_sums_of_one(send):
    at_work = Alone(SumByKey())
    for _ in range(2):
        with at_work.window():
            at_work.send(("a", 2), ("b", 1)) if send == "send" else at_work.send_batch([("a", 2), ("b", 1)])
        at_work = at_work.restarted() if not at_work.sent("sums") else at_work
    assert at_work.sent() == [("a", 2), ("b", 1), ("a", 4), ("b", 2)]


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
    for _ in range(3):
        with at_work.window():
            at_work.send((key, 1))
        at_work = at_work.restarted()
    with at_work.window():
        at_work.send((key, 1))
    assert at_work.sent() == [(key, 4)]


@pytest.mark.parametrize(
    "key", ["shop", value.field("shop"), lambda sale: sale["shop"]], ids=["field", "value", "call"]
)
def test_items_are_counted_by_the_key_that_is_set(key):
    at_work = Alone(CountByKey(key=key))
    with at_work.window():
        at_work.send({"shop": "b", "cents": 1}, Record(1, {"shop": "a", "cents": 2}))
        at_work.send_batch([{"shop": "b", "cents": 3}])
    assert at_work.sent() == [("a", 1), ("b", 2)]


def test_the_key_that_is_set_chooses_the_partition():
    (port,) = input_ports(CountByKey).values()
    key, _ = port.key_in(CountByKey(key="shop"))
    assert key is not None
    assert key({"shop": "b"}) == "b"


def test_the_pairs_of_records_are_summed():
    at_work = Alone(SumByKey())
    with at_work.window():
        at_work.send(Record(1, ("a", 2)), ("a", 1))
        at_work.send_batch([Record(1, ("a", 3))])
    assert at_work.sent() == [("a", 6)]


@pytest.mark.parametrize("item", ["ab", "a", 7, ("a", "b"), ("a", 1, 2), Record(1, "ab"), {"a": 1}], ids=repr)
@pytest.mark.parametrize("send", ["send", "send_batch"])
def test_an_item_that_is_no_pair_is_refused_with_what_to_write(item, send):
    at_work = Alone(SumByKey())
    with (
        pytest.raises(TypeError, match=r"no pair of a key and a (number|value).*: send pairs, as Map\(lambda"),
        at_work.window(),
    ):
        at_work.send(item) if send == "send" else at_work.send_batch([item])


@pytest.mark.parametrize("item", ["ab", b"ab", 7, (), {0: 1}], ids=repr)
def test_an_item_that_is_no_pair_has_no_key(item):
    with pytest.raises(TypeError, match=r"no pair of a key and a value: send pairs, .* or set the operator's key"):
        first_of(item)


@pytest.mark.parametrize(
    ("sent", "is_summed"),
    [
        (Map[str, tuple[str, int]], True),
        (Map[str, Record[tuple[str, int]]], True),
        (Map[str, Any], True),
        (Map, True),
        (Map[str, str], False),
        (Map[str, tuple[str, str]], False),
        (Map[str, Record[str]], False),
    ],
    ids=str,
)
def test_a_stream_of_other_than_pairs_is_refused_where_its_type_is_known(sent, is_summed):
    def populate_dag(dag: Dag, conf: object) -> None:
        made, sums = dag.add_operator("Made", sent(str.split)), dag.add_operator("Sums", SumByKey())
        dag.add_operator("Items", Items[str](items=("a",))) >> made >> sums

    with nullcontext() if is_summed else pytest.raises(ApplicationFaults, match=r"joins Made\.output"):
        compile_application(populate_dag)
