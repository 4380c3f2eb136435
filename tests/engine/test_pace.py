"""How long a window is, and how much it is given."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit.engine.pace import FIRST_POSITIONS, LONGEST_MILLIS, Pace

NEW, KNOWN = Pace(500.0), Pace(500.0, per_milli=100.0)


@pytest.mark.parametrize(
    ("pace", "backlog", "slots", "lasts"),
    [
        pytest.param(NEW, 10**9, 2, 2500.0, id="a first window measures"),
        pytest.param(Pace(60_000.0), 10**9, 2, 60_000.0, id="no window is shorter than was asked for"),
        pytest.param(KNOWN, 0, 2, 500.0, id="with nothing to do a window is short"),
        pytest.param(KNOWN, 200_000, 2, 1000.0, id="a window is as long as its backlog"),
        pytest.param(KNOWN, 10**9, 2, LONGEST_MILLIS, id="in a large backlog windows are long"),
        pytest.param(KNOWN, 100_000, 0, 1000.0, id="no slots count as one"),
    ],
)
def test_how_long_a_window_lasts(pace: Pace, backlog: int, slots: int, lasts: float) -> None:
    assert pace.lasts_millis(backlog, slots) == lasts


@pytest.mark.parametrize(
    ("positions", "millis", "per_milli"),
    [
        pytest.param(0, 100.0, 100.0, id="a window that read nothing tells nothing"),
        pytest.param(100, 0.0, 100.0, id="one that took no time tells nothing"),
        pytest.param(600, 2.0, 200.0, id="the newest counts as much as all before"),
    ],
)
def test_what_is_known_after_a_window(positions: int, millis: float, per_milli: float) -> None:
    assert KNOWN.after(positions, millis).per_milli == per_milli


def test_the_first_measurement_is_all_that_is_known() -> None:
    assert NEW.after(1000, 10.0).per_milli == 100.0
    assert NEW.positions_each(1000.0) == FIRST_POSITIONS


@given(st.integers(0, 10**15), st.integers(0, 10**6), st.floats(0, 1e9), st.integers(0, 64))
def test_every_window_ends_and_is_given_something(positions: int, slots: int, millis: float, backlog: int) -> None:
    pace = NEW.after(positions, millis)
    lasts = pace.lasts_millis(backlog, slots)
    assert 500.0 <= lasts <= LONGEST_MILLIS
    assert pace.positions_each(lasts) > 0
