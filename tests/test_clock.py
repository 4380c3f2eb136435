"""The machine's clock as a run sees it."""

from datetime import UTC, datetime, timedelta

import pytest

from dagkit.ground.clock import PATIENCE, SystemClock, patient

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


class Machine:
    """What a machine's two clocks say."""

    def __init__(self):
        self.said, self.passed = NOON, 0.0
        self.clock = SystemClock(lambda: self.said, lambda: self.passed)

    def after(self, seconds, *, set_by=timedelta()):
        self.passed += seconds
        self.said += timedelta(seconds=seconds) + set_by
        return self.clock.now() - NOON


def test_a_clock_that_is_set_back_goes_on_at_the_same_pace_and_one_that_is_set_forward_is_followed():
    machine = Machine()
    assert machine.after(5) == timedelta(seconds=5)
    assert machine.after(1, set_by=-timedelta(hours=1)) == timedelta(seconds=6)
    assert machine.after(2) == timedelta(seconds=8)
    assert Machine().after(1, set_by=timedelta(hours=1)) == timedelta(hours=1, seconds=1)


def test_the_machine_says_what_time_it_is():
    before = datetime.now(UTC)
    assert before <= SystemClock().now() <= datetime.now(UTC) + timedelta(seconds=1)


@pytest.mark.parametrize("factor", ["3", "0.5", "0", "-1", "nan", "inf", "long", "", None])
def test_the_variable_multiplies_limits_if_it_is_a_positive_number(factor, monkeypatch):
    monkeypatch.delenv(PATIENCE, raising=False)
    if factor is not None:
        monkeypatch.setenv(PATIENCE, factor)
    assert patient(2.0) == {"3": 6.0, "0.5": 1.0}.get(factor, 2.0)
