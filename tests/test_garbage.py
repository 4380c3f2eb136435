"""Garbage collection in a driver."""

import gc
import threading

import pytest

from dagkit.ground.garbage import YOUNG, rarely_collected
from tests.patience import join


@pytest.fixture(autouse=True)
def as_python_begins():
    """The settings with which Python begins; those of the tests' own process come back."""
    before = gc.get_threshold()
    gc.unfreeze()
    gc.set_threshold(700, 10, 10)
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


def test_a_run_searches_rarely_and_leaves_the_settings_as_they_were():
    with rarely_collected():
        assert (gc.get_threshold(), gc.get_freeze_count() > 0) == ((YOUNG, 10, 10), True)
    assert (gc.get_threshold(), gc.get_freeze_count()) == ((700, 10, 10), 0)


def test_the_last_of_overlapping_runs_restores_the_settings():
    first, second = rarely_collected(), rarely_collected()
    other = threading.Thread(target=second.__enter__)
    with first:
        other.start()
        join(other)
    assert gc.get_threshold()[0] == YOUNG
    second.__exit__(None, None, None)
    assert (gc.get_threshold(), gc.get_freeze_count()) == ((700, 10, 10), 0)


def test_a_run_that_fails_restores_the_settings():
    with pytest.raises(ZeroDivisionError, match="division"), rarely_collected():
        1 / 0  # noqa: B018
    assert (gc.get_threshold(), gc.get_freeze_count()) == ((700, 10, 10), 0)


@pytest.mark.parametrize("chosen", [0, 50_000], ids=["no search", "a rarer one"])
def test_a_threshold_that_its_user_chose_stays(chosen):
    gc.set_threshold(chosen, 5, 5)
    with rarely_collected():
        assert gc.get_threshold() == (chosen, 5, 5)
    assert gc.get_threshold() == (chosen, 5, 5)


def test_what_was_frozen_before_stays_frozen():
    gc.freeze()
    with rarely_collected():
        pass
    assert gc.get_freeze_count() > 0
