"""What is covered, done and left; watermarks; and what follows a commit."""

import copy
import logging
import math
import pickle
from collections import Counter
from datetime import UTC, datetime, timedelta, timezone
from threading import Barrier, Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit.ranges import (
    BundleFinalizer,
    ManualWatermarkEstimator,
    MonotonicWatermarkEstimator,
    Progress,
    ProgressInvalid,
    WalltimeWatermarkEstimator,
    WatermarkInvalid,
)
from dagkit.ranges.coverage import Bounds, surplus
from tests.cases import cases
from tests.patience import join, within

stretches = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 6)).map(lambda each: (each[0], each[0] + each[1])))


def counted(given: list[Bounds]) -> Counter[int]:
    return Counter(position for start, end in given for position in range(int(start), int(end)))


@given(one=stretches, other=stretches)
def test_a_surplus_covers_what_one_covers_more_often(one, other):
    assert counted(surplus(one, other)) == counted(one) - counted(other)


@given(one=stretches, other=stretches)
def test_equal_coverage_is_written_equally(one, other):
    assert (surplus(one) == surplus(other)) == (counted(one) == counted(other))


@cases(
    "progress, completed, remaining",
    ("a fraction alone", Progress.of_fraction(0.25), 0.25, 0.75),
    ("work left", Progress.of_remaining(30, 0.25), 10, 30),
    ("nothing done yet", Progress.of_remaining(30, 0), 0, 30),
    ("work done", Progress.of_completed(10, 0.25), 10, 30),
    ("all done", Progress.of_completed(10, 1), 10, 0),
)
def test_the_missing_part_follows(progress, completed, remaining):
    assert (progress.completed, progress.remaining) == (completed, remaining)
    assert progress.total == completed + remaining


@pytest.mark.parametrize(
    ("progress", "fraction"),
    [(Progress(10, 30), 0.25), (Progress(0, 0), 1.0), (Progress(10, math.inf), 0.0)],
    ids=["a quarter", "nothing to do is done", "no end is never nearer"],
)
def test_fractions(progress, fraction):
    assert (progress.fraction_completed, progress.fraction_remaining) == (fraction, 1 - fraction)


@cases(
    "make",
    ("less than nothing done", lambda: Progress(-1, 1)),
    ("less than nothing left", lambda: Progress(1, -1)),
    ("all of infinity", lambda: Progress(math.inf, 1)),
    ("no number", lambda: Progress(math.nan, 1)),
    ("no whole", lambda: Progress.of_remaining(30, 1)),
    ("no whole yet", lambda: Progress.of_completed(30, 0)),
)
def test_numbers_that_are_no_progress(make):
    with pytest.raises(ProgressInvalid, match="is not valid progress"):
        make()


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


@pytest.fixture
def finalizer():
    return BundleFinalizer()


def test_callbacks_are_called_in_order_and_once_and_a_copy_has_its_own(finalizer):
    acknowledged = []
    for offset in (10, 20):
        finalizer.register(lambda offset=offset: acknowledged.append(offset))
    copy.copy(finalizer).finalize()
    assert acknowledged == []
    assert [finalizer.finalize(), finalizer.finalize()] == [0, 0]
    assert acknowledged == [10, 20]


def test_one_that_fails_is_logged_and_does_not_keep_the_others(finalizer, caplog):
    acknowledged = []

    def acknowledge():
        raise ConnectionError("the bus is gone")

    finalizer.register(acknowledge)
    finalizer.register(lambda: acknowledged.append(20))
    with caplog.at_level(logging.ERROR):
        assert finalizer.finalize() == 1
    assert acknowledged == [20]
    assert "acknowledge" in caplog.text
    assert "the bus is gone" in caplog.text


def test_one_may_register_for_the_next_commit(finalizer):
    acknowledged = []
    finalizer.register(lambda: finalizer.register(lambda: acknowledged.append(2)))
    finalizer.finalize()
    assert acknowledged == []
    finalizer.finalize()
    assert acknowledged == [2]


def test_two_that_finalize_at_once_call_each_callback_once(finalizer):
    acknowledged, start = [], Barrier(4)
    for offset in range(200):
        finalizer.register(lambda offset=offset: acknowledged.append(offset))

    def finalize():
        start.wait(within(30))
        finalizer.finalize()

    threads = [Thread(target=finalize) for _ in range(4)]
    for thread in threads:
        thread.start()
    join(*threads)
    assert sorted(acknowledged) == list(range(200))
