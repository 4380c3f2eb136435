"""Windows simulated by the engine's own rules: no slot waits long for another, whatever work costs where."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.scaling.trials import Cost, Machine, fixed, simulated
from dagkit import Block
from dagkit.engine.work.split import EVEN, HANDED, OVER

FILE = 10_000_000
"""Positions of the one file."""
ENOUGH = 1.15
"""How much longer than it had to anything may take."""


def file_of(count, positions=FILE):
    """One source in so many blocks."""
    length = positions // count
    return [Block(number, "a", number * length, (number + 1) * length) for number in range(count)]


def dear_at(share, millis, positions=FILE):
    """One position in a hundred costs a hundred times more; these stand together, and all cost so much together."""
    cheap, first = millis / (positions * 1.99), int(positions * share)
    return Cost({0: cheap, first: 100 * cheap, first + positions // 100: cheap})


def slow_block(number, of, millis):
    """One block costs as much as all others together."""
    length = FILE // of
    cheap = millis / 2 / (FILE - length)
    return Cost({0: cheap} | {number * length: millis / 2 / length, (number + 1) * length: cheap})


def world_of(blocks, cost, slots, **machine):
    return Machine(
        blocks=blocks, cost=cost, cores=((0.0, slots),), **{"window_millis": 100.0, "slot_millis": 0.0, **machine}
    )


def run(blocks, cost, slots, most_windows=100_000, **machine):
    """The course of the blocks on so many slots, each with a core of its own."""
    world = world_of(blocks, cost, slots, **machine)
    return simulated(world, fixed(slots), begins_with=slots, most_windows=most_windows, keeps_splits=True)


def ratio(blocks, cost, slots, **machine):
    """How much longer it takes than it has to, where work can be divided."""
    return run(blocks, cost, slots, **machine).ended / world_of(blocks, cost, slots).soonest_millis(slots)


def splits_of(course):
    return Counter(split.why for _, split in course.splits)


PLACES = [0.0, 0.1, 0.33, 0.495, 0.5, 0.8, 0.99]
MACHINES = [
    pytest.param({"slots": 2, "noise": 0.03}, 40_000.0, id="two windows in flight"),
    pytest.param({"slots": 2, "noise": 0.03, "overlap": 1}, 80_000.0, id="one window after the other"),
    pytest.param({"slots": 2, "noise": 0.03, "claim": 1000}, 80_000.0, id="claims of many positions"),
    pytest.param({"slots": 16, "noise": 0.12}, 16 * 40_000.0, id="sixteen noisy slots"),
]


WORK = {
    **{f"dear at {share}": lambda millis, share=share: (file_of(1), dear_at(share, millis)) for share in PLACES},
    **{f"slow block {n}": lambda millis, n=n: (file_of(16), slow_block(n, 16, millis)) for n in (0, 7, 15)},
}
"""A file with a dear stretch, and one slow block among many."""


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
@pytest.mark.parametrize(("machine", "millis"), MACHINES)
def test_all_slots_are_kept_busy(machine, millis, work):
    assert ratio(*work(millis), **machine) <= ENOUGH


def test_without_splits_a_slow_block_keeps_everybody_waiting():
    work = file_of(16), slow_block(15, 16, 40_000.0)
    assert run(*work, 2, splits=False, cuts=False).ended > 1.4 * run(*work, 2).ended


@pytest.mark.parametrize("overlap", [1, 2])
def test_an_even_backlog_is_hardly_split(overlap):
    work = file_of(1600, 1600 << 26), Cost({0: 1 / 500_000})
    assert ratio(*work, 2, noise=0.017, overlap=overlap) <= 1.05
    even = run(*work, 2, noise=0.017, overlap=overlap)
    assert splits_of(even)[EVEN] <= 4
    assert splits_of(even)[OVER] <= 2 * even.windows


def test_a_file_that_is_read_in_one_window_is_not_split_but_to_be_allocated():
    even = run(file_of(16, 1 << 30), Cost({0: 1 / 500_000}), 2, window_millis=70.0)
    assert even.windows == 1
    assert even.splits == ()


def test_a_window_with_little_to_do_is_one_window():
    idle = run(file_of(3, 3000), Cost({0: 0.1}), 8)
    assert (idle.windows, idle.splits) == (1, ())


@pytest.mark.parametrize("cost", [Cost({0: 0.001}), dear_at(0.3, 20_000.0)], ids=["even", "skewed"])
def test_what_cannot_be_split_is_never_split_and_ends(cost):
    whole = run(file_of(40), cost, 4, splits=False, cuts=False)
    assert whole.splits == ()
    assert whole.windows <= 40


def test_what_can_be_split_while_it_is_read_and_not_before_is_split_there_alone():
    kept = run(file_of(16), slow_block(3, 16, 40_000.0), 2, cuts=False)
    assert set(splits_of(kept)) == {OVER}


def test_a_few_positions_that_cost_a_second_each_are_shared_one_by_one():
    work = file_of(1, 1000), Cost({0: 1000.0})
    assert ratio(*work, 50, noise=0.03) <= 1.3  # one position is a twentieth of each slot's work
    assert len(run(*work, 50, noise=0.03).splits) <= 1000


@given(
    st.lists(st.floats(1e-4, 1.0), min_size=1, max_size=12),
    st.integers(1, 9),
    st.integers(1, 2),
    st.sampled_from([1, 1000, 60_000]),
)
def test_whatever_work_costs_it_ends_and_is_not_split_for_ever(costs, slots, overlap, claim):
    """No window begins that finishes nothing, and none makes more splits than its slots can use."""
    cost = Cost({number * 50_000: millis for number, millis in enumerate(costs)})
    blocks = file_of(3, 600_000)
    course = run(blocks, cost, slots, most_windows=500, overlap=overlap, claim=claim)
    # at its end, between any two slots, the same for what is dealt besides, and one to leave a rest
    assert len(course.splits) <= course.windows * (3 * slots)
    assert course.windows <= 20 + world_of(blocks, cost, slots).soonest_millis(slots) / 200


@pytest.mark.slow
def test_many_blocks_some_of_which_cost_a_thousand_times_more_end_soon_and_are_split_little():
    blocks, cost = file_of(20_000, 100_000_000), Cost({0: 1.0, 70_000_000: 1000.0, 70_010_000: 1.0})
    course = run(blocks, cost, 1000, noise=0.03)
    assert course.ended <= ENOUGH * world_of(blocks, cost, 1000).soonest_millis(1000)
    assert len(course.splits) <= 3 * 1000 * course.windows


def test_what_a_cost_says_is_what_it_adds_up_to():
    cost = Cost({0: 1.0, 10: 5.0, 20: 0.5})
    assert [cost.upto(position) for position in (0, 5, 10, 15, 20, 30)] == [0, 5, 10, 35, 60, 65]
    assert [cost.reached(0, millis) for millis in (0, 5, 10, 35, 60, 65)] == [0, 5, 10, 15, 20, 30]
    assert cost.reached(8, 7.0) == 11


HANDS_OVER = [
    pytest.param({"slots": 2, "noise": 0.03}, 40_000.0, 1.05, id="40 s"),
    pytest.param({"slots": 2, "noise": 0.03}, 24_000.0, 1.10, id="24 s"),
    pytest.param({"slots": 2, "noise": 0.03, "overlap": 1}, 24_000.0, 1.10, id="24 s, one window after the other"),
    pytest.param({"slots": 16, "noise": 0.12}, 16 * 20_000.0, 1.05, id="sixteen noisy slots"),
]


@pytest.mark.parametrize("name", WORK)
@pytest.mark.parametrize(("machine", "millis", "most"), HANDS_OVER)
def test_work_is_shared_while_a_window_runs(machine, millis, most, name):
    blocks, cost = WORK[name](millis)
    course = run(blocks, cost, hands_over=True, **machine)
    assert course.ended / world_of(blocks, cost, machine["slots"]).soonest_millis(machine["slots"]) <= most
    assert splits_of(course)[HANDED] or "slow block" not in name
