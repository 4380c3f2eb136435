from datetime import timedelta

import pytest

from dagkit.engine.record.pace import Pace, TimeLeft
from tests.engine.record.launches import NOON


def read(*samples: tuple[float, int]) -> Pace:
    """The pace of a launch that has read so much after so many seconds."""
    pace = Pace()
    pace.resume(NOON)
    for seconds, positions in samples:
        pace.add(after(seconds), positions)
    return pace


def test_the_time_before_slots_first_report_does_not_count():
    pace = Pace()
    pace.resume(NOON)
    for seconds, positions in ((60, 50), (61, 150)):
        pace.report(after(seconds), positions)
    assert pace.time_for(600, after(61)) == TimeLeft(6, 6, 6)


def after(seconds):
    return NOON + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("samples", "left"),
    [
        ([], None),
        ([(1, 100)], TimeLeft(6, 6, 6)),
        ([(10, 1000), (100, 1900)], TimeLeft(60, 31.579, 60)),
        ([*((n, 100 * n) for n in range(1, 31)), *((n, 3000 + 200 * (n - 30)) for n in range(31, 36))],
         TimeLeft(5.143, 3, 5.25)),
    ],
    ids=[
        "nothing was read",
        "at one speed",
        "a sample may be older than the period",
        "the last seconds were faster",
    ],
)  # fmt: skip
def test_the_time_left_has_the_bounds_of_three_speeds(samples, left):
    found = read(*samples).time_for(600, after(samples[-1][0] if samples else 0))
    assert found == (
        left and TimeLeft(*(pytest.approx(each, rel=1e-3) for each in (left.seconds, left.least, left.most)))
    )


def test_time_in_which_no_window_runs_does_not_count():
    pace = read((10, 1000))
    pace.resume(after(1000))
    assert pace.time_for(600, after(1000)) == TimeLeft(6, 6, 6)


def test_an_attempt_that_failed_does_not_slow_the_pace_down():
    pace = read((10, 1000))
    pace.add(after(11), 200)
    pace.add(after(12), 1200)
    assert pace.per_second == 100


def test_many_short_windows_leave_few_samples_and_the_same_estimate():
    pace = Pace()
    for window in range(3000):
        pace.resume(after(window / 50))
        pace.add(after((window + 1) / 50), 1000 * (window + 1))
    assert len(pace._samples) < 150, "of 1,500 windows in half a minute"
    assert pace.time_for(600_000, after(60)) == TimeLeft(*[pytest.approx(12)] * 3)
