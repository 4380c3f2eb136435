"""How long a window is, and how much it is given."""

from dataclasses import replace
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit.engine.work.schedule import FIRST_POSITIONS, LEAST_ERROR, WindowLength, WindowSizer
from dagkit.scaling.policy import LONGEST_MILLIS

NEW = WindowSizer(500.0)
RIGHT = WindowSizer(500.0, positions=1000.0, millis=10.0, overhead_millis=100.0, error=0.04)
WRONG = WindowSizer(500.0, positions=1000.0, millis=10.0, overhead_millis=100.0, error=1.0)
SHARED = replace(WRONG, hands_over=True)


@pytest.mark.parametrize(
    ("pace", "backlog", "lasts", "work"),
    [
        (NEW, 10**9, 2500.0, FIRST_POSITIONS),  # a first window measures
        (NEW, 10**6, 1000.0, FIRST_POSITIONS),  # and is short where there is little to read
        (WindowSizer(60_000.0), 10**9, 60_000.0, FIRST_POSITIONS),  # no window is shorter than asked for
        (RIGHT, 0, 500.0, 0),  # with nothing to do a window is short
        (RIGHT, 2000.0, 2260.0, 2000.0),  # what is known well is done in one window
        (RIGHT, 10_000.0, 5000.0, 5000.0),  # what is known less well is done in several
        (WRONG, 10_000.0, 1000.0, 1000.0),  # where forecasts are wrong windows are short
        (SHARED, 10_000.0, *[sqrt(10_000.0 * 100.0 / LEAST_ERROR)] * 2),  # unless slots hand work over
        (WRONG, 600.0, 600.0, 600.0),  # and no slot waits for what takes longer than it should
        (RIGHT, 1e9, LONGEST_MILLIS, LONGEST_MILLIS),  # in a large backlog windows are long
    ],
)
def test_the_next_window(pace, backlog, lasts, work):
    assert pace.next(backlog) == pytest.approx(WindowLength(lasts, work))


def test_windows_that_are_delivered_while_the_next_one_runs_are_short():
    """Slots have nothing to do while the last one is delivered."""
    exact = replace(RIGHT, hands_over=True)
    assert exact.next(10_000.0, is_delivered=True) == pytest.approx(WindowLength(1000.0, 1000.0))


def test_windows_get_shorter_as_the_backlog_does():
    lengths = [WRONG.next(backlog).lasts_millis for backlog in (1e6, 1e5, 2e4, 5e3, 1e3)]
    assert lengths == sorted(lengths, reverse=True)
    assert (lengths[0], lengths[-1]) == (LONGEST_MILLIS, 500.0)


@pytest.mark.parametrize(
    ("pace", "positions", "millis", "usual"),
    [
        (RIGHT, 0, 100.0, 0.01),  # a window that read nothing shows nothing
        (RIGHT, 100, 0.0, 0.01),  # nor does one that took no time
        (RIGHT, 900, 27.0, 0.02),  # what was read counts as much as all before that is remembered
        (NEW, 0, 0.0, None),  # nothing is usual before anything was measured
        (NEW, 1000, 10.0, 0.01),
    ],
)
def test_what_is_known_after_a_window(pace, positions, millis, usual):
    assert pace.after(positions, millis).usual == pytest.approx(usual)


@pytest.mark.parametrize(
    ("expected", "took", "error"),
    [
        ([100.0, 200.0], [300.0, 600.0], LEAST_ERROR),  # all were slower alike
        ([100.0, 100.0], [50.0, 150.0], 0.5),
        ([100.0, 100.0], [0.0, 500.0], 1.0),
        ([1.0], [9.0], RIGHT.error),  # a slot alone waits for no other
    ],
)
def test_a_forecast_is_as_wrong_as_slots_were_off(expected, took, error):
    assert RIGHT.after_forecast(expected, took).error == pytest.approx(error)


def test_a_wrong_forecast_is_forgotten_by_and_by():
    pace, errors = WRONG, []
    for _ in range(8):
        pace = pace.after_forecast([1.0, 1.0], [1.0, 1.0])
        errors.append(pace.error)
    assert errors == sorted(errors, reverse=True)
    assert (errors[0], errors[-1]) == (0.5, LEAST_ERROR)


def test_what_a_window_costs_is_believed_at_once_where_it_is_less_and_slowly_where_it_is_more():
    assert RIGHT.after_window(1040.0, 1000.0).overhead_millis == 40.0
    assert RIGHT.after_window(9000.0, 1000.0).overhead_millis == 125.0


@given(st.integers(0, 10**15), st.floats(0, 1e9), st.floats(0, 1e12), st.floats(0.0, 1.0))
def test_every_window_ends_and_is_given_something(positions, millis, backlog, off):
    pace = NEW.after(positions, millis).after_forecast([1.0, 1.0], [1.0 - off, 1.0 + off])
    length = pace.next(backlog)
    assert 500.0 <= length.lasts_millis <= 2 * LONGEST_MILLIS
    assert length.work_millis > 0 or not backlog
