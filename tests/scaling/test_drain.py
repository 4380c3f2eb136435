"""The policy that works a backlog off as soon as it can, and does not flap."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit import Backlog, Capacity
from dagkit.scaling import Decision, Drain, ScalingInputs, ScalingSettings, decide
from dagkit.scaling.drain import ALL, COOLING, ENOUGH, FITS, NO_GAIN, NOTHING_WAITS, TOO_FEW, TOO_MANY, UNMEASURED

MIB = 1 << 20
FOUR = Capacity(cores=4, most_cores=4, positions_per_second=100 * MIB, window_millis=50, slot_millis=10)
NEW = Capacity(cores=4, most_cores=4)
LARGE = Backlog(blocks=500, positions=4000 * MIB, pieces=4000)
ONE_SMALL = Backlog(blocks=1, positions=MIB, pieces=1)


def _inputs(backlog: Backlog, before: int = 1, *, capacity: Capacity = FOUR, at: int = 0, **settings: Any) -> Any:
    memory = settings.pop("memory", {})
    own = {name: settings.pop(name) for name in Drain.model_fields if name in settings}
    settings = ScalingSettings(policy_settings=own, **settings)
    return ScalingInputs(
        settings=settings, before=before, at_millis=at, backlog=backlog, capacity=capacity, memory=memory
    )


def _looked(*args: Any, **kwargs: Any) -> Decision:
    return decide(_inputs(*args, **kwargs))


ONE_LARGE, UNDIVIDED, ENDLESS = (Backlog(1, 4000 * MIB, 4000), Backlog(1, 4000 * MIB, 1), Backlog(3, 0, 3, endless=3))


@pytest.mark.parametrize(
    ("backlog", "before", "options", "after", "rule"),
    [
        pytest.param(LARGE, 1, {}, 4, ALL, id="a large backlog takes every core"),
        pytest.param(LARGE, 4, {}, 4, FITS, id="it has them"),
        pytest.param(LARGE, 1, {"capacity": NEW}, 4, UNMEASURED, id="before anything is measured, every core"),
        pytest.param(ONE_SMALL, 1, {"capacity": NEW}, 1, FITS, id="what one can read alone is left to one"),
        pytest.param(Backlog(3, 30, 3), 1, {"capacity": NEW}, 3, UNMEASURED, id="no more than have something to do"),
        pytest.param(ONE_LARGE, 1, {}, 4, ALL, id="one large block that can be cut takes every core"),
        pytest.param(UNDIVIDED, 1, {}, 1, FITS, id="one that cannot be cut is left to one"),
        pytest.param(LARGE, 1, {"max_partitions": 3}, 3, ALL, id="no more than max_partitions"),
        pytest.param(LARGE, 1, {"max_partitions": 100}, 4, ALL, id="no more than there are cores"),
        pytest.param(LARGE, 1, {"min_partitions": 6}, 6, TOO_FEW, id="as many as min_partitions, whatever there is"),
        pytest.param(Backlog(), 1, {"min_partitions": 2}, 2, TOO_FEW, id="never fewer than min_partitions"),
        pytest.param(ONE_SMALL, 1, {}, 1, FITS, id="a block that is soon read changes nothing"),
        pytest.param(Backlog(4, 4 * MIB, 4), 1, {}, 1, NO_GAIN, id="what is soon read by one is not worth a change"),
        pytest.param(LARGE, 1, {"target_drain_millis": 25_000}, 2, ENOUGH, id="two are in time, three sooner"),
        pytest.param(LARGE, 1, {"target_drain_millis": 60_000}, 1, FITS, id="one is in time"),
        pytest.param(LARGE, 9, {"max_partitions": 4}, 4, TOO_MANY, id="a lower max_partitions holds at once"),
        pytest.param(ENDLESS, 1, {}, 3, ALL, id="each block without an end gets a partition of its own"),
    ],
)
def test_how_many_partitions(backlog, before, options, after, rule):
    decision = _looked(backlog, before, **options)
    assert (decision.after, decision.rule) == (after, rule)


def test_cores_that_are_not_there_yet_are_asked_for_in_doubles():
    growing = Capacity(cores=4, most_cores=100, positions_per_second=MIB)
    assert _looked(LARGE, 4, capacity=growing).after == 8
    short = Backlog(blocks=8, positions=16 * MIB, pieces=16)
    assert _looked(short, 4, capacity=growing).after == 4


NONE, SOME, NEARLY = Backlog(), Backlog(2, 2000 * MIB, 2), Backlog(19, 19_000 * MIB, 19)
COOL_DOWNS = {
    "none are taken away before it": (4, [(1000, NONE), (10_999, NONE), (11_000, NONE)], [4, 4, 1]),
    "a burst in between begins it again": (
        4,
        [(0, NONE), (5000, LARGE), (10_000, NONE), (19_999, NONE), (20_000, NONE)],
        [4, 4, 4, 4, 1],
    ),
    "as many stay as were needed in the meantime": (4, [(0, NONE), (5000, SOME), (10_000, NONE)], [4, 4, 2]),
    "a few too many are let be until clearly fewer do": (
        20,
        [(0, NEARLY), (10_000, NONE), (20_000, NONE)],
        [20, 20, 1],
    ),
}


@pytest.mark.parametrize(("before", "looks", "counts"), COOL_DOWNS.values(), ids=COOL_DOWNS)
def test_partitions_are_taken_away_after_the_cool_down(before, looks, counts):
    capacity, memory = replace(FOUR, cores=before, most_cores=before), {}
    for (at, backlog), count in zip(looks, counts, strict=True):
        decision = _looked(backlog, before, capacity=capacity, at=at, memory=memory)
        rule = NOTHING_WAITS if count < before else FITS if backlog is LARGE else COOLING
        assert (decision.after, decision.rule) == (count, rule)
        memory = decision.memory


def test_a_policy_that_flaps_waits_longer_each_time():
    """A burst comes just after each time that partitions were taken away."""
    memory, count, at, changes = {}, 1, 0, []
    for second in range(1000):
        at = second * 1000
        burst = count == 1 and second % 3 == 0
        decision = _looked(LARGE if burst else Backlog(), count, at=at, memory=memory)
        if decision.after != count:
            changes.append(second)
        count, memory = decision.after, decision.memory
    assert len(changes) < 16
    waits = [later - earlier for earlier, later in zip(changes[::2], changes[1::2], strict=False)]
    assert waits == sorted(waits)
    assert waits[0] < 15
    assert waits[-1] > 150


backlogs = st.builds(
    Backlog,
    blocks=st.integers(0, 10**6),
    positions=st.integers(0, 10**15),
    pieces=st.integers(0, 10**6),
    endless=st.integers(0, 100),
)
capacities = st.builds(
    Capacity,
    cores=st.integers(1, 2000),
    most_cores=st.integers(1, 2000),
    positions_per_second=st.none() | st.floats(1e-3, 1e12),
    window_millis=st.floats(0, 1e5),
    slot_millis=st.floats(0, 1e4),
)


@given(backlogs, capacities, st.integers(1, 3000), st.integers(1, 50), st.none() | st.integers(0, 3000))
def test_the_count_is_within_its_bounds_and_its_inputs_can_be_kept(backlog, capacity, before, least, more):
    most = None if more is None else least + more
    inputs = _inputs(backlog, before, capacity=capacity, min_partitions=least, max_partitions=most)
    decision = decide(inputs)
    assert least <= decision.after
    assert most is None or decision.after <= most
    assert decide(ScalingInputs.model_validate(inputs.model_dump(mode="json"))) == decision


@given(backlogs, capacities, st.integers(1, 3000))
def test_with_nothing_new_the_next_look_changes_nothing(backlog, capacity, before):
    first = _looked(backlog, before, capacity=capacity)
    assert _looked(backlog, first.after, capacity=capacity, memory=first.memory).after == first.after
