"""How many lines are claimed at once: as many as are soon done."""

from itertools import pairwise

import numpy as np
import pytest

from dagkit_operators.contexts.chunk import Chunk
from dagkit_operators.contexts.portions import CLAIM_SECONDS, FIRST_CLAIM, GROWTH, QUICK_SECONDS, in_portions

LINES = 100_000


def chunk_of(count: int, base: int = 0) -> Chunk:
    return Chunk(np.frombuffer(b"line\n" * count, np.uint8), base, b"\n")


def portions_of(seconds: list[float]) -> list[int]:
    """How many lines are claimed, claim by claim, where each line takes as long as is said of it."""
    done, now, sizes = 0, [0.0], []
    for part in in_portions([chunk_of(len(seconds), base=7)], lambda: now[0]):
        assert part.base == 7 + 5 * done
        assert part.data.tobytes() == b"line\n" * len(part)
        sizes.append(len(part))
        now[0] += sum(seconds[done : done + len(part)])
        done += len(part)
    assert done == len(seconds)
    return sizes


@pytest.mark.parametrize("seconds", [QUICK_SECONDS / 2, 0.0], ids=["quick lines", "a clock that stands still"])
def test_quick_lines_are_claimed_as_they_were_read(seconds):
    assert portions_of([seconds] * LINES) == [FIRST_CLAIM, GROWTH * FIRST_CLAIM, LINES - 9 * FIRST_CLAIM]


def test_slow_lines_are_claimed_few_at_a_time():
    sizes = portions_of([CLAIM_SECONDS / 10] * 1000)
    assert sizes[0] == FIRST_CLAIM
    assert set(sizes[1:-1]) <= {9, 10}


def test_of_lines_that_take_longer_than_a_claim_each_is_claimed_by_itself():
    assert portions_of([1.0] * 200) == [FIRST_CLAIM, *[1] * (200 - FIRST_CLAIM)]


def test_lines_that_get_a_hundred_times_slower_keep_one_claim_from_its_end_for_half_a_second():
    cheap, dear = 1e-4, 1e-2
    sizes = portions_of([cheap] * 5000 + [dear] * 200)
    assert max(sizes) * dear <= 1.01 * 100 * CLAIM_SECONDS


def test_lines_that_get_quicker_are_claimed_more_and_more_at_a_time():
    sizes = portions_of([0.1] * 100 + [QUICK_SECONDS * 2] * LINES)
    after_first = sizes[1:]
    assert all(after <= GROWTH * before for before, after in pairwise(after_first))
    assert max(sizes) == pytest.approx(CLAIM_SECONDS / QUICK_SECONDS / 2, abs=1)


def test_what_took_one_slow_claim_is_soon_forgotten():
    assert len(portions_of([1.0] + [QUICK_SECONDS / 2] * LINES)) <= 5
