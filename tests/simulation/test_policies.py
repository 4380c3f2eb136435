"""What the policies would do: as soon done as the best fixed number, and without flapping."""

from dataclasses import replace
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.scaling.trials import Machine, best_fixed, fixed, simulated
from dagkit.scaling import ScalingSettings
from dagkit.simulation import Arrival, following
from tests.cases import cases
from tests.examples import examples

MIB = 1 << 20
BOUND = 1.1
"""How many times the time of the best fixed number a burst may take."""
DRAIN, APEX = ScalingSettings(), ScalingSettings(policy="apex")


def phases(blocks=500, size=4 * MIB, silence=60_000.0):
    """A burst, silence, and a trickle."""
    return [Arrival(0, blocks, size), *(Arrival(silence + tick * 500.0, 1, size) for tick in range(60))]


@cases("count, drained", ("one reads four seconds long", 1, 4060.0), ("two half as long", 2, 2030.0))
def test_a_window_lasts_as_long_as_its_slowest_slot(count, drained):
    """400 MB at 100 kB in a millisecond, in windows of at most 2.5 s at first."""
    world = Machine([Arrival(0, 1, 4e8)], cores=((0, 2),), window_millis=20, slot_millis=10)
    at = simulated(world, fixed(count), begins_with=count).drained
    assert at == (pytest.approx(drained, rel=0.01),)


def test_a_slot_without_a_core_waits_for_one():
    arrivals = [Arrival(0, 1, 4e8)]
    two = simulated(Machine(arrivals, cores=((0, 2),), window_millis=0, slot_millis=0), fixed(2), begins_with=2)
    four = simulated(Machine(arrivals, cores=((0, 2),), window_millis=0, slot_millis=0), fixed(4), begins_with=4)
    assert four.drained == pytest.approx(two.drained, rel=0.01)


def test_a_core_that_comes_late_takes_what_still_waits():
    late = Machine([Arrival(0, 4, 1e8)], cores=((0, 1), (1000, 4)), window_millis=0, slot_millis=0)
    assert simulated(late, fixed(4), begins_with=4).drained == (pytest.approx(2000, rel=0.02),)


def test_two_cores_are_all_used_from_the_beginning():
    course = simulated(Machine([Arrival(0, 1, 4000 * MIB)], cores=((0, 2),)), following(DRAIN))
    assert [(change.at_millis, change.after) for change in course.changes] == [(0, 2)]


@pytest.mark.parametrize("cores", [1, 2, 4, 16])
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_a_burst_is_drained_as_soon_as_by_the_best_fixed_number(cores, noise):
    world = Machine(phases(cores * 250), cores=((0, cores),), noise=noise, ends_millis=150_000)
    _, soonest = best_fixed(world, 2 * cores)
    course = simulated(world, following(DRAIN))
    assert course.drained_after(0) <= BOUND * soonest
    assert course.turns(0, 60_000) <= 1
    assert course.turns(60_000) <= 1


def test_the_second_burst_is_drained_as_soon_as_the_first():
    """Now something is measured, and there is one partition: before it grows, it must pay."""
    again = [Arrival(0, 500, 4 * MIB), Arrival(100_000, 500, 4 * MIB)]
    world = Machine(again, cores=((0, 4),))
    course = simulated(world, following(DRAIN))
    assert course.changes[0].after == course.changes[-1].after == 4
    assert course.turns(0) == 2
    assert course.drained_after(100_000) - 100_000 <= BOUND * course.drained_after(0)


def test_readers_that_have_nothing_to_do_go_away():
    world = Machine(phases()[:1], cores=((0, 4),), ends_millis=60_000)
    course = simulated(world, following(DRAIN))
    assert [(change.before, change.after) for change in course.changes] == [(1, 4), (4, 1)]
    assert course.changes[-1].at_millis == pytest.approx(course.drained[0] + 10_000, abs=1100)


def test_apex_asks_for_sixteen_where_two_can_run():
    course = simulated(Machine(phases(), cores=((0, 2),), ends_millis=400_000), following(APEX))
    assert [change.after for change in course.changes] == [16, 1]
    assert course.changes[1].at_millis == pytest.approx(120_000, abs=1100)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("noise", [0.0, 0.2, 0.4])
def test_the_best_fixed_number_is_the_best_of_all(noise, seed):
    world = Machine(phases(500)[:1], cores=((0, 1), (3000, 4)), noise=noise, seed=seed)
    every = {count: simulated(world, fixed(count), begins_with=count).drained_after(0) for count in range(1, 9)}
    assert best_fixed(world, 8)[1] == min(every.values())


def test_a_course_that_cannot_drain_in_time_is_given_up_early():
    world = Machine(phases(4000)[:1], cores=((0, 4),), overlap=1, noise=0.1)
    soonest = simulated(world, fixed(4), begins_with=4).drained_after(0)
    late = simulated(world, fixed(2), begins_with=2, given_up_after=soonest)
    assert late.drained == ()
    assert late.ended < soonest / 2


def test_many_fixed_numbers_are_tried_in_small_steps():
    """With a core for each, the most is the best, and no number that is left out comes close."""
    world = Machine(phases(2000)[:1], cores=((0, 200),), overlap=1, slot_millis=0.0)
    assert best_fixed(world, 200)[0] >= 180
    assert best_fixed(world, 70)[0] >= 63


def test_blocks_that_stand_together_are_counted_one_by_one():
    told = []

    def choose(before, at, backlog, capacity):
        told.append((at, backlog.blocks, backlog.positions))
        return before, ""

    simulated(Machine([Arrival(0, 2000, MIB), Arrival(0, 3, MIB)], cores=((0, 1),)), choose)
    assert told[0] == (0, 2003, 2003 * MIB)


def test_one_partition_has_a_slot_in_each_window_in_flight():
    arrivals = [Arrival(0, 1000, 8 * MIB)]
    one, two = (simulated(Machine(arrivals, cores=((0, 2),), overlap=n), fixed(1)).drained_after(0) for n in (1, 2))
    assert one == pytest.approx(2 * two, rel=0.05)


@pytest.mark.trial
@pytest.mark.slow
def test_a_thousand_slots_that_come_late_drain_hundreds_of_thousands_of_blocks():
    trickle = [Arrival(3_600_000 + tick * 1000.0, 1, 64 * MIB) for tick in range(300)]
    world = Machine(
        [Arrival(0, 3 * 10**5, 64 * MIB), *trickle],
        cores=((0, 10), (20_000, 100), (60_000, 1000)),
        most_cores=1000,
        noise=0.3,
        ends_millis=4_200_000,
    )
    course = simulated(world, following(DRAIN))
    _, soonest = best_fixed(world, 1000)
    assert course.drained_after(0) <= BOUND * soonest
    assert max(course.turns(0, 3_600_000), course.turns(3_600_000)) <= 1


worlds = st.builds(
    lambda seconds, mebibytes, cores, rate, noise, window, slot, seed: Machine(
        phases(max(1, round(seconds * 1000 * rate * cores / (mebibytes * MIB))), mebibytes * MIB, silence=10_000_000.0),
        cores=((0, cores),),
        per_milli=rate,
        noise=noise,
        window_millis=window,
        slot_millis=slot,
        seed=seed,
        ends_millis=10_100_000.0,
        look_millis=60_000.0,
    ),
    seconds=st.integers(10, 100),
    mebibytes=st.integers(1, 64),
    cores=st.integers(1, 12),
    rate=st.floats(10_000, 500_000),
    noise=st.floats(0, 0.1),
    window=st.floats(10, 150),
    slot=st.floats(1, 30),
    seed=st.integers(0, 2**32),
)
"""Bursts that keep every core busy for a while."""


@pytest.mark.slow
@settings(max_examples=examples(60))
@given(worlds)
def test_whatever_the_world_is_like_a_burst_is_drained_in_time(world):
    course = simulated(world, following(DRAIN))
    _, soonest = best_fixed(world, world.cores[0][1] + 2)
    assert course.drained_after(0) <= BOUND * soonest + world.change_millis
    assert course.turns(0, 10_000_000) <= 1
    assert course.turns(10_000_000, inf) <= 1


@settings(max_examples=examples(10))
@given(worlds, st.floats(0, 0.4), st.integers(1, 12))
def test_a_course_that_drains_in_time_is_not_given_up(world, noise, count):
    burst = replace(world, arrivals=world.arrivals[:1], noise=noise, ends_millis=inf)
    whole = simulated(burst, fixed(count), begins_with=count)
    by = whole.drained_after(0) + 1
    assert simulated(burst, fixed(count), begins_with=count, given_up_after=by).drained == whole.drained


@settings(max_examples=examples(5))
@given(worlds, st.sampled_from([DRAIN, APEX]))
def test_equal_worlds_go_equally(world, how):
    first, again = (simulated(world, following(how), keeps_splits=True) for _ in range(2))
    assert first == again
