"""How long a window is, and how much it is given."""

from dataclasses import replace
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit.engine.work.window_size import FIRST_POSITIONS, LEAST_ERROR, WindowLength, WindowSizer
from dagkit.scaling.policy import LONGEST_MILLIS

NEW = WindowSizer(500.0)
RIGHT = WindowSizer(500.0, positions=1000.0, millis=10.0, overhead_millis=100.0, error=0.04)
WRONG = WindowSizer(500.0, positions=1000.0, millis=10.0, overhead_millis=100.0, error=1.0)


@pytest.mark.parametrize(
    ("pace", "backlog", "length"),
    [
        pytest.param(NEW, 10**9, WindowLength(2500.0, FIRST_POSITIONS), id="a first window measures"),
        pytest.param(
            NEW, 10**6, WindowLength(1000.0, FIRST_POSITIONS), id="and is short where there is little to read"
        ),
        pytest.param(
            WindowSizer(60_000.0),
            10**9,
            WindowLength(60_000.0, FIRST_POSITIONS),
            id="no window is shorter than asked for",
        ),
        pytest.param(RIGHT, 0, WindowLength(500.0, 0), id="with nothing to do a window is short"),
        pytest.param(RIGHT, 2000.0, WindowLength(2260.0, 2000.0), id="what is known well is done in one window"),
        pytest.param(RIGHT, 10_000.0, WindowLength(5000.0, 5000.0), id="what is known less well is done in several"),
        pytest.param(WRONG, 10_000.0, WindowLength(1000.0, 1000.0), id="where forecasts are wrong windows are short"),
        pytest.param(
            replace(WRONG, hands_over=True),
            10_000.0,
            WindowLength(sqrt(10_000.0 * 100.0 / LEAST_ERROR), sqrt(10_000.0 * 100.0 / LEAST_ERROR)),
            id="where slots hand work over, wrong forecasts do not shorten windows",
        ),
        pytest.param(
            WRONG, 600.0, WindowLength(600.0, 600.0), id="and no slot waits for what takes longer than it should"
        ),
        pytest.param(
            RIGHT, 1e9, WindowLength(LONGEST_MILLIS, LONGEST_MILLIS), id="in a large backlog windows are long"
        ),
    ],
)
def test_the_next_window(pace, backlog, length):
    assert pace.next(backlog) == pytest.approx(length)


def test_windows_that_are_delivered_while_the_next_one_runs_are_short():
    """Slots have nothing to do while the last one is delivered."""
    exact = replace(RIGHT, hands_over=True)
    assert exact.next(10_000.0, is_delivered=True) == pytest.approx(WindowLength(1000.0, 1000.0))


def test_windows_get_shorter_as_the_backlog_does():
    lengths = [WRONG.next(backlog).lasts_millis for backlog in (1e6, 1e5, 2e4, 5e3, 1e3)]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] == LONGEST_MILLIS
    assert lengths[-1] == 500.0


@pytest.mark.parametrize(
    ("positions", "millis", "usual"),
    [
        pytest.param(0, 100.0, 0.01, id="a window that read nothing shows nothing"),
        pytest.param(100, 0.0, 0.01, id="one that took no time shows nothing"),
        pytest.param(900, 27.0, 0.02, id="what was read counts as much as all before that is remembered"),
    ],
)
def test_what_is_known_after_a_window(positions, millis, usual):
    assert RIGHT.after(positions, millis).usual == pytest.approx(usual)


def test_nothing_is_usual_before_anything_was_measured():
    assert NEW.usual is None
    assert NEW.after(1000, 10.0).usual == 0.01


def test_a_forecast_by_which_all_were_slower_alike_was_right():
    assert RIGHT.after_forecast([100.0, 200.0], [300.0, 600.0]).error == LEAST_ERROR


def test_a_forecast_is_as_wrong_as_slots_were_off():
    assert RIGHT.after_forecast([100.0, 100.0], [50.0, 150.0]).error == pytest.approx(0.5)
    assert RIGHT.after_forecast([100.0, 100.0], [0.0, 500.0]).error == 1.0


def test_a_wrong_forecast_is_forgotten_by_and_by():
    pace, errors = WRONG, []
    for _ in range(8):
        pace = pace.after_forecast([1.0, 1.0], [1.0, 1.0])
        errors.append(pace.error)
    assert errors == sorted(errors, reverse=True)
    assert errors[0] == 0.5
    assert errors[-1] == LEAST_ERROR


def test_a_slot_alone_waits_for_no_other():
    assert RIGHT.after_forecast([1.0], [9.0]) == RIGHT


def test_what_a_window_costs_is_believed_at_once_where_it_is_less_and_slowly_where_it_is_more():
    assert RIGHT.after_window(1040.0, 1000.0).overhead_millis == 40.0
    assert RIGHT.after_window(9000.0, 1000.0).overhead_millis == 125.0


@given(st.integers(0, 10**15), st.floats(0, 1e9), st.floats(0, 1e12), st.floats(0.0, 1.0))
def test_every_window_ends_and_is_given_something(positions, millis, backlog, off):
    pace = NEW.after(positions, millis).after_forecast([1.0, 1.0], [1.0 - off, 1.0 + off])
    length = pace.next(backlog)
    assert 500.0 <= length.lasts_millis <= 2 * LONGEST_MILLIS
    assert length.work_millis > 0 or not backlog
