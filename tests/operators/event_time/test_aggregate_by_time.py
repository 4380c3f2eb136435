"""Aggregates in windows of event time equal those of Python, whatever the order and the batches of the records."""

from datetime import UTC, datetime, timedelta
from typing import Any

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
    WindowResult,
)
from dagkit_operators.records.rejecting import Rejecting

START = datetime(1970, 1, 1, tzinfo=UTC)
Item = tuple[str, int, int]
"""A key, a second, and a value."""
WINDOWS = [
    TumblingWindows(millis=10_000),
    SlidingWindows(millis=10_000, every_millis=4000),
    SessionWindows(gap_millis=3000),
]


def at(second: float) -> datetime:
    return START + timedelta(seconds=second)


def by_time(windows: Any = WINDOWS[0], **given: Any) -> AggregateByTime[Any, Any, Any]:
    return AggregateByTime(
        key=lambda item: item[0], time=lambda item: item[1], of=lambda item: item[2], windows=windows, **given
    )


def in_seconds(results: list[WindowResult[Any, Any]]) -> list[tuple[Any, ...]]:
    return [
        (r.key, (r.start - START).total_seconds(), (r.end - START).total_seconds(), r.result, r.revision)
        for r in results
    ]


def expected(windows: Any, items: list[Item]) -> list[tuple[Any, ...]]:
    """The sums of all windows, computed from all records at once."""
    if not isinstance(windows, SessionWindows):
        sums: dict[tuple[int, int, str], int] = {}
        for key, second, number in items:
            for start, end in windows.around(second * 10**6):
                sums[end, start, key] = sums.get((end, start, key), 0) + number
        return [(key, start / 10**6, end / 10**6, total, 0) for (end, start, key), total in sorted(sums.items())]
    gap, sessions = windows.gap_millis // 1000, []
    for key in sorted({key for key, _, _ in items}):
        for second, number in sorted((second, number) for other, second, number in items if other == key):
            if sessions and sessions[-1][0] == key and second < sessions[-1][2]:
                sessions[-1] = (key, sessions[-1][1], second + gap, sessions[-1][3] + number, 0)
            else:
                sessions.append((key, float(second), second + gap, number, 0))
    return sorted(sessions, key=lambda each: (each[2], each[1], each[0]))


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
            if as_batches:
                alone.send_batch(batch)
            else:
                alone.send(*batch)
        assert alone.sent("late") == []
        results += in_seconds(alone.sent())
    items = [item for batch in batches for item in batch]
    assert sorted(results, key=lambda each: (each[2], each[1], each[0])) == expected(windows, items)
    assert alone.state in ({}, {"open_windows": {}})


@pytest.mark.parametrize("as_batches", [False, True])
def test_a_late_record_goes_to_late(as_batches):
    alone = Alone(by_time(), watermark=at(10))
    with alone.window():
        late, punctual = ("a", 9, 1), ("a", 10, 2)
        alone.send_batch([late, punctual]) if as_batches else alone.send(late, punctual)
        assert alone.metrics == {"records_late": 1}
    assert alone.sent("late") == [late]
    alone = alone.restarted(watermark=at(20))
    with alone.window():
        pass
    assert in_seconds(alone.sent()) == [("a", 10, 20, 2, 0)]


def test_a_record_that_is_late_for_some_windows_counts_in_the_others():
    alone = Alone(by_time(SlidingWindows(millis=10_000, every_millis=5000)), watermark=at(10))
    with alone.window():
        alone.send(("a", 7, 1))
    assert alone.sent("late") == []
    alone = alone.restarted(watermark=at(99))
    with alone.window():
        pass
    assert in_seconds(alone.sent()) == [("a", 5, 15, 1, 0)]


def test_a_record_that_is_late_and_allowed_revises_the_result():
    alone = Alone(by_time(allowed_lateness_millis=5000))
    with alone.window():
        alone.send(("a", 1, 1))
    for watermark, sent, results in (
        (10, [], [("a", 0, 10, 1, 0)]),
        (14, [("a", 2, 3), ("a", 3, 4)], [("a", 0, 10, 8, 1)]),
        (14, [], []),
        (14.5, [("a", 4, 1)], [("a", 0, 10, 9, 2)]),
        (15, [("a", 5, 1)], []),
    ):
        alone = alone.restarted(watermark=at(watermark))
        with alone.window():
            alone.send(*sent)
        assert in_seconds(alone.sent()) == results
    assert alone.sent("late") == [("a", 5, 1)]
    assert alone.state["open_windows"] == {}


def test_a_late_record_joins_sessions_that_were_sent():
    alone = Alone(by_time(SessionWindows(gap_millis=3000), allowed_lateness_millis=60_000))
    with alone.window():
        alone.send(("a", 1, 1), ("a", 5, 2))
    alone = alone.restarted(watermark=at(9))
    with alone.window():
        pass
    assert in_seconds(alone.sent()) == [("a", 1, 4, 1, 0), ("a", 5, 8, 2, 0)]
    alone = alone.restarted(watermark=at(9))
    with alone.window():
        alone.send(("a", 3, 4))
    assert in_seconds(alone.sent()) == [("a", 1, 8, 7, 1)]


@pytest.mark.parametrize(("closes", "results"), [(False, []), (True, [("a", 0, 10, 1, 0)])])
def test_a_launch_that_ends_closes_windows_where_asked(closes, results):
    alone = Alone(by_time(close_when_drained=closes))
    with alone.window(last=True):
        alone.send(("a", 1, 1))
    assert in_seconds(alone.sent()) == results


@pytest.mark.parametrize("as_batches", [False, True])
def test_an_item_without_a_time_is_rejected(as_batches):
    items = [("a", "soon", 1), ("a", 1, 2)]
    alone = Alone(by_time(), connected=["rejected", "results"])
    with alone.window():
        alone.send_batch(items) if as_batches else alone.send(*items)
    (rejected,) = alone.sent("rejected")
    assert rejected.item == items[0]
    assert "'soon' has not the form of ISO 8601" in rejected.reason
    assert issubclass(AggregateByTime, Rejecting)
    with pytest.raises(ItemRejected, match="soon"):
        Alone(by_time(), connected=["results"]).send(*items)


def test_the_time_of_a_result_is_the_last_instant_of_its_window():
    result = WindowResult("a", at(0), at(10), 1)
    assert result.event_time == at(10) - timedelta(microseconds=1)
