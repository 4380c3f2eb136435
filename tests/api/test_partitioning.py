"""Partitions: which keys each owns, and how a fixed number of them follows load."""

from collections.abc import Mapping, Sequence

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


def test_sixteen_blocks_go_round_five_partitions_by_their_low_bits():
    assigned = assign_keys(5)
    owners = [next(i for i, keys in enumerate(assigned) if keys.owns(block)) for block in range(16)]
    assert owners == [0, 1, 2, 3, 4, 0, 1, 2] * 2


@pytest.mark.slow
@given(st.integers(1, 300), st.integers(-(2**63), 2**63))
def test_every_code_has_one_owner(count, code):
    assert sum(keys.owns(code) for keys in assign_keys(count)) == 1


@given(st.integers(1, 5000))
def test_the_mask_is_the_narrowest_that_distinguishes_the_partitions(count):
    mask = mask_for(count)
    assert mask + 1 >= count > (mask + 1) // 2 or count == 1


def _first(count: int, *inputs: str, parallel: int = 0) -> Sequence[Partition]:
    context = PartitioningContext(parallel_count=parallel, input_ports=inputs)
    return StatelessPartitioner(count).define_partitions([Partition("op")], context)


def _again(partitions: Sequence[Partition], *inputs: str, parallel: int = 0) -> Sequence[Partition]:
    context = PartitioningContext(parallel_count=parallel, input_ports=inputs)
    return StatelessPartitioner(1).define_partitions(partitions, context)


@pytest.mark.parametrize("count", [1, 5])
def test_the_partitions_at_first_are_alike_and_as_many_as_asked(count):
    assert [partition.operator for partition in _first(count, "in")] == ["op"] * count


def test_only_the_first_input_is_keyed():
    partitions = _first(3, "first", "second")
    assert [dict(partition.keys) for partition in partitions] == [
        {"first": PartitionKeys(3, frozenset({0, 3}))},
        {"first": PartitionKeys(3, frozenset({1}))},
        {"first": PartitionKeys(3, frozenset({2}))},
    ]


def test_an_input_operator_has_no_keys():
    assert [dict(partition.keys) for partition in _first(2)] == [{}, {}]


def test_the_count_may_be_text_as_in_property_files():
    assert StatelessPartitioner("3").partition_count == 3


@pytest.mark.parametrize("count", [0, -1, "x"])
def test_a_count_is_a_positive_number(count):
    with pytest.raises(ValidationError, match="partition_count"):
        StatelessPartitioner(count)


def test_mirroring_takes_over_the_count_and_owns_no_keys():
    partitions = _first(2, "in", parallel=5)
    assert [(partition.operator, dict(partition.keys)) for partition in partitions] == [("op", {})] * 5


def test_a_mirror_grows_with_copies_and_shrinks_from_the_head():
    one, two, three = Partition("one"), Partition("two"), Partition("three")
    assert [p.operator for p in _again([one, two], parallel=3)] == ["one", "two", "one"]
    assert [p.operator for p in _again([one, two, three], parallel=1)] == ["three"]


Owned = Mapping[tuple[str, str], int]
"""Mask and key in binary, with the load."""


def _keyed(owned: Owned) -> list[Partition]:
    return [
        Partition("op", {"in": PartitionKeys(int(mask, 2), frozenset({int(key, 2)}))}, load)
        for (mask, key), load in owned.items()
    ]


def _owned(partitions: Sequence[Partition]) -> set[tuple[str, str]]:
    return {
        (f"{partition.keys['in'].mask:b}", f"{key:b}") for partition in partitions for key in partition.keys["in"].keys
    }


@cases(
    "owned, then",
    ("two idle siblings become one", {("1", "0"): -1, ("1", "1"): -1}, {("0", "0")}),
    ("the only one stays, however idle", {("0", "0"): -1}, {("0", "0")}),
    ("the only one is split when loaded", {("0", "0"): 1}, {("1", "0"), ("1", "1")}),
    (
        "two loaded ones become four",
        {("1", "0"): 1, ("1", "1"): 1},
        {("11", "0"), ("11", "10"), ("11", "1"), ("11", "11")},
    ),
    (
        "of four, the idle siblings on the right become one",
        {("11", "00"): 0, ("11", "01"): -1, ("11", "10"): 0, ("11", "11"): -1},
        {("11", "0"), ("11", "10"), ("1", "1")},
    ),
    (
        "of four, the idle siblings on the left become one",
        {("11", "00"): -1, ("11", "01"): 0, ("11", "10"): -1, ("11", "11"): 0},
        {("1", "0"), ("11", "1"), ("11", "11")},
    ),
    ("idle ones that are no siblings stay", {("11", "00"): -1, ("11", "01"): -1}, {("11", "0"), ("11", "1")}),
    ("idle ones of different masks stay", {("11", "00"): -1, ("1", "10"): -1}, {("11", "0"), ("1", "10")}),
    ("what is neither idle nor loaded stays", {("1", "0"): 0, ("1", "1"): 0}, {("1", "0"), ("1", "1")}),
)
def test_keys_follow_load(owned, then):
    assert _owned(_again(_keyed(owned), "in")) == then


def test_a_loaded_partition_of_several_keys_is_split_by_key():
    loaded = Partition("op", {"in": PartitionKeys(3, frozenset({0, 3}))}, 1)
    assert _owned(_again([loaded], "in")) == {("11", "0"), ("11", "11")}


def test_a_partition_that_stays_is_the_very_same():
    calm = Partition("op", {"in": PartitionKeys(1, frozenset({0}))})
    loaded = Partition("op", {"in": PartitionKeys(1, frozenset({1}))}, 1)
    again = _again([calm, loaded], "in")
    assert again[0] is calm
    assert len(again) == 3


@pytest.mark.parametrize(
    ("loads", "count"),
    [([0], 1), ([1], 2), ([-1], 1), ([-1, -1], 1), ([-1, -1, -1], 2), ([1, 0, -1], 4), ([-1, 1, -1], 3)],
    ids=str,
)
def test_input_operators_split_when_loaded_and_pair_up_when_idle(loads, count):
    again = _again([Partition(f"op{i}", {}, load) for i, load in enumerate(loads)])
    # One call without keys and load is the first call: it makes what was asked for, here one.
    assert len(again) == count


@pytest.mark.slow
@given(st.lists(st.sampled_from([-1, 0, 1]), min_size=1, max_size=12), st.integers(0, 200))
def test_after_any_rebalancing_every_code_still_has_one_owner(loads, code):
    partitions: Sequence[Partition] = _first(len(loads), "in")
    loaded = [Partition(p.operator, p.keys, load) for p, load in zip(partitions, loads, strict=True)]
    assert sum(p.keys["in"].owns(code) for p in _again(loaded, "in")) == 1


def _wanted(partitions: Sequence[Partition], count: int, *inputs: str, parallel: int = 0) -> Sequence[Partition]:
    context = PartitioningContext(parallel_count=parallel, input_ports=inputs, wanted=count)
    return StatelessPartitioner(1).define_partitions(partitions, context)


@pytest.mark.parametrize(("before", "wanted"), [(1, 5), (5, 3), (3, 3)])
def test_a_wanted_count_is_made_and_redistributes_the_keys(before, wanted):
    assert _wanted(_first(before, "in"), wanted, "in") == _first(wanted, "in")


def test_a_mirror_follows_its_head_whatever_is_wanted():
    assert len(_wanted(_first(2), 7, parallel=3)) == 3


def test_one_partition_that_has_run_is_no_first_call():
    ran = [Partition("op", stats=BatchedOperatorStats(operator_id=1, current_window_id=1))]
    context = PartitioningContext()
    assert len(StatelessPartitioner(4).define_partitions([Partition("op")], context)) == 4
    assert len(StatelessPartitioner(4).define_partitions(ran, context)) == 1
