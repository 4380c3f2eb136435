"""What is done and what is left, from whatever is known."""

import math

import pytest

from dagkit.ranges import FractionInvalid, Progress, ProgressInvalid


@pytest.mark.parametrize(
    ("progress", "completed", "remaining"),
    [
        (Progress.of_fraction(0.25), 0.25, 0.75),
        (Progress.of_remaining(30, 0.25), 10, 30),
        (Progress.of_remaining(30, 0), 0, 30),
        (Progress.of_completed(10, 0.25), 10, 30),
        (Progress.of_completed(10, 1), 10, 0),
    ],
    ids=["a fraction alone", "work left", "nothing done yet", "work done", "all done"],
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


@pytest.mark.parametrize(
    "make",
    [
        lambda: Progress(-1, 1),
        lambda: Progress(1, -1),
        lambda: Progress(math.inf, 1),
        lambda: Progress(math.nan, 1),
        lambda: Progress.of_remaining(30, 1),
        lambda: Progress.of_completed(30, 0),
    ],
    ids=[
        "less than nothing done",
        "less than nothing left",
        "all of infinity",
        "no number",
        "no whole",
        "no whole yet",
    ],
)
def test_numbers_that_are_no_progress(make):
    with pytest.raises(ProgressInvalid, match="is not valid progress"):
        make()


@pytest.mark.parametrize(
    "make", [Progress.of_fraction, lambda f: Progress.of_remaining(1, f), lambda f: Progress.of_completed(1, f)]
)
@pytest.mark.parametrize("fraction", [-0.1, 1.1, math.nan])
def test_a_fraction_lies_between_0_and_1(make, fraction):
    with pytest.raises(FractionInvalid, match="between 0 and 1"):
        make(fraction)
