"""Aggregates in windows of event time equal those of Python, whatever the order and the batches of the records."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from operator import itemgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit.testing import Alone
from dagkit_operators import (
    AggregateByTime,
    ItemRejected,
    SessionWindows,
    SlidingWindows,
    TumblingWindows,
)
from tests.operators.ways import BOTH_WAYS, at_once

START = datetime(1970, 1, 1, tzinfo=UTC)
WINDOWS = [
    TumblingWindows(millis=10_000),
    SlidingWindows(millis=10_000, every_millis=4000),
    SessionWindows(gap_millis=3000),
]


def at(second):
    return START + timedelta(seconds=second)


def by_time(windows=WINDOWS[0], **given):
    key, time, of = map(itemgetter, range(3))
    return AggregateByTime(key=key, time=time, of=of, windows=windows, **given)


def result_of(item):
    start, end = ((each - START) / timedelta(seconds=1) for each in (item.start, item.end))
    return item.key, start, end, item.result, item.revision


def in_order(results):
    return sorted(results, key=lambda each: (each[2], each[1], each[0]))


def after(alone, watermark, *items):
    """The operator after a window at a watermark, and the results that it sent."""
    alone = alone.restarted(watermark=at(watermark))
    with alone.window():
        alone.send(*items)
    return alone, [result_of(item) for item in alone.sent()]


def expected(windows, items):
    """The sums of all windows, computed from all records at once."""
    if not isinstance(windows, SessionWindows):
        sums = Counter()
        for key, second, number in items:
            for start, end in windows.around(second * 10**6):
                sums[key, start, end] += number
        return in_order((key, start / 10**6, end / 10**6, total, 0) for (key, start, end), total in sums.items())
    gap, sessions = windows.gap_millis // 1000, []
    for key, second, number in sorted(items):
        if sessions and sessions[-1][0] == key and second < sessions[-1][2]:
            sessions[-1] = (key, sessions[-1][1], second + gap, sessions[-1][3] + number, 0)
        else:
            sessions.append((key, float(second), second + gap, number, 0))
    return in_order(sessions)


ITEMS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 40), st.integers(-5, 5)), max_size=12)


@pytest.mark.gate(1)
@pytest.mark.slow
@pytest.mark.parametrize("windows", WINDOWS, ids=["tumbling", "sliding", "sessions"])
@given(batches=st.lists(ITEMS, max_size=5), as_batches=st.booleans())
def test_results_equal_those_of_all_records_at_once(windows, batches, as_batches):
    """The watermark follows the earliest record that is still to come, so that no record is late."""
    alone, results = Alone(by_time(windows)), []
    for index, batch in enumerate([*batches, []]):
        coming = [second for later in batches[index:] for _, second, _ in later]
        alone = alone.restarted(watermark=at(min(coming, default=100)))
        with alone.window():
            (at_once if as_batches else Alone.send)(alone, *batch)
        assert alone.sent("late") == []
        results += map(result_of, alone.sent())
    assert in_order(results) == expected(windows, [item for batch in batches for item in batch])
    assert alone.state in ({}, {"open_windows": {}})


@BOTH_WAYS
def test_a_late_record_goes_to_late(send):
    alone = Alone(by_time(), watermark=at(10))
    with alone.window():
        late, punctual = ("a", 9, 1), ("a", 10, 2)
        send(alone, late, punctual)
        assert alone.metrics == {"records_late": 1, "late_dropped": 0}
    assert alone.sent("late") == [late]
    assert after(alone, 20)[1] == [("a", 10, 20, 2, 0)]


def test_a_record_that_is_late_for_some_windows_counts_in_the_others():
    alone = Alone(by_time(SlidingWindows(millis=10_000, every_millis=5000)), watermark=at(10))
    alone, _ = after(alone, 10, ("a", 7, 1))
    assert alone.sent("late") == []
    assert after(alone, 99)[1] == [("a", 5, 15, 1, 0)]


def test_a_record_that_is_late_and_allowed_revises_the_result():
    alone = Alone(by_time(allowed_lateness_millis=5000))
    with alone.window():
        alone.send(("a", 1, 1))
    for watermark, sent, expected in (
        (10, [], [("a", 0, 10, 1, 0)]),
        (14, [("a", 2, 3), ("a", 3, 4)], [("a", 0, 10, 8, 1)]),
        (14, [], []),
        (14.5, [("a", 4, 1)], [("a", 0, 10, 9, 2)]),
        (15, [("a", 5, 1)], []),
    ):
        alone, results = after(alone, watermark, *sent)
        assert results == expected
    assert alone.sent("late") == [("a", 5, 1)]
    assert alone.state["open_windows"] == {}


def test_a_late_record_joins_sessions_that_were_sent():
    alone = Alone(by_time(SessionWindows(gap_millis=3000), allowed_lateness_millis=60_000))
    with alone.window():
        alone.send(("a", 1, 1), ("a", 5, 2))
    alone, results = after(alone, 9)
    assert results == [("a", 1, 4, 1, 0), ("a", 5, 8, 2, 0)]
    assert after(alone, 9, ("a", 3, 4))[1] == [("a", 1, 8, 7, 1)]


@pytest.mark.parametrize(("closes", "results"), [(False, []), (True, [("a", 0, 10, 1, 0)])])
def test_a_launch_that_ends_closes_windows_where_asked(closes, results):
    alone = Alone(by_time(close_when_drained=closes))
    with alone.window(last=True):
        alone.send(("a", 1, 1))
    assert [result_of(item) for item in alone.sent()] == results


@BOTH_WAYS
def test_an_item_without_a_time_is_rejected(send):
    items = [("a", "soon", 1), ("a", 1, 2)]
    alone = Alone(by_time(), connected=["rejected", "results"])
    with alone.window():
        send(alone, *items)
    (rejected,) = alone.sent("rejected")
    assert rejected.item == items[0]
    assert "'soon' has not the form of ISO 8601" in rejected.reason
    with pytest.raises(ItemRejected, match="soon"):
        send(Alone(by_time(), connected=["results"]), *items)
