"""Malhar's arithmetic, to the number."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit import Backlog
from dagkit.scaling import Decision, Past, ScalingInputs, ScalingSettings, decide
from dagkit.scaling.apex import AS_MANY, LEAST, MOST, POWER
from dagkit.scaling.policies import NOT_YET


def _looked(
    blocks: int,
    *,
    before: int = 1,
    least: int = 1,
    most: int | None = 16,
    at: int = 0,
    past: Past | None = None,
    interval: int | None = None,
    compat: bool = False,
) -> Decision:
    settings = ScalingSettings(
        policy="apex", min_readers=least, max_readers=most, interval_millis=interval, apex_compat=compat
    )
    backlog = Backlog(blocks=blocks, pieces=blocks)
    return decide(ScalingInputs(settings=settings, before=before, at_millis=at, backlog=backlog, past=past or Past()))


@pytest.mark.parametrize(
    ("blocks", "count"),
    [
        *[(0, 1), (1, 1), (2, 2), (3, 2), (4, 4), (5, 4), (6, 4), (7, 4), (8, 8), (10, 8), (12, 8), (15, 8)],
        *[(16, 16), (17, 16), (100, 16), (10**9, 16)],
    ],
)
def test_how_many_partitions_so_many_blocks_want(blocks: int, count: int) -> None:
    assert _looked(blocks).after == count


@pytest.mark.parametrize(
    ("blocks", "before", "after", "rule"),
    [
        pytest.param(100, 1, 16, MOST, id="a long queue goes straight to the most"),
        pytest.param(0, 16, 1, LEAST, id="an empty queue goes straight to the least"),
        pytest.param(7, 7, 7, AS_MANY, id="as many blocks as partitions is left alone, also where no power of two"),
        pytest.param(9, 8, 8, POWER, id="the same power again changes nothing"),
    ],
)
def test_what_becomes_of_a_count(blocks: int, before: int, after: int, rule: str) -> None:
    decision = _looked(blocks, before=before)
    assert (decision.after, decision.rule) == (after, rule)


def test_the_most_is_not_rounded() -> None:
    assert _looked(100, most=12).after == 12


@pytest.mark.parametrize(("compat", "count"), [(False, 3), (True, 2)], ids=["min_readers is kept", "as Malhar does"])
def test_rounding_goes_below_the_least_only_where_malhar_is_wanted(compat: bool, count: int) -> None:
    assert _looked(3, before=4, least=3, compat=compat).after == count


def test_the_second_look_waits_for_the_interval() -> None:
    first = _looked(10, interval=500)
    assert first.after == 8
    early = _looked(100, before=8, at=499, past=first.past, interval=500)
    assert (early.after, early.rule) == (8, NOT_YET)
    assert _looked(10, before=8, at=500, past=first.past, interval=500).after == 8
    assert _looked(100, before=8, at=500, past=first.past, interval=500).after == 16


def test_the_interval_is_two_minutes_unless_set() -> None:
    past = _looked(10).past
    assert _looked(100, before=8, at=119_999, past=past).rule == NOT_YET
    assert _looked(100, before=8, at=120_000, past=past).after == 16


@given(st.integers(0, 10**7), st.integers(1, 64), st.integers(1, 40), st.integers(0, 40))
def test_the_count_is_within_its_bounds(blocks: int, before: int, least: int, more: int) -> None:
    after = _looked(blocks, before=before, least=least, most=least + more).after
    assert least <= after <= least + more or (after == before == blocks)
