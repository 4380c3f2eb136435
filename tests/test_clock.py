"""The machine's clock as a run sees it."""

from datetime import UTC, datetime, timedelta

import pytest

from dagkit.clock import PATIENCE, SystemClock, patient

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


class Machine:
    """What a machine's two clocks say."""

    def __init__(self) -> None:
        self.said = NOON
        self.passed = 0.0

    def after(self, seconds: float, *, set_by: timedelta = timedelta()) -> None:
        self.passed += seconds
        self.said += timedelta(seconds=seconds) + set_by

    def clock(self) -> SystemClock:
        return SystemClock(lambda: self.said, lambda: self.passed)


def test_a_clock_that_is_set_back_goes_on_at_the_same_pace():
    machine = Machine()
    clock = machine.clock()
    machine.after(5)
    assert clock.now() == NOON + timedelta(seconds=5)
    machine.after(1, set_by=-timedelta(hours=1))
    assert clock.now() == NOON + timedelta(seconds=6)
    machine.after(2)
    assert clock.now() == NOON + timedelta(seconds=8)


def test_a_clock_that_is_set_forward_is_followed():
    machine = Machine()
    clock = machine.clock()
    machine.after(1, set_by=timedelta(hours=1))
    assert clock.now() == NOON + timedelta(hours=1, seconds=1)


def test_the_machine_says_what_time_it_is():
    before = datetime.now(UTC)
    assert before <= SystemClock().now() <= datetime.now(UTC) + timedelta(seconds=1)


@pytest.mark.parametrize(
    ("factor", "seconds"),
    [("3", 6.0), ("0.5", 1.0), ("0", 2.0), ("-1", 2.0), ("nan", 2.0), ("inf", 2.0), ("long", 2.0), ("", 2.0)],
)
def test_the_variable_multiplies_limits_if_it_is_a_positive_number(factor, seconds, monkeypatch):
    monkeypatch.setenv(PATIENCE, factor)
    assert patient(2.0) == seconds


def test_without_the_variable_limits_stay(monkeypatch):
    monkeypatch.delenv(PATIENCE, raising=False)
    assert patient(2.0) == 2.0
