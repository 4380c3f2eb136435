"""Partitions: which keys each owns, and how a fixed number of them follows load."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from dagkit import BatchedOperatorStats, Partition, PartitioningContext, PartitionKeys, StatelessPartitioner
from dagkit.api.partitioning import assign_keys, mask_for
from tests.cases import cases


@pytest.mark.parametrize(
    ("count", "mask", "keys"),
    [
        (1, 0, [{0}]),
        (2, 1, [{0}, {1}]),
        (3, 3, [{0, 3}, {1}, {2}]),
        (4, 3, [{0}, {1}, {2}, {3}]),
        (5, 7, [{0, 5}, {1, 6}, {2, 7}, {3}, {4}]),
        (8, 7, [{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}]),
    ],
)
def test_keys_are_assigned_in_turn(count, mask, keys):
    assert assign_keys(count) == [PartitionKeys(mask, frozenset(owned)) for owned in keys]


@pytest.mark.slow
@given(st.integers(1, 300), st.integers(-(2**63), 2**63))
def test_every_code_has_one_owner(count, code):
    assert sum(keys.owns(code) for keys in assign_keys(count)) == 1


@given(st.integers(1, 5000))
def test_the_mask_is_the_narrowest_that_distinguishes_the_partitions(count):
    mask = mask_for(count)
    assert mask + 1 >= count > (mask + 1) // 2 or count == 1


def _defined(partitions, *inputs, count=1, parallel=0, wanted=None):
    context = PartitioningContext(parallel_count=parallel, input_ports=inputs, wanted=wanted)
    return StatelessPartitioner(count).define_partitions(partitions, context)


def _first(count, *inputs, parallel=0):
    return _defined([Partition("op")], *inputs, count=count, parallel=parallel)


def _plain(partitions):
    return [(partition.operator, dict(partition.keys)) for partition in partitions]


@cases(
    "partitions, keys",
    ("only the first input is keyed", _first(3, "a", "b"), [{"a": keys} for keys in assign_keys(3)]),
    ("one owns all", _first(1, "a"), [{"a": PartitionKeys(0, frozenset({0}))}]),
    ("an input operator has no keys", _first(2), [{}, {}]),
    ("a mirror takes over the count, and owns no keys", _first(2, "a", parallel=5), [{}] * 5),
    ("a count may be text, as in property files", _first("2"), [{}, {}]),
)
def test_the_partitions_at_first_are_alike_and_as_many_as_asked(partitions, keys):
    assert _plain(partitions) == [("op", owned) for owned in keys]


@pytest.mark.parametrize("count", [0, -1, "x"])
def test_a_count_is_a_positive_number(count):
    with pytest.raises(ValidationError, match="partition_count"):
        StatelessPartitioner(count)


def test_a_mirror_grows_with_copies_and_shrinks_from_the_head():
    one, two, three = Partition("one"), Partition("two"), Partition("three")
    assert [p.operator for p in _defined([one, two], parallel=3)] == ["one", "two", "one"]
    assert [p.operator for p in _defined([one, two, three], parallel=1)] == ["three"]


def _keyed(owned):
    """Partitions of mask and key in binary, with their load."""
    return [
        Partition("op", {"in": PartitionKeys(int(mask, 2), frozenset({int(key, 2)}))}, load)
        for (mask, key), load in owned.items()
    ]


def _owned(partitions):
    return {(f"{keys.mask:b}", f"{key:b}") for p in partitions for keys in p.keys.values() for key in keys.keys}


A, B, C, D = (("11", key) for key in ("0", "1", "10", "11"))
LEFT, RIGHT, ALL = ("1", "0"), ("1", "1"), ("0", "0")


@cases(
    "owned, then",
    ("two idle siblings become one", {LEFT: -1, RIGHT: -1}, {ALL}),
    ("the only one stays, however idle", {ALL: -1}, {ALL}),
    ("the only one is split when loaded", {ALL: 1}, {LEFT, RIGHT}),
    ("two loaded ones become four", {LEFT: 1, RIGHT: 1}, {A, B, C, D}),
    ("of four, the idle siblings on the right become one", {A: 0, B: -1, C: 0, D: -1}, {A, C, RIGHT}),
    ("of four, the idle siblings on the left become one", {A: -1, B: 0, C: -1, D: 0}, {LEFT, B, D}),
    ("idle ones that are no siblings stay", {A: -1, B: -1}, {A, B}),
    ("idle ones of different masks stay", {A: -1, ("1", "10"): -1}, {A, ("1", "10")}),
    ("what is neither idle nor loaded stays", {LEFT: 0, RIGHT: 0}, {LEFT, RIGHT}),
)
def test_keys_follow_load(owned, then):
    assert _owned(_defined(_keyed(owned), "in")) == then


def test_a_loaded_partition_of_several_keys_is_split_by_key_and_one_that_stays_is_the_very_same():
    loaded = Partition("op", {"in": PartitionKeys(3, frozenset({0, 3}))}, 1)
    assert _owned(_defined([loaded], "in")) == {A, D}
    calm, loaded = _keyed({LEFT: 0, RIGHT: 1})
    again = _defined([calm, loaded], "in")
    assert again[0] is calm
    assert len(again) == 3


@pytest.mark.slow
@given(st.lists(st.sampled_from([-1, 0, 1]), min_size=1, max_size=12), st.integers(0, 200))
def test_after_any_rebalancing_every_code_still_has_one_owner(loads, code):
    partitions = zip(_first(len(loads), "in"), loads, strict=True)
    again = _defined([Partition(p.operator, p.keys, load) for p, load in partitions], "in")
    assert sum(p.keys["in"].owns(code) for p in again) == 1


@pytest.mark.parametrize(("before", "wanted"), [(1, 5), (5, 3), (3, 3)])
def test_a_wanted_count_is_made_and_redistributes_the_keys_but_a_mirror_follows_its_head(before, wanted):
    assert _defined(_first(before, "in"), "in", wanted=wanted) == _first(wanted, "in")
    assert len(_defined(_first(before), parallel=4, wanted=wanted)) == 4


def test_one_partition_that_has_run_is_no_first_call():
    ran = Partition("op", stats=BatchedOperatorStats(operator_id=1, current_window_id=1))
    assert (len(_first(4)), len(_defined([ran], count=4))) == (4, 1)
