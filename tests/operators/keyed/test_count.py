"""Counts add up to what came, however it came: one by one, in batches, in windows, by partitions, with restarts."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit.testing import Alone
from dagkit_operators import CountByKey, Record, SumByKey
from dagkit_operators.keyed.count import AddUp

WINDOWS = st.lists(st.lists(st.lists(st.sampled_from("abc"), max_size=5), max_size=3), max_size=4)


def test_each_window_shows_what_came_in_it_in_order() -> None:
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


def test_of_records_the_values_are_counted() -> None:
    at_work = Alone(CountByKey())
    with at_work.window():
        at_work.send(Record(1, "a"), Record(2, "a"))
        at_work.send_batch([Record(3, "a")])
    assert at_work.sent() == [("a", 3)]


def test_keys_without_an_order_are_sent_as_they_came() -> None:
    at_work = Alone(CountByKey())
    with at_work.window():
        at_work.send("b", 1, "b")
    assert at_work.sent() == [("b", 2), (1, 1)]


@given(windows=WINDOWS, restarts=st.booleans())
def test_counts_are_those_of_python(windows: list[list[list[str]]], restarts: bool) -> None:
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
def test_partitions_that_mirror_others_are_added_up(windows: list[list[list[str]]], partitions: int) -> None:
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
def test_totals_are_of_all_windows_and_sums_of_one(send: str) -> None:
    at_work = Alone(SumByKey())
    for _ in range(2):
        with at_work.window():
            at_work.send(("a", 2), ("b", 1)) if send == "send" else at_work.send_batch([("a", 2), ("b", 1)])
        at_work = at_work.restarted() if not at_work.sent("sums") else at_work
    assert at_work.sent() == [("a", 2), ("b", 1), ("a", 4), ("b", 2)]


def test_finals_are_sent_when_nothing_more_comes_and_again_when_more_came() -> None:
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
def test_a_key_of_any_type_is_one_key_over_restarts(key: object) -> None:
    at_work = Alone(SumByKey())
    for _ in range(3):
        with at_work.window():
            at_work.send((key, 1))
        at_work = at_work.restarted()
    with at_work.window():
        at_work.send((key, 1))
    assert at_work.sent() == [(key, 4)]
