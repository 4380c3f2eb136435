"""Malhar's arithmetic, to the number."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit import Backlog, Capacity
from dagkit.scaling import Decision, Follower, ScalingInputs, ScalingSettings, decide
from dagkit.scaling.apex import AS_MANY, LEAST, MOST, POWER


def _looked(blocks: int, before: int = 1, least: int = 1, most: int | None = 16, *, compat: bool = False) -> Decision:
    bounds = {"min_partitions": least, "max_partitions": most}
    settings = ScalingSettings(policy="apex", policy_settings={"apex_compat": compat}, **bounds)
    backlog = Backlog(blocks=blocks, pieces=blocks)
    return decide(ScalingInputs(settings=settings, before=before, at_millis=0, backlog=backlog))


@pytest.mark.parametrize(
    ("blocks", "count"),
    [
        *[(0, 1), (1, 1), (2, 2), (3, 2), (4, 4), (5, 4), (6, 4), (7, 4), (8, 8), (10, 8), (12, 8), (15, 8)],
        *[(16, 16), (17, 16), (100, 16), (10**9, 16)],
    ],
)
def test_adjusted_count(blocks, count):
    """AbstractBlockReaderTest.testAdjustedCount."""
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
def test_what_becomes_of_a_count(blocks, before, after, rule):
    decision = _looked(blocks, before=before)
    assert (decision.after, decision.rule) == (after, rule)


def test_the_most_is_not_rounded():
    assert _looked(100, most=12).after == 12


@pytest.mark.parametrize(("compat", "count"), [(False, 3), (True, 2)], ids=["the minimum is kept", "as Malhar does"])
def test_rounding_goes_below_the_least_only_where_malhar_is_wanted(compat, count):
    assert _looked(3, before=4, least=3, compat=compat).after == count


def _follow(follower: Follower, settings: ScalingSettings, blocks: int, before: int, at: int) -> int | None:
    looked = follower.look(settings, before, at, Backlog(blocks=blocks), Capacity())
    return None if looked is None else looked[1].after


@pytest.mark.parametrize(
    ("given", "interval"), [({"interval_millis": 500}, 500), ({}, 120_000)], ids=["as set", "two minutes"]
)
def test_the_second_look_waits_for_the_interval(given, interval):
    follower, settings = Follower(), ScalingSettings(policy="apex", **given)
    looks = [(10, 1, 0), (100, 8, interval - 1), (10, 8, interval), (100, 8, 2 * interval - 1), (100, 8, 2 * interval)]
    assert [_follow(follower, settings, *look) for look in looks] == [8, None, 8, None, 16]


@given(st.integers(0, 10**7), st.integers(1, 64), st.integers(1, 40), st.integers(0, 40))
def test_the_count_is_within_its_bounds(blocks, before, least, more):
    after = _looked(blocks, before=before, least=least, most=least + more).after
    assert least <= after <= least + more or (after == before == blocks)
