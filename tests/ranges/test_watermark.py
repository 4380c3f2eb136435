"""Watermarks never go back, whatever estimates them."""

import copy
import pickle
from datetime import UTC, datetime, timedelta, timezone

import pytest

from dagkit.ranges import (
    ManualWatermarkEstimator,
    MonotonicWatermarkEstimator,
    WalltimeWatermarkEstimator,
    WatermarkInvalid,
)
from tests.cases import cases


def at(minute):
    return datetime(2024, 5, 1, 12, minute, tzinfo=UTC)


def test_records_in_order_move_the_watermark_and_between_two_questions_the_last_counts():
    estimator = MonotonicWatermarkEstimator()
    told = [estimator.current_watermark()]
    for minute in (1, 5, 3, 9):
        estimator.observe_timestamp(at(minute))
        told.append(estimator.current_watermark())
    assert told == [None, at(1), at(5), at(5), at(9)]
    estimator = MonotonicWatermarkEstimator()
    estimator.observe_timestamp(at(5))
    estimator.observe_timestamp(at(3))
    assert estimator.current_watermark() == at(3)


def test_the_state_is_what_was_reported_and_an_estimator_goes_on_from_it():
    estimator = MonotonicWatermarkEstimator(at(5))
    estimator.observe_timestamp(at(3))
    assert (estimator.current_watermark(), estimator.estimator_state()) == (at(5), at(5))
    estimator.observe_timestamp(at(7))
    assert estimator.estimator_state() == at(5)
    assert (estimator.current_watermark(), estimator.estimator_state()) == (at(7), at(7))


def test_a_clock_moves_the_watermark_forward_only():
    minutes = iter([3, 5, 4, 6])
    estimator = WalltimeWatermarkEstimator(lambda: at(next(minutes)), at(4))
    estimator.observe_timestamp(at(59))
    assert [estimator.current_watermark() for _ in range(4)] == [at(4), at(5), at(5), at(6)]


def test_a_reader_that_knows_sets_the_watermark_which_is_in_utc():
    estimator = ManualWatermarkEstimator()
    estimator.observe_timestamp(at(59))
    assert estimator.current_watermark() is None
    for minute in (3, 3, 5):
        estimator.set_watermark(at(minute))
        assert estimator.current_watermark() == estimator.estimator_state() == at(minute)
    with pytest.raises(WatermarkInvalid, match="already reached 2024-05-01T12:05:00"):
        estimator.set_watermark(at(4))
    assert estimator.current_watermark() == at(5)
    estimator = ManualWatermarkEstimator()
    estimator.set_watermark(datetime(2024, 5, 1, 14, 3, tzinfo=timezone(timedelta(hours=2))))
    assert estimator.current_watermark() == at(3)
    assert estimator.current_watermark().tzinfo is UTC


@cases(
    "use",
    ("set", lambda instant: ManualWatermarkEstimator().set_watermark(instant)),
    ("given as state", ManualWatermarkEstimator),
    ("observed", lambda instant: MonotonicWatermarkEstimator().observe_timestamp(instant)),
    ("read from a clock", lambda instant: WalltimeWatermarkEstimator(lambda: instant).current_watermark()),
)
@pytest.mark.parametrize(
    ("instant", "words"),
    [(5, "it is not a datetime"), (datetime(2024, 5, 1), "give it a tzinfo")],  # noqa: DTZ001
    ids=["a number", "a naive instant"],
)
def test_a_watermark_is_an_aware_instant(use, instant, words):
    with pytest.raises(WatermarkInvalid, match=words):
        use(instant)


@pytest.mark.parametrize("copied", [copy.copy, lambda estimator: pickle.loads(pickle.dumps(estimator))])  # noqa: S301
def test_a_copy_goes_on_from_there_on_its_own(copied):
    estimator = ManualWatermarkEstimator(at(3))
    twin = copied(estimator)
    twin.set_watermark(at(5))
    assert (estimator.current_watermark(), twin.current_watermark()) == (at(3), at(5))
