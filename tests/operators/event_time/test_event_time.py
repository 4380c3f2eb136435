"""Event times in all their forms, their windows, and sums of files in event time, across partitions and launches."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from dagkit.testing import Alone
from dagkit_operators import EventTime, SessionWindows, SlidingWindows, TumblingWindows
from dagkit_operators.values.timed_elements import instant_of, micros_of
from tests.cases import cases
from tests.engine.cast import Desk, Hurried
from tests.operators.event_time.sums import received, sums, totals, write
from tests.operators.ways import BOTH_WAYS


@cases(
    "launches, ends",
    ("one partition", [(1, 61)], (20, 40, 60)),
    ("three", [(3, 61)], (20, 40, 60)),
    ("a later launch", [(2, 30), (2, 90)], (20, 40, 60, 80)),
    ("more partitions later", [(1, 38), (3, 61)], (20, 40, 60)),
    ("fewer later", [(3, 38), (2, 61)], (20, 40, 60)),
)
def test_results_do_not_depend_on_blocks_nor_partitions_nor_launches(tmp_path, launches, ends):
    begin = 0
    for partitions, end in launches:
        write(tmp_path, f"{end}.txt", range(begin, end))
        desk = Desk(tmp_path, sums(tmp_path, partitions=partitions), backend=Hurried)
        desk.run()
        begin = end
    assert (received(desk), received(desk, "late")) == (totals(*ends), [])


@BOTH_WAYS
@pytest.mark.parametrize(
    ("event_time", "items", "bad", "second"),
    [
        (EventTime(time=lambda second: second, out_of_order_millis=2000), [5, 9, 7], [], 7),
        (EventTime(time="at", time_unit="ms"), [{"at": 1000}], [{"at": None}], 1),
    ],
    ids=["less the tolerance", "an item without a time is rejected and does not count"],
)
def test_the_watermark_is_the_latest_time(send, event_time, items, bad, second):
    alone = Alone(event_time)
    assert alone.operator.current_watermark() is None
    with alone.window():
        send(alone, *items, *bad)
    assert (alone.sent(), [each.item for each in alone.sent("rejected")]) == (items, bad)
    assert alone.operator.current_watermark() == datetime(1970, 1, 1, 0, 0, second, tzinfo=UTC)


NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
MICROS = 1_704_110_400_000_000


@pytest.mark.slow
@given(micros=st.integers(-(10**12), 10**12), length=st.integers(1, 10**6), offset=st.integers(-(10**6), 10**6))
def test_an_instant_is_in_one_tumbling_window(micros, length, offset):
    ((start, end),) = TumblingWindows(millis=length, offset_millis=offset).around(micros)
    assert start <= micros < end
    assert end - start == length * 1000
    assert (start - offset * 1000) % (length * 1000) == 0


@pytest.mark.slow
@given(micros=st.integers(-(10**12), 10**12), every=st.integers(1, 1000), more=st.integers(0, 3000))
def test_an_instant_is_in_each_sliding_window_around_it(micros, every, more):
    length = every + more
    found = list(SlidingWindows(millis=length, every_millis=every).around(micros))
    around = range(micros // 1000 - length - every, micros // 1000 + every + 1)
    starts = [millis for millis in around if millis % every == 0]
    assert found == [(s * 1000, (s + length) * 1000) for s in starts if s * 1000 <= micros < (s + length) * 1000]


def test_sessions_have_the_length_of_their_gap_and_sliding_windows_no_gaps():
    assert list(SessionWindows(gap_millis=5).around(7)) == [(7, 5007)]
    with pytest.raises(ValidationError, match="every_millis is 6, which is longer than a window of 5"):
        SlidingWindows(millis=5, every_millis=6)


@pytest.mark.parametrize(
    ("time", "unit"),
    [
        (NOON, "s"),
        (NOON.replace(tzinfo=None), "s"),
        (NOON.astimezone(timezone(timedelta(hours=5))), "s"),
        ("2024-01-01T12:00:00Z", "s"),
        ("2024-01-01T17:00:00+05:00", "ms"),
        ("2024-01-01 12:00", "s"),
        (MICROS // 10**6, "s"),
        (MICROS / 10**6, "s"),
        (MICROS // 1000, "ms"),
        (MICROS, "us"),
        (MICROS * 1000 + 999, "ns"),
    ],
)
def test_an_event_time_has_many_forms(time, unit):
    assert micros_of(time, unit) == MICROS
    assert instant_of(MICROS) == NOON


@pytest.mark.parametrize(
    ("time", "reason"),
    [
        (None, "the event time None is no time"),
        (True, "is no time"),
        (float("nan"), "is no time"),
        ("yesterday", "'yesterday' has not the form of ISO 8601"),
        (MICROS, "is not between the years 1 and 9999, in s since 1970"),
    ],
)
def test_what_is_no_time_is_refused(time, reason):
    with pytest.raises(ValueError, match=reason):
        micros_of(time)
