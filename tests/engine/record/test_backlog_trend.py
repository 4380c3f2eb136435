"""Whether the work that waits grows."""

from datetime import timedelta

import pytest

from dagkit.engine.record.backlog_trend import BacklogTrend
from tests.engine.record.launches import NOON


@pytest.mark.parametrize(
    ("waiting", "since"),
    [
        ([10, 17, 42, 92], 0),
        ([90, 10, 15, 30], 1),
        ([10, 11, 10, 14, 20], 2),
        ([10, 10, 10, 10], None),
        ([10, 10, 10, 100], None),
        ([100, 10, 100], None),
        ([10, 20, 40, 5], None),
    ],
    ids=[
        "more each time",
        "since it was least",
        "with small dips",
        "as much each time",
        "one large find is no trend",
        "nor is one after a small one",
        "a small find ends it",
    ],
)
def test_a_backlog_grows_if_more_waits_after_each_find(waiting, since):
    trend = BacklogTrend()
    for minute, positions in enumerate(waiting):
        trend.add(NOON + timedelta(minutes=minute), positions)
    assert trend.grows_since == (None if since is None else NOON + timedelta(minutes=since))


def test_finds_in_a_row_count_once_and_old_ones_are_forgotten():
    trend = BacklogTrend()
    for second in range(4):
        trend.add(NOON + timedelta(seconds=second), 10 + second)
    trend.add(NOON + timedelta(seconds=60), 30)
    assert trend.grows_since is None, "there were two finds"
    trend.add(NOON + timedelta(minutes=30), 60)
    assert trend.grows_since == NOON
    trend.add(NOON + timedelta(minutes=62), 61)
    assert trend.grows_since is None, "of the last hour, there is no third one that is half as large"
