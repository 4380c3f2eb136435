"""How statistics become a decision, and the decision a sentence."""

from datetime import timedelta

import pytest

from dagkit import Backlog, BatchedOperatorStats, Capacity, OperatorStats, PortStats, Response
from dagkit.scaling import Follower, ScalingInputs, ScalingSettings, decide
from dagkit.scaling.policy import amount, sentence
from dagkit.testing import FakeClock

DRAIN = ScalingSettings()
AS_APEX = ScalingSettings(policy="apex")
MEASURED = Capacity(cores=4, most_cores=4, positions_per_second=20e6)


MANY, SMALL, ENDLESS = Backlog(500, 2_000_000_000, 2000), Backlog(1, 3 << 20, 3), Backlog(2, 0, 2, endless=2)
NEW, SLOW = Capacity(cores=2, most_cores=8), Capacity(positions_per_second=1)


@pytest.mark.parametrize(
    ("settings", "before", "backlog", "capacity", "waits", "becomes"),
    [
        (
            *(DRAIN, 1, MANY, MEASURED),
            "500 blocks wait, 2G positions; 4 cores, each reads 20M per second; 100 s with 1 and 25 s with 4",
            "1 becomes 4: as many as can work at once",
        ),
        (
            *(DRAIN, 1, SMALL, NEW),
            "1 block waits, 3.15M positions; 2 cores of up to 8",
            "1 becomes 2: as many as can work at once, because no speed is measured yet",
        ),
        (
            *(DRAIN, 2, ENDLESS, SLOW),
            "2 blocks wait, 2 of them without an end, 0 positions; 1 core, each reads 1 per second",
            "2 stay: fewer would suffice, but not for long enough yet",
        ),
        (
            *(AS_APEX, 1, Backlog(9), MEASURED),
            "9 blocks wait, 0 positions",
            "1 becomes 8: the largest power of two up to the number of blocks",
        ),
        (AS_APEX, 1, Backlog(), MEASURED, "no block waits", "1 stays: fewer blocks than min_partitions"),
    ],
)
def test_what_is_reported_of_a_decision(*, settings, before, backlog, capacity, waits, becomes):
    inputs = ScalingInputs(settings=settings, before=before, at_millis=0, backlog=backlog, capacity=capacity)
    decision = decide(inputs)
    assert sentence(inputs, decision.after, decision.rule) == f"{waits}; {becomes}"


@pytest.mark.parametrize(
    ("number", "told"),
    [(0, "0"), (999, "999"), (999.6, "1k"), (1500, "1.5k"), (2_097_152, "2.1M"), (3.2e12, "3.2T"), (5e15, "5P")],
)
def test_amounts(number, told):
    assert amount(number) == told


CLOCK = FakeClock()
APEX = ScalingSettings(policy="apex", interval_millis=500)
AS_MALHAR = ScalingSettings(policy="apex", policy_settings={"apex_compat": True}, interval_millis=500)


CAPACITY = Capacity(cores=4, most_cores=4)


def _round(
    follower: Follower, settings: ScalingSettings, queued: list[int], *, millis: int = 0, backlog: Backlog | None = None
) -> list[Response]:
    """What is answered to each partition."""
    at = CLOCK.now() + timedelta(milliseconds=millis)
    common = {"current_window_id": 1, "partitions": len(queued), "at": at, "backlog": backlog, "capacity": CAPACITY}
    answers = []
    for partition, size in enumerate(queued):
        window = OperatorStats(1, (PortStats("blocks", queue_size=size),))
        place = {"operator_id": partition, "partition": partition, "last_windowed_stats": [window]}
        answers.append(follower.answer(settings, BatchedOperatorStats(**common, **place)))
    return answers


def test_process_stats_for_partition_count():
    """AbstractBlockReaderTest.testProcessStatsForPartitionCount."""
    (response,) = _round(Follower(), APEX, [10])
    assert (response.repartition_required, response.partitions) == (True, 8)


def test_process_stats_for_repeated_partition_count():
    """AbstractBlockReaderTest.testProcessStatsForRepeatedPartitionCount."""
    follower = Follower()
    _round(follower, APEX, [10])
    again = _round(follower, APEX, [10, 0, 0, 0, 0, 0, 0, 0], millis=500)
    assert not any(response.repartition_required for response in again)


def test_what_partitions_had_that_are_gone_counts_no_more():
    follower = Follower()
    _round(follower, APEX, [2, 2, 2, 2])
    assert not _round(follower, APEX, [1, 1], millis=500)[-1].repartition_required


@pytest.mark.parametrize(
    ("settings", "queued", "backlog", "asked"),
    [
        (APEX, [4, 3, 3], None, [Response(), Response(), 8]),
        (AS_MALHAR, [4, 16, 16], None, [4, Response(), Response()]),
        (APEX, [1], Backlog(blocks=100), [16]),
        (DRAIN, [5], None, [Response()]),
    ],
    ids=[
        *("the last is answered for all", "as Malhar, the first decides with what is known"),
        *("a reported backlog counts, and not the queues", "without a backlog there is nothing to follow"),
    ],
)
def test_what_is_answered_to_each_partition(settings, queued, backlog, asked):
    responses = _round(Follower(), settings, queued, backlog=backlog)
    assert [each.partitions if each.repartition_required else each for each in responses] == asked


def test_drain_asks_before_the_first_window():
    backlog = Backlog(9, 9000, 9)
    stats = BatchedOperatorStats(operator_id=0, current_window_id=0, backlog=backlog, capacity=CAPACITY)
    assert Follower().answer(DRAIN, stats).partitions == 4


def test_what_is_reported_of_a_look_makes_the_same_decision_again():
    (response,) = _round(Follower(), DRAIN, [9], backlog=Backlog(9, 9000, 9))
    assert response.inputs is not None
    decision = decide(ScalingInputs.model_validate(response.inputs))
    assert (decision.after, decision.rule) == (response.partitions, response.repartition_note)


def test_a_look_that_finds_what_the_one_before_found_is_not_recorded_again():
    follower = Follower()
    told = [_round(follower, DRAIN, [0], millis=at, backlog=Backlog())[-1].inputs is not None for at in range(5)]
    assert told == [True, False, False, False, False]
