"""What is done and what is left, from whatever is known."""

import math

import pytest

from dagkit.ranges import Progress, ProgressInvalid
from tests.cases import cases


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
